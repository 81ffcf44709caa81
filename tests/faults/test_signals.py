"""SIGTERM in the middle of streams, and signs of life in silence."""

import signal
from pathlib import Path

from limelight.config import Settings
from tests.faults.process import ServerProcess


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
        assert server.terminate(15) == -signal.SIGTERM
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


def test_silence_is_filled_with_comments(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data", "quiet", LIMELIGHT_HEARTBEAT_SECONDS="0.2") as server:
        stream = server.ask()
        run_id = stream.run_id
        stream.connection.settimeout(5)
        heard = 0
        while heard < 5:
            heard += stream.connection.recv(4096).count(b": ping\n\n")
        stream.close()
        assert server.post(f"/runs/{run_id}/cancel")[1]["state"] == "cancelled"


def test_the_usual_heartbeat_is_at_most_ten_seconds_apart() -> None:
    assert Settings().server.heartbeat_seconds <= 10
