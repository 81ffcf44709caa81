"""What a newcomer can provoke, agent by agent, as docs/agents.md has it: it happens, or the answer says why not."""

from collections.abc import Callable
from pathlib import Path

import pytest

from limelight.events import AgentStarted, ApprovalRequested, ApprovalResolved, ToolFinished
from tests.builtin.test_agents import calls, failed, stage
from tests.sources.live_turn import FinishedRun, checked_run
from tests.support.markdown import rows, sections
from tests.support.server import Frame, Served

DOCUMENT = (Path(__file__).parents[2] / "docs" / "agents.md").read_text()
PROVOKED = {row[0].strip('"'): row[1:] for row in rows(sections(DOCUMENT, 2)["What you can provoke"])}
AGENTS = ("deep", "agno", "agno-team", "react", "codact", "demo")


async def provoke(served: Served, phrase: str, decision: str = "approve") -> FinishedRun:
    """A run whose questions are all answered so."""
    frames: list[Frame] = []
    async for frame in served.ask(f"{phrase} about bees", format="records", session_id="s"):
        frames.append(frame)
        if frame.data["event"]["kind"] == "approval_requested":
            place = f"/runs/{frame.data['run_id']}/approvals/{frame.data['event']['approval_id']}"
            assert (await served.http.post(place, json={"decision": decision})).status_code == 200
    return checked_run(frames)


def slow(run: FinishedRun) -> bool:
    return any((finished.duration_ms or 0) >= 2900 for finished in run.all(ToolFinished))


SEEN: dict[str, Callable[[FinishedRun], bool]] = {
    "try an error": lambda run: bool(failed(run)),
    "a long answer": lambda run: len(f"{run.text()} {run.answer}".split()) > 1500,
    "a slow tool": slow,
    "an approval": lambda run: bool(run.all(ApprovalRequested)),
    "two helpers at once": lambda run: len(run.all(AgentStarted)) == 2,
}


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("phrase", SEEN)
async def test_it_happens_or_the_answer_says_that_it_cannot(tmp_path: Path, agent: str, phrase: str) -> None:
    async with stage(tmp_path / "data", agent) as served:
        run = await provoke(served, phrase)
    happens = bool(PROVOKED[phrase][AGENTS.index(agent)])
    assert SEEN[phrase](run) == happens, calls(run)
    told = f"You asked for {phrase}, but no tool on offer can do that."
    assert (told in f"{run.text()} {run.answer}") == (not happens and agent != "demo")


@pytest.mark.parametrize("agent", ["deep", "agno", "demo"])
@pytest.mark.parametrize("decision", ["approve", "reject"])
async def test_what_a_person_says_counts(tmp_path: Path, agent: str, decision: str) -> None:
    async with stage(tmp_path / "data", agent) as served:
        run = await provoke(served, "an approval", decision)
    (resolved,) = run.all(ApprovalResolved)
    assert resolved.decision == decision
    folder = tmp_path / "data" / "workspaces" / "s"
    deleted = not (folder / "understudy-note.txt").exists()
    assert (folder / "report.md").exists() == (agent == "demo" and decision == "approve")
    assert deleted == (agent == "demo" or decision == "approve")
    assert (folder / "bees.md").exists()
