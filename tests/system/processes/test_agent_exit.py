"""An agent that calls `exit` in a task of its framework: its run fails, and the server continues."""

import signal
from pathlib import Path

import pytest

from tests.system.processes.server_process import ServerProcess


@pytest.mark.requirement("agent-error")
@pytest.mark.parametrize("agent", ["quits", "quitting_graph"])
def test_exit_in_a_task_of_an_agent_fails_its_run_only(tmp_path: Path, agent: str) -> None:
    with ServerProcess(tmp_path / "data", agent, "steady") as server:
        other = server.ask(agent="steady", session_id="other")
        frames = iter(other)
        next(frames)
        for _ in range(2):
            left = list(server.ask(agent=agent, session_id="s"))
            assert [data["type"] for _, data in left][-2:] == ["error", "done"]
            assert left[-2][1]["data"]["code"] == "agent_error"
            assert "SystemExit" in left[-2][1]["data"]["message"]
        assert list(frames)[-1][1] == {"type": "done"}
        assert server.get(f"/runs/{other.run_id}")[1]["state"] == "finished"
        assert server.terminate() == -signal.SIGTERM
