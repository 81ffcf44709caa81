"""The grammar: properties over random runs and random events, and one example for each rule."""

import copy
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from limelight.errors import BadEvent
from limelight.events import (
    TERMINAL_TYPES,
    AgentFinished,
    AgentStarted,
    AnyEvent,
    ApprovalRequested,
    ApprovalResolved,
    FinalAnswer,
    ReasoningDelta,
    ReasoningFinished,
    RunCancelled,
    RunFailed,
    RunFinished,
    RunStarted,
    Status,
    StepFinished,
    StepStarted,
    Terminal,
    TextDelta,
    TextFinished,
    ToolArgsDelta,
    ToolFinished,
    ToolOutputDelta,
    ToolReady,
    ToolStarted,
    kind_of,
)
from limelight.grammar import Grammar
from tests.support.strategies import colliding_events, legal_runs

START = RunStarted(agent="demo")
TERMINALS: list[Terminal] = [RunFinished(), RunFailed(code="x", message="y"), RunCancelled()]


def grammar_of(*events: AnyEvent) -> Grammar:
    grammar = Grammar()
    for event in events:
        grammar.check(event)
    return grammar


def state_of(grammar: Grammar) -> dict[str, Any]:
    return copy.deepcopy(vars(grammar))


def accepts(grammar: Grammar, event: AnyEvent) -> bool:
    try:
        grammar.check(event)
    except BadEvent:
        return False
    return True


def has_nothing_open(grammar: Grammar) -> bool:
    opened = (grammar.agents, grammar.texts, grammar.reasonings, grammar.calls, grammar.steps, grammar.approvals)
    return not any(opened)


# Properties


@settings(max_examples=150)
@given(legal_runs())
def test_every_legal_run_is_accepted(run: list[AnyEvent]) -> None:
    grammar = grammar_of(*run)
    assert (grammar.terminal is not None) == isinstance(run[-1], TERMINAL_TYPES)


@settings(max_examples=100)
@given(legal_runs(cut=False))
def test_complete_run_has_nothing_open(run: list[AnyEvent]) -> None:
    assert has_nothing_open(grammar_of(*run))


@settings(max_examples=200)
@given(st.lists(colliding_events(), max_size=30))
def test_rejected_event_does_not_change_the_state(events: list[AnyEvent]) -> None:
    grammar = grammar_of(START)
    for event in events:
        before = state_of(grammar)
        try:
            grammar.check(event)
        except BadEvent as error:
            assert str(error).startswith(f"{kind_of(event)}: ")
            assert state_of(grammar) == before


@pytest.mark.requirement("one-terminal-event")
@settings(max_examples=150)
@given(legal_runs(cut=True), st.sampled_from(TERMINALS[1:]))
def test_closing_events_and_a_terminal_event_end_any_run(run: list[AnyEvent], terminal: Terminal) -> None:
    grammar = grammar_of(*run)
    assume(grammar.terminal is None)
    for event in grammar.closing_events("cut off"):
        grammar.check(event)
    assert grammar.closing_events("cut off") == []
    grammar.check(terminal)
    assert has_nothing_open(grammar)
    assert grammar.terminal is terminal


@settings(max_examples=150)
@given(st.lists(colliding_events(), max_size=30))
def test_closing_events_are_legal_after_rejected_events(events: list[AnyEvent]) -> None:
    grammar = grammar_of(START)
    for event in events:
        if not isinstance(event, TERMINAL_TYPES):
            accepts(grammar, event)
    for event in grammar.closing_events("cut off"):
        grammar.check(event)
    assert has_nothing_open(grammar)


@settings(max_examples=150)
@given(legal_runs(cut=True), st.data())
def test_missing_events_make_an_ending_legal(run: list[AnyEvent], data: st.DataObject) -> None:
    grammar = grammar_of(*run)
    assume(grammar.terminal is None)
    endings: list[AnyEvent] = [
        *TERMINALS[1:],
        *(AgentFinished(agent_id=agent_id) for agent_id in grammar.agents),
        *(ToolFinished(agent_id=call.agent_id, call_id=call_id) for call_id, call in grammar.calls.items()),
    ]
    ending = data.draw(st.sampled_from(endings))
    for event in grammar.missing_before(ending, "cut off"):
        grammar.check(event)
    assert grammar.missing_before(ending, "cut off") == []
    grammar.check(ending)


@settings(max_examples=150)
@given(legal_runs(cut=False), st.lists(colliding_events(), max_size=10))
def test_no_event_is_accepted_after_the_terminal_event(run: list[AnyEvent], late: list[AnyEvent]) -> None:
    grammar = grammar_of(*run)
    terminal = grammar.terminal
    assert not any(accepts(grammar, event) for event in [*late, *run, *TERMINALS])
    assert grammar.terminal is terminal


