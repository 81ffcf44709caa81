"""A run that waits for a person, and servers that come and go."""

import signal
from pathlib import Path

import pytest

from tests.faults.process import ServerProcess


@pytest.mark.parametrize("how", ["killed", "terminated"])
def test_a_waiting_run_outlives_its_server(tmp_path: Path, how: str) -> None:
    data = tmp_path / "data"
    with ServerProcess(data, "asks") as server:
        stream = server.ask(session_id="s")
        asked = next(frame for _, frame in stream if frame["type"] == "approval")["data"]
        run_id = stream.run_id
        if how == "killed":
            server.kill()
        else:
            assert server.terminate(15) == -signal.SIGTERM
        assert not any(frame["type"] in ("error", "done") for _, frame in stream)
    with ServerProcess(data, "asks") as server:
        assert server.get(f"/runs/{run_id}")[1]["state"] == "waiting"
        server.post(f"/runs/{run_id}/approvals/{asked['approval_id']}", {"decision": "approve"})
        frames = [frame for _, frame in server.stream("GET", f"/runs/{run_id}/stream?after=0")]
        assert frames[-1] == {"type": "done"}
        said = "".join(frame["data"]["content"] for frame in frames if frame["type"] == "token")
        assert said == "decided: True"
        assert sum(frame["type"] == "approval" for frame in frames) == 2  # asked once, and answered
        assert "Traceback" not in server.log
