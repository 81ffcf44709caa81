"""`run`, `watch`, `sessions`, `export` and `replay`: output and exit codes."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from limelight.client import SyncClient
from tests.cli.runner import limelight
from tests.client.server_thread import serve_in_thread
from tests.support import agents
from tests.system.processes.agents import hello
from tests.system.processes.server_process import AGENTS_FILE, free_port

GOLDEN_RUNS = Path(__file__).parents[1] / "dialects" / "golden"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with the agents `hello` and `worker`."""
    with serve_in_thread(hello, agents.worker, data=tmp_path_factory.mktemp("server")) as served:
        yield served.url


def test_run_without_a_server_starts_one_and_prints_the_run(tmp_path: Path) -> None:
    lines = limelight("run", "x", "--target", f"{AGENTS_FILE}:hello", folder=tmp_path).stdout.splitlines()
    assert lines[:3] == ["● hello: x", "", "hello"]
    assert lines[4].startswith("Finished in ")
    assert (tmp_path / ".limelight" / "limelight.db").exists()


def test_run_without_a_server_loads_only_the_requested_agent(tmp_path: Path) -> None:
    (tmp_path / "bots.py").write_text("async def bot(messages, ctx):\n    yield 'hello'\n")
    (tmp_path / "config.toml").write_text(
        '[agents.good]\ntarget = "bots.py:bot"\n[agents.broken]\ntarget = "nowhere:agent"\n'
    )
    good = limelight("run", "hi", "--plain", folder=tmp_path)
    assert good.stdout.startswith("● good: hi\n\nhello\n"), good.stderr
    broken = limelight("run", "hi", "--plain", "--agent", "broken", folder=tmp_path, code=2)
    assert "there is no module 'nowhere'" in broken.stderr
    unknown = limelight("run", "hi", "--plain", "--agent", "nobody", folder=tmp_path, code=2)
    assert unknown.stderr == "limelight: there is no agent 'nobody'; there are: good, broken\n"


def test_run_and_sessions_use_the_named_server(tmp_path: Path) -> None:
    with serve_in_thread(hello, agents.worker, data=tmp_path / "data") as served:
        url = served.url
        plain = limelight("run", "-", "--agent", "hello", "--session", "s", "--url", url, folder=tmp_path, stdin=b"hi")
        assert plain.stdout.startswith("● hello: hi\n\nhello\n")
        records = limelight("run", "go", "--json", folder=tmp_path, LIMELIGHT_URL=url).stdout.splitlines()
        kinds = [json.loads(line)["event"]["kind"] for line in records]
        assert (kinds[0], kinds[-1]) == ("run_started", "run_finished")
        limelight("run", "long " * 30, "--session", "x" * 128, "--url", url, folder=tmp_path)
        listed = limelight("sessions", "--url", url, folder=tmp_path, COLUMNS="40").stdout.splitlines()
        assert listed[0].split() == ["SESSION", "STATE", "TURNS", "ACTIVE", "TITLE"]
        assert [line.split()[1] for line in listed[1:]] == ["completed"] * 3, "a pipe gets one line for each"
        assert listed[1].startswith("x" * 128)
        found = limelight("sessions", "--json", "-q", "go", "--url", url, folder=tmp_path).stdout.splitlines()
        assert [json.loads(line)["title"] for line in found] == ["go"]


def test_run_and_watch_work_with_a_root_path_and_a_key(tmp_path: Path) -> None:
    settings = {"server__root_path": "/limelight", "auth__api_key": "sesame"}
    with serve_in_thread(hello, data=tmp_path / "data", **settings) as served:
        assert served.url.endswith("/limelight")
        options = ("--url", served.url)
        run = limelight("run", "hi", "--session", "s", *options, folder=tmp_path, LIMELIGHT_API_KEY="sesame")
        assert run.stdout.startswith("● hello: hi\n\nhello\n")
        watched = limelight("watch", "s", "--once", "--json", *options, folder=tmp_path, LIMELIGHT_API_KEY="sesame")
        assert json.loads(watched.stdout.splitlines()[-1])["event"]["kind"] == "run_finished"