@settings(max_examples=100)
@given(legal_runs(cut=False))
def test_run_has_exactly_one_terminal_event_at_its_end(run: list[AnyEvent]) -> None:
    """The grammar accepts the first terminal event and refuses everything after it."""
    grammar = Grammar()
    accepted = [event for event in [*run, *TERMINALS, *run] if accepts(grammar, event)]
    assert [isinstance(event, TERMINAL_TYPES) for event in accepted] == [False] * (len(run) - 1) + [True]


# One example for each rule

TEXT = TextDelta(message_id="m", text="a")
CALL = ToolStarted(call_id="c", name="t", args={})
STREAMED = ToolStarted(call_id="c", name="t")
SUB = AgentStarted(agent_id="a", name="sub")
APPROVAL = ApprovalRequested(approval_id="p", name="t", args={}, call_id="c")
ANSWER = FinalAnswer(content="yes")

ILLEGAL: list[tuple[str, list[AnyEvent], AnyEvent, str]] = [
    ("start missing", [], TEXT, "text_delta: a run begins with run_started"),
    ("terminal without start", [], RunCancelled(), "a run begins with run_started"),
    ("two starts", [START], START, "a run starts once"),
    ("a sub-agent's start", [], RunStarted(agent="x", agent_id="a"), "the main agent starts a run"),
    ("after the end", [START, RunCancelled()], Status(text="late"), "the run has already ended"),
    ("text after the end", [START, TEXT, TextFinished(message_id="m"), RunCancelled()], TEXT, "already ended"),
    ("two terminals", [START, RunCancelled()], RunCancelled(), "the run has already ended"),
    ("unknown agent", [START], Status(agent_id="a", text=""), "agent 'a' is not open"),
    ("ended agent", [START, SUB, AgentFinished(agent_id="a")], Status(agent_id="a", text=""), "'a' is not open"),
    ("agent without id", [START], AgentStarted(name="x"), "a sub-agent needs an agent_id of its own"),
    ("agent of an unknown parent", [START], AgentStarted(agent_id="b", name="x", parent_id="a"), "parent 'a' is not"),
    ("agent of an unknown call", [START], AgentStarted(agent_id="a", name="x", call_id="c"), "no open call 'c'"),
    (
        "agent of another agent's call",
        [START, CALL, SUB],
        AgentStarted(agent_id="b", name="x", parent_id="a", call_id="c"),
        "its parent has no open call 'c'",
    ),
    ("agent id twice", [START, SUB, AgentFinished(agent_id="a")], SUB, "the agent id 'a' was used before"),
    ("the main agent ends", [START], AgentFinished(), "the main agent ends with the run"),
    ("agent with an open text", [START, SUB, TextDelta(agent_id="a", message_id="m", text="")],
     AgentFinished(agent_id="a"), "still missing: text_finished"),
    ("agent with an open sub-agent", [START, SUB, AgentStarted(agent_id="b", parent_id="a", name="x")],
     AgentFinished(agent_id="a"), "still missing: agent_finished"),
    ("text without id", [START], TextDelta(message_id="", text="a"), "it needs a text id"),
    ("text again", [START, TEXT, TextFinished(message_id="m")], TEXT, "the text id 'm' was used before"),
    ("text of two agents", [START, SUB, TEXT], TextDelta(agent_id="a", message_id="m", text=""), "belongs to agent ''"),
    ("text ends twice", [START, TEXT, TextFinished(message_id="m")], TextFinished(message_id="m"), "'m' is not open"),
    ("text ends as reasoning", [START, TEXT], ReasoningFinished(message_id="m"), "message 'm' is not open"),
    ("reasoning again", [START, ReasoningDelta(message_id="m", text=""), ReasoningFinished(message_id="m")],
     ReasoningDelta(message_id="m", text=""), "the reasoning id 'm' was used before"),
    ("two steps", [START, StepStarted(number=1)], StepStarted(number=2), "step 1 is still open"),
    ("unknown step", [START], StepFinished(number=1), "step 1 is not open"),
    ("another step", [START, StepStarted(number=1)], StepFinished(number=2), "step 2 is not open"),
    ("call without id", [START], ToolStarted(call_id="", name="t"), "it needs a call id"),
    ("call id twice", [START, CALL, ToolFinished(call_id="c")], CALL, "the call id 'c' was used before"),
    ("unknown call", [START], ToolFinished(call_id="c"), "call 'c' is not open"),
    ("another agent's call", [START, SUB, CALL], ToolFinished(agent_id="a", call_id="c"), "call 'c' is not open"),
    ("arguments after complete ones", [START, CALL], ToolArgsDelta(call_id="c", text="{"), "are already complete"),
    ("ready twice", [START, STREAMED, ToolReady(call_id="c", args={})], ToolReady(call_id="c", args=""), "was ready"),
    ("ready after complete arguments", [START, CALL], ToolReady(call_id="c", args={}), "call 'c' was ready before"),
    ("output before ready", [START, STREAMED], ToolOutputDelta(call_id="c", text=""), "are not complete yet"),
    ("output while waiting", [START, CALL, APPROVAL], ToolOutputDelta(call_id="c", text=""), "waits for approval 'p'"),
    (
        "a call ends before its sub-agent",
        [START, CALL, AgentStarted(agent_id="a", name="x", call_id="c")],
        ToolFinished(call_id="c"),
        "still missing: agent_finished",
    ),
    ("approval of an unknown call", [START], APPROVAL, "call 'c' is not open"),
    ("approval before ready", [START, STREAMED], APPROVAL, "the arguments of 'c' are not complete yet"),
    ("two approvals of a call", [START, CALL, APPROVAL],
     ApprovalRequested(approval_id="q", name="t", args={}, call_id="c"), "already waits for an approval"),
    ("approval id twice", [START, CALL, APPROVAL, ApprovalResolved(approval_id="p", decision="approve")], APPROVAL,
     "the approval id 'p' was used before"),
    ("unknown approval", [START], ApprovalResolved(approval_id="p", decision="approve"), "approval 'p' is not open"),
    ("a sub-agent's answer", [START, SUB], FinalAnswer(agent_id="a"), "only the main agent gives the final answer"),
    ("two answers", [START, ANSWER], ANSWER, "a run has only one final answer"),
    ("answer repeats nothing", [START], FinalAnswer(message_id="m"), "message 'm' was never sent"),
    ("a sub-agent ends the run", [START, SUB], RunCancelled(agent_id="a"), "only the main agent ends a run"),
    ("finished without an answer", [START], RunFinished(), "a finished run has a final_answer"),
    ("terminal with an open call", [START, CALL], RunCancelled(), "still missing: tool_finished"),
    ("terminal with an open step", [START, StepStarted(number=1)], RunCancelled(), "still missing: step_finished"),
    ("terminal with an open agent", [START, SUB], RunCancelled(), "still missing: agent_finished"),
    ("terminal while waiting", [START, ApprovalRequested(approval_id="p", name="t", args={})], RunCancelled(),
     "still missing: approval_resolved"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("before", "event", "reason"), [case[1:] for case in ILLEGAL], ids=[case[0] for case in ILLEGAL]
)
def test_illegal_order_is_refused_with_the_reason(before: list[AnyEvent], event: AnyEvent, reason: str) -> None:
    grammar = grammar_of(*before)
    with pytest.raises(BadEvent) as caught:
        grammar.check(event)
    assert reason in caught.value.detail
    assert caught.value.detail.startswith(kind_of(event))
    assert caught.value.code == "bad_event"


def test_parallel_sub_agents_end_in_any_order() -> None:
    """The agent that started first ends last."""
    grammar = grammar_of(
        START,
        ToolStarted(call_id="c1", name="task", args={}),
        ToolStarted(call_id="c2", name="task", args={}),
        AgentStarted(agent_id="a1", name="one", call_id="c1"),
        AgentStarted(agent_id="a2", name="two", call_id="c2"),
        TextDelta(agent_id="a1", message_id="m1", text="x"),
        TextDelta(agent_id="a2", message_id="m2", text="y"),
        AgentStarted(agent_id="a3", name="deeper", parent_id="a1"),
        TextFinished(agent_id="a2", message_id="m2"),
        AgentFinished(agent_id="a2"),
        ToolFinished(call_id="c2", result="done"),
        AgentFinished(agent_id="a3"),
        TextFinished(agent_id="a1", message_id="m1"),
        AgentFinished(agent_id="a1"),
        ToolFinished(call_id="c1", result="done"),
        ANSWER,
        RunFinished(),
    )
    assert has_nothing_open(grammar)


def test_closing_events_end_the_innermost_first_with_the_reason() -> None:
    grammar = grammar_of(
        START,
        TEXT,
        STREAMED,
        ToolArgsDelta(call_id="c", text='{"a"'),
        ToolArgsDelta(call_id="c", text=": 1"),
        AgentStarted(agent_id="a", name="sub", call_id="c"),
        ToolStarted(agent_id="a", call_id="d", name="t", args={}),
        ApprovalRequested(agent_id="a", approval_id="p", name="t", args={}, call_id="d"),
        StepStarted(number=4, step_kind="plan"),
    )
    assert grammar.closing_events("stopped") == [
        ApprovalResolved(agent_id="a", approval_id="p", decision="reject", reason="stopped", by="system"),
        ToolFinished(agent_id="a", call_id="d", result="Error: stopped", error="stopped", outcome="stopped"),
        AgentFinished(agent_id="a", error="stopped", outcome="stopped"),
        TextFinished(message_id="m"),
        ToolReady(call_id="c", args='{"a": 1'),
        ToolFinished(call_id="c", result="Error: stopped", error="stopped", outcome="stopped"),
        StepFinished(number=4, step_kind="plan", error="stopped", outcome="stopped"),
    ]


def test_closing_events_of_a_success_have_no_failed_calls() -> None:
    grammar = grammar_of(
        START,
        STREAMED,
        AgentStarted(agent_id="a", name="sub"),
        ToolStarted(agent_id="a", call_id="d", name="t", args={}),
        ToolStarted(agent_id="a", call_id="e", name="t", args={}),
        ApprovalRequested(agent_id="a", approval_id="p", name="t", args={}, call_id="e"),
    )
    inner: list[AnyEvent] = [
        ApprovalResolved(agent_id="a", approval_id="p", decision="reject", reason="x", by="system"),
        ToolFinished(agent_id="a", call_id="e", result="Error: x", error="x", outcome="stopped"),  # it did not run
        ToolFinished(agent_id="a", call_id="d", result="No result seen", result_seen=False),
    ]
    assert grammar.missing_before(AgentFinished(agent_id="a"), "x") == inner
    assert grammar.missing_before(RunFinished(), "x") == [
        *inner,
        AgentFinished(agent_id="a", error="x", outcome="stopped"),
        ToolReady(call_id="c", args=""),
        ToolFinished(call_id="c", result="No result seen", result_seen=False),
    ]


@pytest.mark.parametrize("ending", [AgentFinished(agent_id="a", error="y"), *TERMINALS[1:]])
def test_closing_events_of_a_failure_have_stopped_calls(ending: AnyEvent) -> None:
    grammar = grammar_of(START, SUB, ToolStarted(agent_id="a", call_id="d", name="t", args={}))
    stopped = ToolFinished(agent_id="a", call_id="d", result="Error: x", error="x", outcome="stopped")
    assert grammar.missing_before(ending, "x")[0] == stopped


def test_closing_events_end_the_newest_call_first() -> None:
    """The code of an older call may have made it."""
    grammar = Grammar()
    for event in (RunStarted(agent="a"), *(ToolStarted(call_id=call_id, name="t", args={}) for call_id in "12")):
        grammar.check(event)
    assert [event.call_id for event in grammar.closing_events("stopped") if isinstance(event, ToolFinished)] == [
        "2",
        "1",
    ]


def test_closing_events_of_one_agent_do_not_close_others() -> None:
    grammar = grammar_of(START, TEXT, SUB, AgentStarted(agent_id="b", name="x"), StepStarted(agent_id="b", number=1))
    assert grammar.closing_events("x", "b") == [StepFinished(agent_id="b", number=1, error="x", outcome="stopped")]
    assert grammar.missing_before(AgentFinished(agent_id="a"), "x") == []


def test_call_that_ends_early_first_gets_its_arguments_or_its_rejection() -> None:
    ending = ToolFinished(call_id="c")
    streaming = grammar_of(START, STREAMED, ToolArgsDelta(call_id="c", text="{"))
    assert streaming.missing_before(ending, "x") == [ToolReady(call_id="c", args="{")]
    refused = ApprovalResolved(approval_id="p", decision="reject", reason="x", by="system")
    assert grammar_of(START, CALL, APPROVAL).missing_before(ending, "x") == [refused]


@pytest.mark.parametrize("event", [Status(text="x"), TEXT, FinalAnswer(), AgentFinished(agent_id="unknown")])
def test_no_events_are_missing_before_an_event_that_ends_nothing(event: AnyEvent) -> None:
    assert grammar_of(START, TEXT, CALL).missing_before(event, "x") == []


def test_run_is_busy_during_a_call_and_waiting_during_an_approval() -> None:
    grammar = grammar_of(START)
    assert (grammar.busy, grammar.waiting) == (False, False)
    grammar.check(CALL)
    assert (grammar.busy, grammar.waiting) == (True, False)
    grammar.check(APPROVAL)
    assert (grammar.busy, grammar.waiting) == (True, True)
    grammar.check(ApprovalResolved(approval_id="p", decision="approve"))
    grammar.check(ToolFinished(call_id="c"))
    assert (grammar.busy, grammar.waiting) == (False, False)


def test_final_answer_may_name_a_finished_message() -> None:
    grammar = grammar_of(
        START, TEXT, TextFinished(message_id="m"), FinalAnswer(content="a", message_id="m"), RunFinished()
    )
    assert grammar.answered
