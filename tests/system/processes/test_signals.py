"""SIGTERM and SIGHUP during streams, and heartbeats of silent streams."""

import signal
from pathlib import Path

import httpx
import psutil
import pytest

from limelight.config import Settings
from tests.support.wait import DEADLINE, wait_for
from tests.system.commands.terminal import Terminal
from tests.system.processes.server_process import AGENTS_FILE, ServerProcess, free_port

STUCK = Path(__file__).with_name("stuck_store_agents.py")
"""Not imported: it would make the stores of this process hang."""


@pytest.mark.requirement("shutdown")
def test_sigterm_ends_runs_streams_and_process_in_order(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with ServerProcess(data, "endless", "quiet", "hello") as server:
        talking = server.ask(session_id="talks", agent="endless")
        waiting = server.ask(session_id="waits", agent="quiet")
        server.post("/chat", {"messages": [{"role": "user", "content": "x"}], "session_id": "idle", "agent": "hello"})
        idle = server.stream("GET", "/sessions/idle/stream")
        frames = iter(talking)
        for _ in range(50):
            next(frames)
        assert server.terminate() == -signal.SIGTERM
        for stream, rest in ((talking, list(frames)), (waiting, list(waiting))):
            error, done = rest[-2][1], rest[-1][1]
            assert (error["type"], error["data"]["code"]) == ("error", "interrupted")
            assert done == {"type": "done"}
            assert stream.whole
        assert [data["type"] for _, data in idle][-1] == "done"
        assert idle.whole
        assert "Traceback" not in server.log
        assert "ERROR" not in server.log
    with ServerProcess(data, "hello") as server:
        _, run = server.get(f"/runs/{talking.run_id}")
        assert (run["state"], run["error"]["code"]) == ("failed", "interrupted")


@pytest.mark.requirement("shutdown")
def test_runs_may_end_within_the_grace_time(tmp_path: Path) -> None:
    may_end = tmp_path / "may end"
    with ServerProcess(tmp_path / "data", "until_file_exists", LIMELIGHT_GRACE_SECONDS="60") as server:
        stream = server.ask(str(may_end))
        frames = iter(stream)
        next(frames)
        server.signal(signal.SIGTERM)
        server.until_it_says("1 run has 60 s to end")
        status, ready = server.get("/ready")
        assert (status, ready["checks"]["server"]) == (503, "stopping")
        status, problem = server.post("/chat", {"messages": [{"role": "user", "content": "x"}]})
        assert (status, problem["code"], problem["retry_after"]) == (503, "shutting_down", 5)
        again = server.follow(stream.run_id)  # viewers may still reconnect
        may_end.touch()
        for viewer in (list(frames), list(again)):
            assert [data["type"] for _, data in viewer][-1] == "done"
            assert not [data for _, data in viewer if data["type"] == "error"]
        assert server.wait() == -signal.SIGTERM
    with ServerProcess(tmp_path / "data", "hello") as server:
        assert server.get(f"/runs/{stream.run_id}")[1]["state"] == "finished"


@pytest.mark.requirement("sighup")
def test_sighup_ends_neither_the_server_nor_its_runs(tmp_path: Path) -> None:
    may_end = tmp_path / "may end"
    with ServerProcess(tmp_path / "data", "until_file_exists") as server:
        stream = server.ask(str(may_end))
        frames = iter(stream)
        next(frames)
        server.signal(signal.SIGHUP)
        server.until_it_says("SIGHUP is ignored")
        may_end.touch()
        rest = [data for _, data in frames]
        assert rest[-1] == {"type": "done"}
        assert not [data for data in rest if data["type"] == "error"]
        assert server.get("/ready")[0] == 200
        assert server.terminate() == -signal.SIGTERM


@pytest.mark.requirement("sighup")
def test_server_whose_terminal_is_closed_shuts_down_in_order(tmp_path: Path) -> None:
    port = free_port()
    arguments = ["serve", f"{AGENTS_FILE}:quiet", "--port", str(port), "--data", str(tmp_path / "data")]
    with Terminal(*arguments, folder=tmp_path) as terminal:
        terminal.wait_for("Limelight serves quiet")
        url, body = f"http://127.0.0.1:{port}/chat/stream", {"messages": [{"role": "user", "content": "x"}]}
        with httpx.stream("POST", url, json=body, timeout=DEADLINE) as response:
            lines = response.iter_lines()
            next(line for line in lines if line.startswith("data: "))
            terminal.hang_up()
            rest = [line for line in lines if line.startswith("data: ")]
        assert '"interrupted"' in rest[-2]
        assert rest[-1] == 'data: {"type":"done"}'
        assert terminal.exit_code() == -signal.SIGTERM


def test_run_that_waits_for_a_decision_does_not_delay_the_shutdown(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data", "asks", LIMELIGHT_GRACE_SECONDS="3600") as server:
        stream = server.ask()
        next(frame for _, frame in stream if frame["type"] == "approval")
        assert server.terminate() == -signal.SIGTERM
        assert "Limelight is stopping." in server.log


@pytest.mark.requirement("shutdown")
def test_second_signal_ends_runs_at_once(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data", "quiet", LIMELIGHT_GRACE_SECONDS="3600") as server:
        stream = server.ask()
        frames = iter(stream)
        next(frames)
        server.signal(signal.SIGTERM)
        server.until_it_says("Once more ends it now")
        assert server.terminate() == -signal.SIGTERM
        assert list(frames)[-2][1]["data"]["code"] == "interrupted"


@pytest.mark.requirement("shutdown-ends")
@pytest.mark.parametrize(("agent", "number"), [("blocks", signal.SIGTERM), ("hangs", signal.SIGINT)])
def test_process_ends_although_an_agent_hangs(tmp_path: Path, agent: str, number: signal.Signals) -> None:
    with ServerProcess(tmp_path / "data", agent, "hello") as server:
        stream = server.ask(str(tmp_path), agent=agent)
        (tmp_path / "go").touch()
        server.until_file(tmp_path / "blocked")
        threads = psutil.Process(server.pid).num_threads
        before = threads()
        server.signal(number)
        if agent == "blocks":
            wait_for("the thread that the first signal starts", lambda: threads() > before)
            server.signal(number)
        assert server.wait() == 1
        assert "shutdown timed out" in server.log
        assert ("in block" if agent == "blocks" else "limelight-work_") in server.log
    with ServerProcess(tmp_path / "data", "hello") as server:
        _, run = server.get(f"/runs/{stream.run_id}")
        assert (run["state"], run["error"]["code"]) == ("failed", "interrupted")


@pytest.mark.requirement("shutdown-ends")
def test_process_ends_although_the_store_does_not_close(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data", f"{STUCK}:hello") as server:
        list(server.ask())
        server.signal(signal.SIGTERM)
        server.until_it_says("the store hangs")
        server.signal(signal.SIGTERM)
        assert server.wait() == 1
        assert "shutdown timed out" in server.log


@pytest.mark.requirement("heartbeat")
def test_silent_stream_gets_comments(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data", "quiet", LIMELIGHT_HEARTBEAT_SECONDS="0.2") as server:
        stream = server.ask()
        run_id = stream.run_id
        heard = 0
        while heard < 5:
            heard += stream.connection.recv(4096).count(b": ping\n\n")
        stream.close()
        assert server.post(f"/runs/{run_id}/cancel")[1]["state"] == "cancelled"


@pytest.mark.requirement("heartbeat")
def test_default_heartbeat_is_shorter_than_the_default_read_timeout_of_httpx() -> None:
    timeout = httpx.Client().timeout.read
    assert timeout is not None
    assert Settings().server.heartbeat_seconds < timeout
