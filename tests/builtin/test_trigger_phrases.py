"""The trigger phrases of docs/agents.md with each agent: the effect is seen, or the answer says that it cannot be."""

from collections.abc import Callable
from pathlib import Path

import pytest

from limelight.events import AgentStarted, ApprovalRequested, ApprovalResolved, ToolFinished
from tests.builtin.agent_runs import ask_and_decide, call_names, serve_agent, tool_errors
from tests.sources.live_turn import FinishedRun
from tests.support.markdown import rows, sections

DOCUMENT = (Path(__file__).parents[2] / "docs" / "agents.md").read_text()
DOCUMENTED = {row[0].strip('"'): row[1:] for row in rows(sections(DOCUMENT, 2)["Trigger phrases"])}
AGENTS = ("deep", "agno", "agno-team", "react", "codact", "demo")


def is_slow(run: FinishedRun) -> bool:
    return any((finished.duration_ms or 0) >= 2900 for finished in run.all(ToolFinished))


EFFECTS: dict[str, Callable[[FinishedRun], bool]] = {
    "try an error": lambda run: bool(tool_errors(run)),
    "a long answer": lambda run: len(f"{run.text()} {run.answer}".split()) > 1500,
    "a slow tool": is_slow,
    "an approval": lambda run: bool(run.all(ApprovalRequested)),
    "two helpers at once": lambda run: len(run.all(AgentStarted)) == 2,
}


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("phrase", EFFECTS)
async def test_phrase_has_its_effect_or_the_answer_refuses_it(tmp_path: Path, agent: str, phrase: str) -> None:
    async with serve_agent(tmp_path / "data", agent) as served:
        run = await ask_and_decide(served, f"{phrase} about bees", decision="approve")
    is_documented = bool(DOCUMENTED[phrase][AGENTS.index(agent)])
    assert EFFECTS[phrase](run) == is_documented, call_names(run)
    refusal = f"You asked for {phrase}, but no tool on offer can do that."
    assert (refusal in f"{run.text()} {run.answer}") == (not is_documented and agent != "demo")


@pytest.mark.parametrize("agent", ["deep", "agno", "demo"])
@pytest.mark.parametrize("decision", ["approve", "reject"])
async def test_decision_determines_whether_the_tool_runs(tmp_path: Path, agent: str, decision: str) -> None:
    async with serve_agent(tmp_path / "data", agent) as served:
        run = await ask_and_decide(served, "an approval about bees", decision=decision)
    (resolved,) = run.all(ApprovalResolved)
    assert resolved.decision == decision
    folder = tmp_path / "data" / "workspaces" / "s"
    deleted = not (folder / "understudy-note.txt").exists()
    assert (folder / "report.md").exists() == (agent == "demo" and decision == "approve")
    assert deleted == (agent == "demo" or decision == "approve")
    assert (folder / "bees.md").exists()
