# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
"""LangGraph: graphs that wait for a person."""

from pathlib import Path
from typing import Any, TypedDict

import pytest
from deepagents import create_deep_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.tools import tool
from langgraph.types import interrupt

from limelight.events import ApprovalRequested, ApprovalResolved, RunCancelled, RunFailed, RunFinished, ToolFinished
from tests.sources.langgraph.graphs import chain
from tests.sources.langgraph.langgraph_scenarios import TOOLS, answering, careful, careful_helper, model, plain
from tests.sources.live_turn import FinishedRun, ModelEndpoint, run_agent, serve_agent

APPROVE = {"decision": "approve"}
TWO_DANGERS = """
- match: "help: one"
  turns:
    - steps: [{tool_calls: [{name: danger, arguments: {path: /tmp/one}}]}]
    - steps: [{text: First.}]
- match: "help: two"
  turns:
    - steps: [{tool_calls: [{name: danger, arguments: {path: /tmp/two}}]}]
    - steps: [{text: Second.}]
- match: go on
  turns: [{steps: [{text: I see.}]}]
- turns:
    - steps:
        - tool_calls:
            - {name: task, arguments: {description: "help: one", subagent_type: helper}}
            - {name: task, arguments: {description: "help: two", subagent_type: helper}}
    - steps: [{text: All done.}]
"""


def finished(run: FinishedRun) -> None:
    assert isinstance(run.terminal, RunFinished), run.terminal


async def test_two_sub_agents_wait_and_each_gets_its_own_decision(tmp_path: Path) -> None:
    def decide(asked: ApprovalRequested) -> dict[str, Any]:
        return APPROVE if asked.args == {"path": "/tmp/one"} else {"decision": "reject", "reason": "not that one"}

    run = await run_agent(careful_helper, TWO_DANGERS, tmp_path, decide=decide)
    finished(run)
    asked = run.all(ApprovalRequested)
    assert len(asked) == 2 and len({a.agent_id for a in asked}) == 2
    assert run.at(asked[1]) < run.at(run.all(ApprovalResolved)[0])
    results = {str(call.args): call for call in (run.call("danger", 0), run.call("danger", 1))}
    one, two = results["{'path': '/tmp/one'}"], results["{'path': '/tmp/two'}"]
    assert (one.result, one.error) == ("/tmp/one is gone", None)
    assert "not that one" in (two.error or "")
    assert [run.call("task", n).result for n in (0, 1)] == ["First.", "Second."]
    assert all(a.call_id in (one.call_id, two.call_id) for a in asked)


def nested(endpoint: ModelEndpoint) -> Any:
    """A sub-agent with a sub-agent that needs an approval."""
    inner = {
        "name": "inner",
        "description": "x",
        "system_prompt": "x",
        "tools": TOOLS,
        "interrupt_on": {"danger": True},
    }
    outer = create_deep_agent(model=model(endpoint), tools=TOOLS, subagents=[inner], name="outer")  # pyright: ignore[reportArgumentType]
    helping = {"name": "outer", "description": "x", "runnable": outer}
    return create_deep_agent(model=model(endpoint), tools=TOOLS, subagents=[helping])  # pyright: ignore[reportArgumentType]


NESTED = """
- match: "deepest:"
  turns:
    - steps: [{tool_calls: [{name: danger, arguments: {path: /tmp/x}}]}]
    - steps: [{text: Gone.}]
- match: "deeper:"
  turns:
    - steps: [{tool_calls: [{name: task, arguments: {description: "deepest: go", subagent_type: inner}}]}]
    - steps: [{text: Inner says gone.}]
- turns:
    - steps: [{tool_calls: [{name: task, arguments: {description: "deeper: go", subagent_type: outer}}]}]
    - steps: [{text: All done.}]
"""


async def test_nested_sub_agent_asks_once_with_its_own_agent_id(tmp_path: Path) -> None:
    run = await run_agent(nested, NESTED, tmp_path, decide=lambda _: APPROVE)
    finished(run)
    outer, inner = run.agent("outer"), run.agent("inner")
    assert (outer.parent_id, inner.parent_id) == ("", outer.agent_id)
    assert run.one(ApprovalRequested).agent_id == inner.agent_id
    assert run.call("danger").result == "/tmp/x is gone"
    assert run.text() == "All done."
    assert run.text(outer.agent_id) == "Inner says gone."
    assert len({e.agent_id for e in run.all(type(outer))}) == 2


