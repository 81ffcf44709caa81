"""The setting `approve`: which tools of the built-in agents need approval."""

from pathlib import Path

import pytest

from limelight.auth.key_file import Keyring
from limelight.events import ApprovalRequested, ApprovalResolved, RunFinished, ToolFinished
from tests.builtin.agent_runs import QUESTION, ask_and_decide, serve_agent
from tests.sources.live_turn import checked_run
from tests.support.server import asking

CASES = [
    ("deep", "ls"),
    ("deep", "search"),
    ("agno", "list_files"),
    ("agno", "read_file"),
    ("agno-team", "search"),
    ("react", "search"),
    ("codact", "search"),
    ("codact", "python_interpreter"),
]


@pytest.mark.requirement("approve-setting")
@pytest.mark.parametrize(("agent", "tool"), CASES)
async def test_agent_asks_before_the_configured_tools(tmp_path: Path, agent: str, tool: str) -> None:
    async with serve_agent(tmp_path / "data", agent, f'[agents.{agent}]\napprove = ["{tool}"]') as served:
        run = await ask_and_decide(served, QUESTION, decision="approve")
    assert isinstance(run.terminal, RunFinished)
    assert {asked.name for asked in run.all(ApprovalRequested)} == {tool}
    assert {(one.decision, one.by) for one in run.all(ApprovalResolved)} == {("approve", "local")}
    assert run.call(tool).finished.error is None


@pytest.mark.requirement("approve-setting")
@pytest.mark.parametrize(
    ("agent", "tool"), [("deep", "ls"), ("agno", "list_files"), ("react", "search"), ("codact", "python_interpreter")]
)
async def test_rejected_tool_does_not_run(tmp_path: Path, agent: str, tool: str) -> None:
    async with serve_agent(tmp_path / "data", agent, f'[agents.{agent}]\napprove = ["{tool}"]') as served:
        run = await ask_and_decide(served, QUESTION, decision="reject")
    assert isinstance(run.terminal, RunFinished)
    rejected = {asked.call_id for asked in run.all(ApprovalRequested)}
    assert rejected
    assert all(one.error for one in run.all(ToolFinished) if one.call_id in rejected)


@pytest.mark.parametrize("agent", ["deep", "agno", "agno-team", "react", "codact"])
async def test_empty_list_disables_approvals(tmp_path: Path, agent: str) -> None:
    async with serve_agent(tmp_path / "data", agent, f"[agents.{agent}]\napprove = []") as served:
        frames = [f async for f in served.ask("an approval about bees", format="records")]
    assert not checked_run(frames).all(ApprovalRequested)


@pytest.mark.parametrize(("agent", "tool"), [("deep", "ls"), ("agno", "list_files")])
async def test_waiting_runs_do_not_count_as_concurrent_runs(tmp_path: Path, agent: str, tool: str) -> None:
    """Their state is in the store, so other runs can start within the limit of one."""
    async with serve_agent(
        tmp_path / "data", agent, f'[agents.{agent}]\napprove = ["{tool}"]', limits__runs=1
    ) as served:
        waiting: list[str] = []
        for number in range(4):
            async for frame in served.ask(QUESTION, format="records", session_id=f"s{number}"):
                if frame.data["event"]["kind"] == "approval_requested":
                    waiting.append(frame.data["run_id"])
                    break
        assert len(waiting) == 4
        for run_id in waiting:
            assert (await served.http.post(f"/runs/{run_id}/cancel", json={})).json()["state"] == "cancelled"


async def test_waiting_runs_per_user_are_limited(tmp_path: Path) -> None:
    config = '[agents.agno]\napprove = ["list_files"]'
    async with serve_agent(tmp_path / "data", "agno", config, limits__waiting_per_user=2) as served:
        ann = {"authorization": f"Bearer {Keyring(tmp_path / 'data').create('ann', ('use',), 1)[1]}"}
        for number in range(2):
            body = asking(QUESTION, session_id=f"s{number}")
            async for frame in served.stream("POST", "/chat/stream?format=records", json=body, headers=ann):
                if frame.data["event"]["kind"] == "approval_requested":
                    break
        refused = await served.problem("POST", "/chat", json=asking(QUESTION, session_id="s2"), headers=ann)
        assert (refused["code"], "2 runs of yours wait for a person" in refused["detail"]) == ("too_many_runs", True)
