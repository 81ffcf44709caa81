"""The spans that a trace makes from the Records of a run."""

from random import Random

import pytest

from limelight.events import (
    AgentFinished,
    AgentStarted,
    AnyEvent,
    ApprovalRequested,
    ApprovalResolved,
    FinalAnswer,
    RunCancelled,
    RunFailed,
    RunFinished,
    RunStarted,
    StepFinished,
    StepStarted,
    Terminal,
    TextDelta,
    TextFinished,
    ToolFinished,
    ToolReady,
    ToolStarted,
    Usage,
)
from limelight.grammar import Grammar, closing_reason
from limelight.tracing.run_trace import RunTrace
from limelight.tracing.span import Span
from tests.support.legal_runs import write_run
from tests.tracing.trace_text import RUN_ID, SESSION_ID, as_records, spans_of, trace_lines

STARTED = RunStarted(agent="demo", input="What are bees?", turn=2, framework="function")
SECRET = "the honey is in the cellar"


def closed(events: list[AnyEvent], terminal: Terminal) -> list[AnyEvent]:
    """Return the events of a run with the events that the engine adds at its end."""
    grammar = Grammar()
    for event in events:
        grammar.check(event)
    return [*events, *grammar.missing_before(terminal, closing_reason(terminal)), terminal]


def single(spans: list[Span], name: str) -> Span:
    (found,) = [span for span in spans if span.name == name]
    return found


def test_parallel_calls_are_siblings_in_their_step() -> None:
    spans = spans_of(
        [
            STARTED,
            StepStarted(number=1),
            ToolStarted(call_id="a", name="search", args={}),
            ToolStarted(call_id="b", name="readurl"),
            ToolReady(call_id="b", args={}),
            ToolFinished(call_id="b", result="a page"),
            ToolFinished(call_id="a", result="Error: no luck", error="no luck"),
            StepFinished(number=1),
            FinalAnswer(content="Insects."),
            RunFinished(),
        ]
    )
    assert trace_lines(spans) == [
        "invoke_agent demo 0-90",
        "  step 1 10-70",
        "    execute_tool search 20-60 ! tool_error",
        "    execute_tool readurl 30-50",
    ]
    assert [span.name for span in spans] == [
        "execute_tool readurl",
        "execute_tool search",
        "step 1",
        "invoke_agent demo",
    ]


def test_sub_agents_are_children_of_their_spawning_calls() -> None:
    spans = spans_of(
        [
            STARTED,
            ToolStarted(call_id="t", name="task", args={}),
            AgentStarted(agent_id="a1", name="helper", call_id="t"),
            StepStarted(agent_id="a1", number=1),
            ToolStarted(agent_id="a1", call_id="u", name="task", args={}),
            AgentStarted(agent_id="a2", name="digger", parent_id="a1", call_id="u"),
            ToolStarted(agent_id="a2", call_id="v", name="dig", args={}),
            ToolFinished(agent_id="a2", call_id="v", result="dug"),
            AgentFinished(agent_id="a2", error="too deep"),
            ToolFinished(agent_id="a1", call_id="u", result="done"),
            StepFinished(agent_id="a1", number=1),
            AgentStarted(agent_id="a3", name="aside", parent_id="a1"),
            AgentFinished(agent_id="a3"),
            AgentFinished(agent_id="a1"),
            ToolFinished(call_id="t", result="done"),
            FinalAnswer(content="Deep."),
            RunFinished(),
        ]
    )
    assert trace_lines(spans) == [
        "invoke_agent demo 0-160",
        "  execute_tool task 10-140",
        "    invoke_agent helper 20-130",
        "      step 1 30-100",
        "        execute_tool task 40-90",
        "          invoke_agent digger 50-80 ! agent_error",
        "            execute_tool dig 60-70",
        "      invoke_agent aside 110-120",
    ]
    assert single(spans, "invoke_agent digger").attributes["gen_ai.agent.id"] == "a2"
    assert len({span.trace_id for span in spans}) == 1


