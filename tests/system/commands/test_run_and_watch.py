"""`limelight run` and `watch` in processes: Ctrl-C, and a server that restarts."""

import json
import signal
import subprocess
from pathlib import Path

from tests.support.wait import DEADLINE
from tests.system.commands.command_process import command, wait_for_text
from tests.system.processes.server_process import AGENTS_FILE, ServerProcess, free_port


def test_ctrl_c_stops_the_run_on_the_server(tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    with ServerProcess(tmp_path / "data", "endless") as server, out.open("wb") as log:
        url = f"http://127.0.0.1:{server.port}"
        process = subprocess.Popen(command("run", "go", "--json", "--url", url), stdout=log, stderr=log)
        wait_for_text(out, "text_delta")
        process.send_signal(signal.SIGINT)
        assert process.wait(DEADLINE) == 3
        last = json.loads(out.read_text().splitlines()[-1])
        assert last["event"] == {"kind": "run_cancelled", "reason": "stopped with Ctrl-C"}
        assert "Stopping the run" in out.read_text()
        assert server.get(f"/runs/{last['run_id']}")[1]["state"] == "cancelled"


def test_ctrl_c_with_its_own_server_prints_one_line(tmp_path: Path) -> None:
    out, err = tmp_path / "out.txt", tmp_path / "err.txt"
    with out.open("wb") as stdout, err.open("wb") as stderr:
        process = subprocess.Popen(
            command("run", "go", "--target", f"{AGENTS_FILE}:quiet"), cwd=tmp_path, stdout=stdout, stderr=stderr
        )
    wait_for_text(out, "● quiet")
    process.send_signal(signal.SIGINT)
    assert process.wait(DEADLINE) == 3
    assert err.read_text() == "Stopping the run …\n"
    assert out.read_text().splitlines()[-1].startswith("Stopped after ")


def test_watch_continues_after_the_server_restarts(tmp_path: Path) -> None:
    out, port = tmp_path / "out.txt", free_port()
    url = f"http://127.0.0.1:{port}"
    with ServerProcess(tmp_path / "data", "endless", "hello", port=port) as server:
        stream = server.ask(session_id="s", agent="endless", format="records")
        frames = iter(stream)
        for _ in range(20):
            next(frames)
        with out.open("wb") as log:
            process = subprocess.Popen(command("watch", "s", "--json", "--url", url), stdout=log, stderr=log)
        try:
            wait_for_text(out, '"seq":30,')
            server.kill()
            with ServerProcess(tmp_path / "data", "endless", "hello", port=port) as restarted:
                wait_for_text(out, "run_failed")
                restarted.ask("more", session_id="s", agent="hello").take(10**6)
                wait_for_text(out, "run_finished")
                seqs = [json.loads(line)["seq"] for line in out.read_text().splitlines()]
                assert seqs == sorted(set(seqs))
                assert seqs[-1] == restarted.get("/sessions/s")[1]["last_seq"]
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(DEADLINE) == 0
