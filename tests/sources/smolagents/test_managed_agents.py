"""smolagents: agents that are managed, at any depth, one after the other and at once."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUntypedFunctionDecorator=false, reportUnknownArgumentType=false

from pathlib import Path

import pytest

from limelight.events import (
    AgentFinished,
    AgentStarted,
)
from tests.sources.live_turn import Stage, play
from tests.sources.recorded_requests import recorded, said
from tests.sources.smolagents.smolagents_scenarios import (
    PARALLEL_SUB_AGENTS,
    calling,
    leading,
)

DEEP = """
- match: the inner task
  turns:
    - steps: [{text: I am the innermost.}, {tool_calls: [{name: add, arguments: {a: 2, b: 3}}]}]
    - steps: [{tool_calls: [{name: final_answer, arguments: {answer: Five.}}]}]
- match: the outer task
  turns:
    - steps: [{tool_calls: [{name: inner, arguments: {task: do the inner task}}]}]
    - steps: [{tool_calls: [{name: final_answer, arguments: {answer: It is five.}}]}]
- turns:
    - steps: [{tool_calls: [{name: outer, arguments: {task: do the outer task}}]}]
    - steps: [{tool_calls: [{name: final_answer, arguments: {answer: All done.}}]}]
"""


async def test_agents_are_managed_at_any_depth(tmp_path: Path) -> None:
    def make(stage: Stage) -> object:
        inner = calling(name="inner", description="Inner.")(stage)
        outer = calling(name="outer", description="Outer.", managed_agents=[inner])(stage)
        return calling(managed_agents=[outer])(stage)

    run = await play(make, DEEP, tmp_path)
    outer, inner = run.agent("outer"), run.agent("inner")
    assert (outer.parent_id, inner.parent_id) == ("", outer.agent_id)
    assert run.call("inner").started.agent_id == outer.agent_id
    assert run.call("add").started.agent_id == inner.agent_id
    assert inner.call_id == run.call("inner").call_id
    assert run.reasoning(inner.agent_id) == "I am the innermost."
    assert run.answer == "All done."


async def test_a_managed_agent_whose_model_fails_is_seen_to_and_its_manager_goes_on(tmp_path: Path) -> None:
    script = """
- match: a hopeless task
  turns: [{steps: [{error: {status: 500, message: On fire.}}]}]
- turns:
    - steps: [{tool_calls: [{name: helper, arguments: {task: a hopeless task}}]}]
    - steps: [{tool_calls: [{name: final_answer, arguments: {answer: All done.}}]}]
"""

    def make(stage: Stage) -> object:
        return calling(managed_agents=[calling(name="helper", description="Helps.")(stage)])(stage)

    run = await play(make, script, tmp_path)
    assert "On fire." in (run.one(AgentFinished).error or "")
    assert "On fire." in (run.call("helper").error or "")
    assert run.answer == "All done."


async def test_managed_agents_at_once_do_not_share_a_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = recorded(monkeypatch)
    run = await play(leading(calling, calling), PARALLEL_SUB_AGENTS, tmp_path)
    helpers = [str(said(request)) for request in requests if "helpful agent" in str(said(request)[0])]
    assert len(helpers) == 4
    assert not [text for text in helpers if "first job" in text and "second job" in text]
    first = next(call for call in (run.call("helper", 0), run.call("helper", 1)) if "first" in call.args["task"])
    assert "The first is done." in str(first.result)


async def test_one_managed_agent_after_the_other_has_ids_of_its_own(tmp_path: Path) -> None:
    script = """
- match: a small task
  turns: [{steps: [{tool_calls: [{name: final_answer, arguments: {answer: Done.}}]}]}]
- turns:
    - steps: [{tool_calls: [{id: same, name: helper, arguments: {task: a small task}}]}]
    - steps: [{tool_calls: [{id: same, name: helper, arguments: {task: a small task}}]}]
    - steps: [{tool_calls: [{name: final_answer, arguments: {answer: All done.}}]}]
"""

    def make(stage: Stage) -> object:
        return calling(managed_agents=[calling(name="helper", description="Helps.")(stage)])(stage)

    run = await play(make, script, tmp_path)
    assert [a.agent_id for a in run.all(AgentStarted)] == ["helper-1", "helper-2"]
    assert len({a.call_id for a in run.all(AgentStarted)}) == 2