def test_run_of_a_failing_agent_exits_with_1_and_escapes_its_error(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(
        "async def bad(messages, ctx):\n    yield 'so far'\n    raise ValueError('no \\x1b[31m luck')\n"
    )
    logging.getLogger("limelight.runs.engine").setLevel(logging.NOTSET)  # other tests silence it
    ended = limelight("run", "x", "--target", "bad.py:bad", folder=tmp_path, code=1)
    assert "Failed after" in ended.stdout
    assert "luck" in ended.stdout
    assert "Traceback" not in ended.stdout
    assert "\x1b" not in ended.stdout
    assert ended.stderr == ""
    log = (tmp_path / ".limelight" / "run.log").read_text()
    assert "ValueError" in log
    assert "\x1b" not in log


@pytest.mark.requirement("export-lossless")
def test_export_then_replay_as_json_is_the_same_file(url: str, tmp_path: Path) -> None:
    limelight("run", "go", "--agent", "worker", "--session", "exported", "--url", url, folder=tmp_path)
    with SyncClient(url) as client:
        session = client.session("exported")
    exported = limelight("export", session.run_id or "", "--url", url, folder=tmp_path).stdout
    assert len(exported.splitlines()) == session.last_seq
    (tmp_path / "run.jsonl").write_text(exported)
    assert limelight("replay", "run.jsonl", "--speed", "0", "--json", folder=tmp_path).stdout == exported
    plain = limelight("replay", "-", "--speed", "0", folder=tmp_path, stdin=exported.encode()).stdout
    assert plain.splitlines()[0] == "● worker: go"
    assert "✓ search bees" in plain


@pytest.mark.parametrize(("name", "code"), [("text", 0), ("failed", 1), ("cancelled", 3)])
def test_replay_exits_with_the_code_of_the_run(tmp_path: Path, name: str, code: int) -> None:
    limelight("replay", str(GOLDEN_RUNS / f"{name}.jsonl"), "--speed", "0", folder=tmp_path, code=code)


def test_replay_refuses_a_file_without_a_complete_run_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"seq": 1}\n')
    assert "line 1 is not a Record" in limelight("replay", "x.jsonl", folder=tmp_path, code=2).stderr
    assert "does not contain a complete run" in limelight("replay", "-", folder=tmp_path, code=2).stderr
    assert "cannot be read" in limelight("replay", "none.jsonl", folder=tmp_path, code=2).stderr


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("watch", "nobody"), "session"),
        (("export", "run_x"), "run"),
        (("run", "hi", "--agent", "nobody"), "there is no agent"),
    ],
)
def test_refusal_of_the_server_is_printed_in_one_line(
    url: str, tmp_path: Path, arguments: tuple[str, ...], hint: str
) -> None:
    ended = limelight(*arguments, "--url", url, folder=tmp_path, code=2)
    (line,) = ended.stderr.splitlines()
    assert hint in line


def test_missing_server_is_reported_in_one_line(tmp_path: Path) -> None:
    ended = limelight("sessions", "--url", f"http://127.0.0.1:{free_port()}", folder=tmp_path, code=2)
    (line,) = ended.stderr.splitlines()
    assert "limelight serve" in line


@pytest.mark.requirement("stdout-of-run")
def test_prints_of_an_agent_go_to_stderr(tmp_path: Path) -> None:
    text = "print('at import')\nasync def bot(messages, ctx):\n    print('in a run')\n    yield 'hello'\n"
    (tmp_path / "bot.py").write_text(text)
    ended = limelight("run", "x", "--target", "bot.py:bot", "--json", folder=tmp_path)
    assert [json.loads(line)["run_id"] for line in ended.stdout.splitlines()]
    assert ended.stderr == "at import\nin a run\n"