def test_spans_have_the_attributes_of_the_conventions() -> None:
    spans = spans_of(
        [
            STARTED,
            StepStarted(number=1),
            Usage(model="gpt-x", input_tokens=5, output_tokens=1),
            Usage(model="gpt-x", input_tokens=2, output_tokens=1),
            ToolStarted(call_id="a", name="search", args={"q": SECRET}),
            ToolFinished(call_id="a", result=SECRET, duration_ms=7),
            StepFinished(number=1, input_tokens=7, output_tokens=2),
            StepStarted(number=2, step_kind="planning"),
            StepFinished(number=2, step_kind="planning", input_tokens=3, output_tokens=None),
            Usage(input_tokens=1, output_tokens=1),
            FinalAnswer(content=SECRET),
            RunFinished(code="max_steps"),
        ]
    )
    assert single(spans, "chat gpt-x").attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gpt-x",
        "gen_ai.usage.input_tokens": 7,
        "gen_ai.usage.output_tokens": 2,
        "limelight.step.number": 1,
        "limelight.step.kind": "action",
    }
    assert single(spans, "step 2").attributes == {
        "gen_ai.usage.input_tokens": 3,
        "gen_ai.usage.output_tokens": 0,
        "limelight.step.number": 2,
        "limelight.step.kind": "planning",
    }
    assert single(spans, "execute_tool search").attributes == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "search",
        "gen_ai.tool.call.id": "a",
        "limelight.tool.duration_ms": 7,
    }
    assert single(spans, "invoke_agent demo").attributes == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "demo",
        "gen_ai.conversation.id": SESSION_ID,
        "gen_ai.usage.input_tokens": 11,
        "gen_ai.usage.output_tokens": 3,
        "limelight.run.id": RUN_ID,
        "limelight.run.turn": 2,
        "limelight.run.state": "finished",
        "limelight.run.code": "max_steps",
        "limelight.framework": "function",
    }
    assert SECRET not in str(spans) and STARTED.input not in str(spans)


@pytest.mark.requirement("traces-without-content")
def test_spans_have_content_only_if_it_is_enabled() -> None:
    run = [
        STARTED,
        ToolStarted(call_id="a", name="search"),
        ToolReady(call_id="a", args={"q": SECRET}),
        ToolFinished(call_id="a", result={"hits": [SECRET]}, error="odd"),
        FinalAnswer(content={"bees": 3}),
        RunFinished(),
    ]
    spans = spans_of(run, content=True)
    call, asked = single(spans, "execute_tool search"), single(spans, "invoke_agent demo").attributes
    assert call.attributes["gen_ai.tool.call.arguments"] == f'{{"q":"{SECRET}"}}'
    assert call.attributes["gen_ai.tool.call.result"] == f'{{"hits":["{SECRET}"]}}'
    assert call.message == "odd"
    assert asked["gen_ai.input.messages"] == '[{"role":"user","parts":[{"type":"text","content":"What are bees?"}]}]'
    assert '"content":"{\\"bees\\":3}"' in str(asked["gen_ai.output.messages"])
    assert single(spans_of(run), "execute_tool search").message == ""


def test_call_with_an_unseen_result_is_marked_and_not_an_error() -> None:
    run: list[AnyEvent] = [STARTED, ToolStarted(call_id="a", name="wait", args={}), FinalAnswer(content="done")]
    spans = spans_of(closed(run, RunFinished()), content=True)
    call = single(spans, "execute_tool wait")
    assert (call.failed, call.attributes["limelight.tool.result_seen"]) == (False, False)
    assert "gen_ai.tool.call.result" not in call.attributes
    seen = spans_of([*run[:2], ToolFinished(call_id="a", result="x"), run[2], RunFinished()])
    assert "limelight.tool.result_seen" not in single(seen, "execute_tool wait").attributes


def test_stopped_run_is_not_an_error_but_its_open_spans_are() -> None:
    open_run: list[AnyEvent] = [
        STARTED,
        StepStarted(number=1),
        ToolStarted(call_id="a", name="fail", args={}),
        ToolFinished(call_id="a", result="Error: broke", error="broke"),
        ToolStarted(call_id="b", name="wait", args={}),
    ]
    spans = spans_of(closed(open_run, RunCancelled()))
    assert trace_lines(spans) == [
        "invoke_agent demo 0-70",
        "  step 1 10-60 ! cancelled",
        "    execute_tool fail 20-30 ! tool_error",
        "    execute_tool wait 40-50 ! cancelled",
    ]
    assert single(spans, "invoke_agent demo").attributes["limelight.run.state"] == "cancelled"


def test_error_that_equals_the_end_of_the_run_is_not_taken_for_a_stop() -> None:
    spans = spans_of(
        [
            STARTED,
            ToolStarted(call_id="a", name="fail", args={}),
            ToolFinished(call_id="a", result="Error: stopped", error="stopped"),
            RunCancelled(),
        ]
    )
    assert trace_lines(spans) == ["invoke_agent demo 0-30", "  execute_tool fail 10-20 ! tool_error"]


def test_span_that_ends_with_its_sub_agent_or_with_a_finished_run_is_stopped() -> None:
    inner: list[AnyEvent] = [STARTED, AgentStarted(agent_id="a", name="sub"), StepStarted(agent_id="a", number=1)]
    ended = closed(inner, RunFinished())[3]
    spans = spans_of([*inner, ended, AgentFinished(agent_id="a"), FinalAnswer(content=""), RunFinished()])
    assert trace_lines(spans) == [
        "invoke_agent demo 0-60",
        "  invoke_agent sub 10-40",
        "    step 1 20-30 ! stopped",
    ]


