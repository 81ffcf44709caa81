"""smolagents: managed agents at any depth, in sequence and in parallel."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUntypedFunctionDecorator=false, reportUnknownArgumentType=false

from pathlib import Path

from limelight.events import AgentFinished, AgentStarted
from tests.sources.live_turn import ModelEndpoint, run_agent
from tests.sources.recorded_requests import Requests, conversation_in
from tests.sources.smolagents.smolagents_scenarios import PARALLEL_SUB_AGENTS, calling, leading

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


async def test_managed_agents_at_any_depth_are_sub_agents(tmp_path: Path) -> None:
    def make(endpoint: ModelEndpoint) -> object:
        inner = calling(name="inner", description="Inner.")(endpoint)
        outer = calling(name="outer", description="Outer.", managed_agents=[inner])(endpoint)
        return calling(managed_agents=[outer])(endpoint)

    run = await run_agent(make, DEEP, tmp_path)
    outer, inner = run.agent("outer"), run.agent("inner")
    assert (outer.parent_id, inner.parent_id) == ("", outer.agent_id)
    assert run.call("inner").started.agent_id == outer.agent_id
    assert run.call("add").started.agent_id == inner.agent_id
    assert inner.call_id == run.call("inner").call_id
    assert run.reasoning(inner.agent_id) == "I am the innermost."
    assert run.answer == "All done."


async def test_failed_managed_agent_is_shown_and_its_manager_continues(tmp_path: Path) -> None:
    script = """
- match: a hopeless task
  turns: [{steps: [{error: {status: 500, message: On fire.}}]}]
- turns:
    - steps: [{tool_calls: [{name: helper, arguments: {task: a hopeless task}}]}]
    - steps: [{tool_calls: [{name: final_answer, arguments: {answer: All done.}}]}]
"""
    run = await run_agent(leading(calling, calling), script, tmp_path)
    assert "On fire." in (run.one(AgentFinished).error or "")
    assert "On fire." in (run.call("helper").error or "")
    assert run.answer == "All done."


async def test_parallel_calls_of_a_managed_agent_do_not_share_memory(tmp_path: Path, requests: Requests) -> None:
    run = await run_agent(leading(calling, calling), PARALLEL_SUB_AGENTS, tmp_path)
    helpers = [
        str(conversation_in(request)) for request in requests if "helpful agent" in str(conversation_in(request)[0])
    ]
    assert len(helpers) == 4
    assert not [text for text in helpers if "first job" in text and "second job" in text]
    first = next(call for call in (run.call("helper", 0), run.call("helper", 1)) if "first" in call.args["task"])
    assert "The first is done." in str(first.result)


async def test_sequential_calls_of_a_managed_agent_have_unique_ids(tmp_path: Path) -> None:
    script = """
- match: a small task
  turns: [{steps: [{tool_calls: [{name: final_answer, arguments: {answer: Done.}}]}]}]
- turns:
    - steps: [{tool_calls: [{id: same, name: helper, arguments: {task: a small task}}]}]
    - steps: [{tool_calls: [{id: same, name: helper, arguments: {task: a small task}}]}]
    - steps: [{tool_calls: [{name: final_answer, arguments: {answer: All done.}}]}]
"""
    run = await run_agent(leading(calling, calling), script, tmp_path)
    assert [a.agent_id for a in run.all(AgentStarted)] == ["helper-1", "helper-2"]
    assert len({a.call_id for a in run.all(AgentStarted)}) == 2