async def test_sequential_interrupts_are_asked_one_by_one(tmp_path: Path) -> None:
    script = answering(
        *(f"- steps: [{{tool_calls: [{{name: danger, arguments: {{path: /tmp/{n}}}, id: same}}]}}]" for n in range(3))
    )
    run = await run_agent(careful, script, tmp_path, decide=lambda _: APPROVE)
    finished(run)
    assert [a.args for a in run.all(ApprovalRequested)] == [{"path": f"/tmp/{n}"} for n in range(3)]
    assert [run.call("danger", n).result for n in range(3)] == [f"/tmp/{n} is gone" for n in range(3)]


SIBLINGS = answering(
    "- steps: [{tool_calls: [{name: add, arguments: {a: 2, b: 3}}, {name: danger, arguments: {path: /tmp/x}}]}]"
)


async def test_other_tool_of_the_same_reply_waits_too(tmp_path: Path) -> None:
    run = await run_agent(careful, SIBLINGS, tmp_path, decide=lambda _: APPROVE)
    finished(run)
    assert run.one(ApprovalRequested).call_id == run.call("danger").call_id
    assert run.at(run.one(ApprovalResolved)) < run.call("add").ended_at
    assert (run.call("add").result, run.call("danger").result) == ("5", "/tmp/x is gone")


async def test_other_tool_runs_though_its_neighbour_was_rejected(tmp_path: Path) -> None:
    run = await run_agent(careful, SIBLINGS, tmp_path, decide=lambda _: {"decision": "reject"})
    finished(run)
    assert (run.call("add").result, run.call("add").error) == ("5", None)
    assert run.call("danger").error


# Allowed decisions


def offering(*decisions: Any) -> Any:
    def make(endpoint: ModelEndpoint) -> Any:
        return plain(
            endpoint, middleware=[HumanInTheLoopMiddleware({"danger": {"allowed_decisions": list(decisions)}})]
        )

    return make


DANGER = answering("- steps: [{tool_calls: [{name: danger, arguments: {path: /tmp/x}}]}]")


async def test_request_offers_only_the_decisions_that_the_graph_allows(tmp_path: Path) -> None:
    run = await run_agent(offering("approve", "reject"), DANGER, tmp_path, decide=lambda _: APPROVE)
    finished(run)
    assert run.one(ApprovalRequested).decisions == ("approve", "reject")


async def test_rejection_is_the_tools_result_where_only_respond_is_allowed(tmp_path: Path) -> None:
    run = await run_agent(
        offering("respond"), DANGER, tmp_path, decide=lambda _: {"decision": "reject", "reason": "I did it myself"}
    )
    finished(run)
    assert run.one(ApprovalRequested).decisions == ("reject",)
    assert (run.call("danger").result, run.call("danger").error) == ("I did it myself", None)


async def test_expired_request_is_a_rejection(tmp_path: Path) -> None:
    async with serve_agent(careful, DANGER, tmp_path, approvals__expiry_seconds=0.2) as server:
        run = await server.run()
    finished(run)
    resolved = run.one(ApprovalResolved)
    assert (resolved.decision, resolved.by, resolved.reason) == ("reject", "system", "expired")
    assert "expired" in (run.call("danger").error or "")


async def test_expired_request_fails_a_graph_that_allows_no_rejection(tmp_path: Path) -> None:
    async with serve_agent(offering("approve"), DANGER, tmp_path, approvals__expiry_seconds=0.2) as server:
        run = await server.run()
    assert isinstance(run.terminal, RunFailed)
    assert "takes no rejection" in run.terminal.message


# Graphs that interrupt themselves


class Asking(TypedDict):
    question: str
    answer: str


def asking(value: Any, *, times: int = 1, **compiling: Any) -> Any:
    def ask(state: Asking) -> dict[str, str]:
        return {"answer": " and ".join(repr(interrupt(value)) for _ in range(times))}

    return chain(Asking, ask=ask).compile(**compiling)