def test_rejected_call_has_its_own_error_type() -> None:
    spans = spans_of(
        [
            STARTED,
            ToolStarted(call_id="a", name="delete", args={}),
            ToolFinished(call_id="a", result="Error: no", error="no", outcome="rejected"),
            FinalAnswer(content=""),
            RunFinished(),
        ]
    )
    assert trace_lines(spans) == ["invoke_agent demo 0-40", "  execute_tool delete 10-20 ! rejected"]


def test_failed_run_has_code_and_error_id() -> None:
    open_run: list[AnyEvent] = [STARTED, ToolStarted(call_id="a", name="wait", args={})]
    spans = spans_of(closed(open_run, RunFailed(code="run_timeout", message=SECRET, error_id="err_1")))
    assert trace_lines(spans) == ["invoke_agent demo 0-30 ! run_timeout", "  execute_tool wait 10-20 ! run_timeout"]
    run = single(spans, "invoke_agent demo")
    assert run.attributes["limelight.error.id"] == "err_1"
    assert run.attributes["limelight.run.state"] == "failed"
    assert SECRET not in str(spans)


def test_approvals_are_events_of_the_waiting_span() -> None:
    spans = spans_of(
        [
            STARTED,
            ToolStarted(call_id="a", name="delete", args={}),
            ApprovalRequested(approval_id="p1", name="delete", args={"path": SECRET}, call_id="a"),
            ApprovalResolved(approval_id="p1", decision="reject", reason=SECRET, by="ann"),
            ToolFinished(call_id="a", result="no"),
            ApprovalRequested(approval_id="p2", name="send", args={}),
            ApprovalResolved(approval_id="p2", decision="approve", by="ann"),
            FinalAnswer(content="Sent."),
            RunFinished(),
        ]
    )
    assert trace_lines(spans) == [
        "invoke_agent demo 0-80",
        "  * approval.requested",
        "  * approval.resolved",
        "  execute_tool delete 10-40",
        "    * approval.requested",
        "    * approval.resolved",
    ]
    asked, resolved = single(spans, "execute_tool delete").events
    assert asked.attributes == {"limelight.approval.id": "p1", "limelight.approval.name": "delete"}
    assert resolved.attributes == {"limelight.approval.id": "p1", "limelight.approval.decision": "reject"}
    assert resolved.at_ns - asked.at_ns == 10_000_000
    assert SECRET not in str(spans)


def test_waiting_run_has_exported_its_finished_spans() -> None:
    trace = RunTrace(RUN_ID, SESSION_ID)
    records = as_records(
        [
            STARTED,
            ToolStarted(call_id="a", name="look", args={}),
            ToolFinished(call_id="a", result=""),
            ToolStarted(call_id="b", name="delete", args={}),
            ApprovalRequested(approval_id="p", name="delete", args={}, call_id="b"),
        ]
    )
    assert [span.name for record in records for span in trace.feed([record])] == ["execute_tool look"]


def test_spans_do_not_depend_on_how_records_are_batched() -> None:
    events: list[AnyEvent] = [
        STARTED,
        ToolStarted(call_id="a", name="look", args={}),
        TextDelta(message_id="m", text="hm"),
        TextFinished(message_id="m"),
        ToolFinished(call_id="a", result=""),
        FinalAnswer(content=""),
        RunFinished(),
    ]
    trace = RunTrace(RUN_ID, SESSION_ID)
    assert [span for record in as_records(events) for span in trace.feed([record])] == spans_of(events)


@pytest.mark.parametrize(("flags", "is_sampled"), [("01", True), ("00", False)])
def test_traceparent_names_the_parent_span(flags: str, is_sampled: bool) -> None:
    asked = RunStarted(agent="demo", traceparent=f"00-{'a' * 32}-{'b' * 16}-{flags}")
    spans = spans_of([asked, ToolStarted(call_id="a", name="x", args={}), ToolFinished(call_id="a"), RunFinished()])
    assert {span.trace_id for span in spans} == {int("a" * 32, 16)}
    assert {span.is_sampled for span in spans} == {is_sampled}
    assert single(spans, "invoke_agent demo").parent_id == int("b" * 16, 16)
    assert single(spans, "execute_tool x").parent_id == single(spans, "invoke_agent demo").span_id


@pytest.mark.parametrize("seed", range(25))
def test_random_runs_give_one_complete_tree(seed: int) -> None:
    events = write_run(Random(seed), 120)
    spans = spans_of(events)
    kinds = (StepStarted, ToolStarted, AgentStarted, RunStarted)
    assert len(spans) == sum(isinstance(event, kinds) for event in events)
    ids = {span.span_id for span in spans}
    assert len(ids) == len(spans)
    (root,) = [span for span in spans if span.parent_id is None]
    assert root is spans[-1]
    assert all(span.parent_id in ids for span in spans if span is not root)
    assert all(span.start_ns <= span.end_ns for span in spans)
