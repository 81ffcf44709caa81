"""`run`, `watch`, `sessions`, `export`, `replay` and `doctor` as a shell sees them: output, exit codes, signals."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.system.processes.server_process import AGENTS_FILE, ServerProcess, free_port

RUNS = Path(__file__).parents[1] / "dialects" / "golden"


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "limelight", *arguments]


def limelight(
    *arguments: str, folder: Path, code: int = 0, stdin: bytes = b"", **environment: str
) -> "subprocess.CompletedProcess[bytes]":
    ended = subprocess.run(
        command(*arguments), cwd=folder, env=environment, input=stdin, capture_output=True, timeout=60, check=False
    )
    assert ended.returncode == code, ended.stdout + ended.stderr
    return ended


def wait_for(path: Path, text: str, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while text not in path.read_text():
        assert time.monotonic() < deadline, path.read_text()
        time.sleep(0.02)  # a file that another process writes has no event to wait for


def test_run_starts_a_server_for_itself_and_says_how_it_went(tmp_path: Path) -> None:
    said = limelight("run", "x", "--target", f"{AGENTS_FILE}:hello", folder=tmp_path).stdout.decode().splitlines()
    assert said[:3] == ["● hello: x", "", "hello"]
    assert said[4].startswith("Finished in ")
    assert (tmp_path / ".limelight" / "limelight.db").exists()


def test_run_talks_to_the_server_that_is_named(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data", "hello", "burst") as server:
        url = f"http://127.0.0.1:{server.port}"
        lines = limelight("run", "-", "--agent", "hello", "--session", "s", "--url", url, folder=tmp_path, stdin=b"hi")
        assert lines.stdout.decode().startswith("● hello: hi\n\nhello\n")
        records = limelight("run", "go", "--json", folder=tmp_path, LIMELIGHT_URL=url).stdout.splitlines()
        kinds = [json.loads(line)["event"]["kind"] for line in records]
        assert (kinds[0], kinds[-1]) == ("run_started", "run_finished")
        limelight("run", "long " * 30, "--session", "x" * 128, "--url", url, folder=tmp_path)
        listed = limelight("sessions", "--url", url, folder=tmp_path, COLUMNS="40").stdout.decode().splitlines()
        assert listed[0].split() == ["SESSION", "STATE", "TURNS", "ACTIVE", "TITLE"]
        assert [line.split()[1] for line in listed[1:]] == ["completed"] * 3, "one line each in a pipe"
        assert listed[1].startswith("x" * 128)
        found = limelight("sessions", "--json", "-q", "go", "--url", url, folder=tmp_path).stdout.splitlines()
        assert [json.loads(line)["title"] for line in found] == ["go"]


def test_exit_codes_tell_how_a_run_ended(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(
        "async def bad(messages, ctx):\n    yield 'so far'\n    raise ValueError('no luck')\n"
    )
    ended = limelight("run", "x", "--target", "bad.py:bad", folder=tmp_path, code=1)
    assert "Failed after" in ended.stdout.decode()
    assert "no luck" in ended.stdout.decode()
    assert "Traceback" not in ended.stdout.decode()


def test_ctrl_c_stops_the_run_and_says_so(tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    with ServerProcess(tmp_path / "data", "endless") as server, out.open("wb") as log:
        url = f"http://127.0.0.1:{server.port}"
        process = subprocess.Popen(command("run", "go", "--json", "--url", url), stdout=log, stderr=log)
        wait_for(out, "text_delta")
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 3
        last = json.loads(out.read_text().splitlines()[-1])
        assert last["event"] == {"kind": "run_cancelled", "reason": "stopped with Ctrl-C"}
        assert "Stopping the run" in out.read_text()
        assert server.get(f"/runs/{last['run_id']}")[1]["state"] == "cancelled"


def test_ctrl_c_with_a_server_of_its_own_is_one_line(tmp_path: Path) -> None:
    out, err = tmp_path / "out.txt", tmp_path / "err.txt"
    with out.open("wb") as stdout, err.open("wb") as stderr:
        process = subprocess.Popen(
            command("run", "go", "--target", f"{AGENTS_FILE}:quiet"), cwd=tmp_path, stdout=stdout, stderr=stderr
        )
    wait_for(out, "● quiet")
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 3
    assert err.read_text() == "Stopping the run …\n"
    assert out.read_text().splitlines()[-1].startswith("Stopped after ")


def test_what_an_agent_raises_cannot_control_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(
        "async def bad(messages, ctx):\n    yield 'x'\n    raise ValueError('\\x1b[31m')\n"
    )
    ended = limelight("run", "x", "--target", "bad.py:bad", folder=tmp_path, code=1)
    assert b"\x1b" not in ended.stdout + ended.stderr
    assert ended.stderr == b""
    log = (tmp_path / ".limelight" / "run.log").read_text()
    assert "ValueError" in log
    assert "\x1b" not in log


def test_export_replay_export_is_the_same_file(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data", "steady") as server:
        url = f"http://127.0.0.1:{server.port}"
        limelight("run", "go", "--session", "s", "--url", url, folder=tmp_path)
        run_id = server.get("/sessions/s")[1]["run_id"]
        exported = limelight("export", run_id, "--url", url, folder=tmp_path).stdout
        assert len(exported.splitlines()) == server.get("/sessions/s")[1]["last_seq"]
    (tmp_path / "run.jsonl").write_bytes(exported)
    assert limelight("replay", "run.jsonl", "--speed", "0", "--json", folder=tmp_path).stdout == exported
    shown = limelight("replay", "-", "--speed", "0", folder=tmp_path, stdin=exported).stdout.decode()
    assert shown.splitlines()[0] == "● steady: go"
    assert "✓ step 10" in shown


@pytest.mark.parametrize(("name", "code"), [("text", 0), ("failed", 1), ("cancelled", 3)])
def test_replay_ends_like_the_run(tmp_path: Path, name: str, code: int) -> None:
    limelight("replay", str(RUNS / f"{name}.jsonl"), "--speed", "0", folder=tmp_path, code=code)


def test_watch_goes_on_when_the_server_comes_back(tmp_path: Path) -> None:
    out, port = tmp_path / "out.txt", free_port()
    url = f"http://127.0.0.1:{port}"
    with ServerProcess(tmp_path / "data", "endless", "hello", port=port) as server:
        stream = server.ask(session_id="s", agent="endless", format="records")
        frames = iter(stream)
        for _ in range(20):
            next(frames)
        with out.open("wb") as log:
            watching = subprocess.Popen(command("watch", "s", "--json", "--url", url), stdout=log, stderr=log)
        try:
            wait_for(out, '"seq":30,')
            server.kill()
            with ServerProcess(tmp_path / "data", "endless", "hello", port=port) as again:
                wait_for(out, "run_failed")
                again.ask("more", session_id="s", agent="hello").take(10**6)
                wait_for(out, "run_finished")
                seqs = [json.loads(line)["seq"] for line in out.read_text().splitlines()]
                assert seqs == sorted(set(seqs))
                assert seqs[-1] == again.get("/sessions/s")[1]["last_seq"]
        finally:
            watching.send_signal(signal.SIGINT)
            assert watching.wait(20) == 0


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("watch", "nobody"), "session"),
        (("export", "run_x"), "run"),
        (("run", "hi", "--agent", "nobody"), "there is no agent"),
    ],
)
def test_what_a_server_refuses_is_one_line(tmp_path: Path, arguments: tuple[str, ...], hint: str) -> None:
    with ServerProcess(tmp_path / "data", "hello") as server:
        ended = limelight(*arguments, "--url", f"http://127.0.0.1:{server.port}", folder=tmp_path, code=2)
    (line,) = ended.stderr.decode().splitlines()
    assert hint in line


def test_a_server_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    ended = limelight("sessions", "--url", f"http://127.0.0.1:{free_port()}", folder=tmp_path, code=2)
    (line,) = ended.stderr.decode().splitlines()
    assert "limelight serve" in line


def test_a_file_that_is_no_run_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"seq": 1}\n')
    assert b"line 1 is not a Record" in limelight("replay", "x.jsonl", folder=tmp_path, code=2).stderr
    assert b"holds no whole run" in limelight("replay", "-", folder=tmp_path, code=2).stderr
    assert b"cannot be read" in limelight("replay", "none.jsonl", folder=tmp_path, code=2).stderr


def test_the_doctor_says_where_settings_come_from(tmp_path: Path) -> None:
    port = str(free_port())
    without = limelight("doctor", folder=tmp_path, LIMELIGHT_PORT=port).stdout.decode()
    assert f"no config.toml in {tmp_path}" in without
    (tmp_path / "config.toml").write_text("[limits]\nrun_seconds = 60\n")
    assert (
        f"{tmp_path / 'config.toml'}, then environment"
        in limelight("doctor", folder=tmp_path, LIMELIGHT_PORT=port).stdout.decode()
    )
    (tmp_path / "other.toml").write_text("")
    named = limelight("doctor", "--config", "other.toml", folder=tmp_path, LIMELIGHT_PORT=port).stdout.decode()
    assert f"{tmp_path / 'other.toml'}, then environment" in named


def test_the_doctor_finds_what_is_wrong(tmp_path: Path) -> None:
    port = str(free_port())
    well = limelight("doctor", folder=tmp_path, LIMELIGHT_PORT=port).stdout.decode()
    assert "✗" not in well
    for what in ("python", "parts", "settings", "agents", "address", "port", "data", "store", "model"):
        assert what in well
    (tmp_path / "file").write_text("")
    ill = limelight("doctor", "--json", folder=tmp_path, code=1, LIMELIGHT_DATA="file/x", LIMELIGHT_PORT=port).stdout
    wrong = [json.loads(line) for line in ill.splitlines() if json.loads(line)["state"] == "wrong"]
    assert [finding["what"] for finding in wrong] == ["data", "store"]
    assert wrong[0]["fix"]
    bad = limelight("doctor", folder=tmp_path, code=1, LIMELIGHT_PORT="many").stdout.decode()
    assert "✗ settings" in bad