@pytest.mark.parametrize(
    ("value", "decision", "shown", "got"),
    [
        ("How old are you?", APPROVE, {"value": "How old are you?"}, "True"),
        ("How old are you?", {"decision": "reject"}, {"value": "How old are you?"}, "False"),
        ("How old are you?", {"decision": "edit", "args": {"value": 42}}, {"value": "How old are you?"}, "42"),
        ({"draft": "x"}, {"decision": "edit", "args": {"draft": "y"}}, {"draft": "x"}, "{'draft': 'y'}"),
        (["a", "b"], APPROVE, {"value": ["a", "b"]}, "True"),
        (None, APPROVE, {"value": ""}, "True"),
    ],
)
async def test_interrupt_with_any_value_is_a_request(
    tmp_path: Path, value: Any, decision: Any, shown: Any, got: str
) -> None:
    run = await run_agent(lambda _: asking(value), "", tmp_path, decide=lambda _: decision)
    finished(run)
    asked = run.one(ApprovalRequested)
    assert (asked.name, asked.args, asked.call_id) == ("interrupt", shown, "")
    assert run.answer == got


async def test_node_that_interrupts_twice_asks_twice(tmp_path: Path) -> None:
    answers = iter(({"decision": "edit", "args": {"value": 1}}, {"decision": "edit", "args": {"value": 2}}))
    run = await run_agent(lambda _: asking("n", times=2), "", tmp_path, decide=lambda _: next(answers))
    assert run.answer == "1 and 2"


async def test_interrupt_without_a_checkpointer_fails_the_run(tmp_path: Path) -> None:
    run = await run_agent(lambda _: asking("n", checkpointer=False), "", tmp_path)
    assert isinstance(run.terminal, RunFailed)
    assert "keeps no state" in run.terminal.message


def repeat(state: Asking) -> dict[str, str]:
    return {"answer": repr(state["question"])}


@pytest.mark.parametrize(("decision", "answer"), [("approve", "'go'"), ("reject", "")])
async def test_breakpoint_asks_whether_to_continue(tmp_path: Path, decision: str, answer: str) -> None:
    graph = chain(Asking, work=repeat).compile(interrupt_before=["work"])
    run = await run_agent(lambda _: graph, "", tmp_path, decide=lambda _: {"decision": decision})
    finished(run)
    assert run.one(ApprovalRequested).args == {"next": ["work"]}
    assert run.answer == answer


async def test_rejected_breakpoint_does_not_repeat_an_earlier_answer(tmp_path: Path) -> None:
    graph = chain(Asking, work=repeat).compile(interrupt_before=["work"])
    async with serve_agent(lambda _: graph, "", tmp_path) as server:
        run = await server.run_deciding(lambda _: APPROVE, question="one", session_id="a")
        assert run.answer == "'one'"
        run = await server.run_deciding(lambda _: {"decision": "reject"}, question="two", session_id="a")
        assert run.answer == ""
        run = await server.run_deciding(lambda _: APPROVE, question="three", session_id="a")
        assert run.answer == "'three'"


@tool
def confirm(what: str) -> str:
    """Ask before it is done."""
    return f"{what}: {interrupt(f'Really {what}?')}, {interrupt('Sure?')}"


async def test_interrupt_inside_of_a_tool_belongs_to_its_call(tmp_path: Path) -> None:
    def make(endpoint: ModelEndpoint) -> Any:
        from langchain.agents import create_agent

        return create_agent(model(endpoint), [confirm])

    script = answering("- steps: [{tool_calls: [{name: confirm, arguments: {what: leave}}]}]")
    run = await run_agent(make, script, tmp_path, decide=lambda _: APPROVE)
    finished(run)
    call = run.call("confirm")
    assert [a.args for a in run.all(ApprovalRequested)] == [{"value": "Really leave?"}, {"value": "Sure?"}]
    assert {a.call_id for a in run.all(ApprovalRequested)} == {call.call_id}
    assert call.result == "leave: True, True"


# Stop


@pytest.mark.parametrize(("make", "script"), [(careful, DANGER), (careful_helper, TWO_DANGERS)])
async def test_turn_after_a_stop_while_waiting_works(tmp_path: Path, make: Any, script: str) -> None:
    script = "- match: go on\n  turns: [{steps: [{text: I see.}]}]\n" + (
        script
        if script.startswith("\n- match")
        else "- turns:\n" + "\n".join(f"    {line}" for line in script.split("\n"))
    )
    async with serve_agent(make, script, tmp_path) as server:
        stopped = await server.run_until(lambda e: isinstance(e, ApprovalRequested), session_id="a")
        assert isinstance(stopped.terminal, RunCancelled)
        assert all(e.error == "stopped" for e in stopped.all(ToolFinished))
        assert all(r.decision == "reject" for r in stopped.all(ApprovalResolved))
        run = await server.run("go on", session_id="a")
        finished(run)
        assert run.answer == "I see."
        assert not run.all(ApprovalRequested)
