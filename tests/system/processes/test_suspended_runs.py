"""Runs that wait for a decision survive a restart of the server."""

import signal
from pathlib import Path

import pytest

from tests.system.processes.server_process import ServerProcess


@pytest.mark.requirement("waiting-run-survives-restart")
@pytest.mark.parametrize("how", ["killed", "terminated"])
def test_waiting_run_resumes_with_the_decision_after_a_restart(tmp_path: Path, how: str) -> None:
    data = tmp_path / "data"
    with ServerProcess(data, "asks") as server:
        stream = server.ask(session_id="s")
        asked = next(frame for _, frame in stream if frame["type"] == "approval")["data"]
        run_id = stream.run_id
        if how == "killed":
            server.kill()
        else:
            assert server.terminate() == -signal.SIGTERM
        assert not any(frame["type"] in ("error", "done") for _, frame in stream)
    with ServerProcess(data, "asks") as server:
        assert server.get(f"/runs/{run_id}")[1]["state"] == "waiting"
        server.post(f"/runs/{run_id}/approvals/{asked['approval_id']}", {"decision": "approve"})
        frames = [frame for _, frame in server.stream("GET", f"/runs/{run_id}/stream?after=0")]
        assert frames[-1] == {"type": "done"}
        said = "".join(frame["data"]["content"] for frame in frames if frame["type"] == "token")
        assert said == "decided: True"
        assert sum(frame["type"] == "approval" for frame in frames) == 2  # the request and the decision
        assert "Traceback" not in server.log


@pytest.mark.requirement("approval-without-agent")
def test_waiting_run_without_its_agent_can_be_stopped(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with ServerProcess(data, "asks") as server:
        stream = server.ask(session_id="s")
        asked = next(frame for _, frame in stream if frame["type"] == "approval")["data"]
        run_id = stream.run_id
        server.kill()
    with ServerProcess(data, "hello") as server:
        decided = server.post(f"/runs/{run_id}/approvals/{asked['approval_id']}", {"decision": "approve"})
        assert (decided[0], decided[1]["code"]) == (409, "agent_not_served")
        assert server.post(f"/runs/{run_id}/cancel")[1]["state"] == "cancelled"
        frames = [frame["type"] for _, frame in server.follow(run_id)]
        assert frames[-5:] == ["status", "approval", "status", "cancelled", "done"]
        assert [frame["type"] for _, frame in server.ask(session_id="s")][-1] == "done"
        assert "Traceback" not in server.log
