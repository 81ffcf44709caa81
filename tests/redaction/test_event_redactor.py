"""Redaction of events: complete values, pieces of texts, output and plans."""

import re

import pytest

from limelight.events import (
    EVENT_TYPES,
    AgentFinished,
    AgentStarted,
    AnyEvent,
    ApprovalRequested,
    ApprovalResolved,
    ArtifactMade,
    FinalAnswer,
    Plan,
    PlanDelta,
    ReasoningDelta,
    ReasoningFinished,
    RunCancelled,
    RunFailed,
    RunFinished,
    RunStarted,
    SourceCited,
    Status,
    StepFinished,
    StepStarted,
    TextDelta,
    TextFinished,
    Todo,
    ToolArgsDelta,
    ToolFinished,
    ToolOutputDelta,
    ToolReady,
    ToolStarted,
    Usage,
)
from limelight.redaction.event_redactor import REDACTED_FIELDS, EventRedactor
from limelight.redaction.rules import DEFAULT_REDACTOR, REDACTED, Redactor
from limelight.redaction.stream_redactor import MAX_LINE
from tests.runs.execution import execution

SECRET = "s3cr3t-s3cr3t"
KEY = "lml_9em2hbef_" + "djz4" * 13
BY_PATTERN = Redactor([re.compile(r"s3cr3t-\w+")])
BY_VALUE = Redactor(secrets=[SECRET])


def feed_all(redactor: Redactor, *events: AnyEvent) -> list[AnyEvent]:
    """Return everything that comes out of an EventRedactor, including held text."""
    redaction = EventRedactor(redactor)
    return [*(passed for event in events for passed in redaction.feed(event)), *redaction.flush()]


def output(text: str, stream: str = "stdout") -> ToolOutputDelta:
    return ToolOutputDelta(call_id="c", text=text, stream="stderr" if stream == "stderr" else "stdout")


@pytest.mark.parametrize(
    "event",
    [
        ToolStarted(call_id="c", name="t", args={"a": [SECRET]}),
        ToolReady(call_id="c", args=f"not json {SECRET}"),
        ToolFinished(call_id="c", result={"a": {"b": SECRET}}),
        ToolFinished(call_id="c", result=f"Error: {SECRET}", error=SECRET),
        ApprovalRequested(approval_id="p", name="t", args={"a": SECRET}),
        ApprovalResolved(approval_id="p", decision="edit", args={"a": SECRET}, reason=SECRET),
        SourceCited(title=SECRET, url=f"https://a.example/{SECRET}", text=SECRET),
        Status(text=SECRET),
        AgentStarted(agent_id="a", name="n", title=SECRET),
        RunFailed(code="agent_error", message=f"401 {SECRET}"),
        Plan(text=SECRET, items=(Todo(f"use {SECRET}", "completed"),)),
        FinalAnswer(content={"key": SECRET}, title=SECRET, sources=(SECRET,)),
    ],
)
@pytest.mark.parametrize("redactor", [BY_PATTERN, BY_VALUE])
def test_tool_events_and_errors_are_redacted(event: AnyEvent, redactor: Redactor) -> None:
    redacted = EventRedactor(redactor).redact(event)
    assert SECRET not in repr(redacted) and REDACTED in repr(redacted)
    assert type(redacted) is type(event)


def test_every_event_type_is_either_redacted_or_exempt() -> None:
    texts = (TextDelta, TextFinished, ReasoningDelta, ReasoningFinished, RunStarted)
    without_values = (StepStarted, ArtifactMade, Usage, RunFinished)
    pieces = (ToolArgsDelta, ToolOutputDelta, PlanDelta)
    assert sorted(map(repr, (*REDACTED_FIELDS, *texts, *without_values, *pieces))) == sorted(map(repr, EVENT_TYPES))


def text_delta(text: str, message_id: str = "m", agent_id: str = "") -> TextDelta:
    return TextDelta(message_id=message_id, text=text, agent_id=agent_id)


def test_server_secret_in_a_text_is_redacted_wherever_it_is_split() -> None:
    text = f"my key is {SECRET}, and s3cr is none"
    for kind in (TextDelta, ReasoningDelta):
        for size in range(1, 30):
            pieces = [kind(message_id="m", text=text[at : at + size]) for at in range(0, len(text), size)]
            passed = [event for event in feed_all(BY_VALUE, *pieces) if isinstance(event, kind)]
            joined = "".join(event.text for event in passed)
            assert SECRET[:4] not in joined.replace("and s3cr is", "") and joined.count(REDACTED) == 1
            assert joined.endswith(f"{REDACTED}, and s3cr is none")


def test_text_is_held_back_only_while_it_may_be_a_secret() -> None:
    redaction = EventRedactor(BY_VALUE)
    assert redaction.feed(text_delta("the s3")) == [text_delta("the s3")]
    assert redaction.passes(text_delta(" is cloudy ")) and redaction.passes(text_delta("s3c"))
    assert not redaction.passes(text_delta("r3t"))
    assert redaction.feed(text_delta("r3t")) == []
    assert redaction.feed(text_delta(" and")) == [text_delta("r3t and")]
    assert redaction.passes(text_delta("."))


@pytest.mark.parametrize(
    "end",
    [
        TextFinished(message_id="m", agent_id="a"),
        FinalAnswer(message_id="m", content=""),
        AgentFinished(agent_id="a"),
        RunFinished(),
        RunFailed(code="x", message=""),
        RunCancelled(reason=""),
    ],
)
def test_held_text_comes_before_the_event_that_ends_it(end: AnyEvent) -> None:
    held = text_delta("s3cr3t-", agent_id="a")
    assert feed_all(BY_VALUE, held, end) == [held, end]


def test_streamed_answer_is_redacted_for_server_secrets() -> None:
    answer = FinalAnswer(content=f"it is {SECRET}", message_id="m")
    assert EventRedactor(BY_VALUE).redact(answer) == FinalAnswer(content=f"it is {REDACTED}", message_id="m")


async def test_engine_writes_held_text_before_implicit_ends() -> None:
    """A text that was held back is in the log before its agent ends, also if the agent ends with its call."""
    run = execution(redactor=BY_VALUE)
    run.emit(RunStarted(agent="a"))
    run.emit(ToolStarted(call_id="c", name="task", args={}))
    run.emit(AgentStarted(agent_id="b", name="b", call_id="c"))
    run.emit(text_delta("s3cr3t", "n", "b"))
    run.emit(ToolFinished(call_id="c", result=""))
    run.emit(text_delta("the key: "))
    for character in SECRET:
        run.emit(text_delta(character))
    run.emit(text_delta(", or s3cr3t-"))
    run.emit(ToolStarted(call_id="d", name="t", args={}))
    run.emit(ToolOutputDelta(call_id="d", text="s3cr3t"))
    run.seal(RunFailed(code="x", message="y"))
    events = [record.event for record in run.take().records]
    text = "".join(event.text for event in events if isinstance(event, TextDelta) and event.message_id == "m")
    of_b = [event for event in events if event.agent_id == "b"]
    assert [type(event) for event in of_b] == [AgentStarted, TextDelta, TextFinished, AgentFinished]
    assert text.endswith(f"{REDACTED}, or s3cr3t-") and SECRET not in repr(events)
    assert any(isinstance(event, ToolOutputDelta) and event.text == "s3cr3t" for event in events)
    assert isinstance(events[-1], RunFailed)


async def test_texts_are_redacted_only_if_there_are_secrets() -> None:
    assert not EventRedactor(BY_PATTERN).redacts_texts and not EventRedactor(Redactor()).redacts_texts
    assert EventRedactor(Redactor([re.compile("x")], secrets=[SECRET])).redacts_texts


def test_patterns_do_not_apply_to_user_input_and_model_texts() -> None:
    answer = FinalAnswer(content=SECRET, message_id="m")
    for event in (RunStarted(agent="a", input=SECRET), TextDelta(message_id="m", text=SECRET), answer):
        assert EventRedactor(BY_PATTERN).redact(event) is event
        assert feed_all(BY_PATTERN, event) == [event]


def test_output_is_held_back_only_while_it_may_be_a_secret() -> None:
    redaction = EventRedactor(BY_VALUE)
    assert redaction.feed(output("10 % ")) == [output("10 % ")]
    assert redaction.feed(output("key s3cr")) == [output("key ")]
    assert redaction.feed(output("3t-s3cr3t.")) == [output(f"{REDACTED}.")]


def test_stdout_and_stderr_are_redacted_separately() -> None:
    passed = feed_all(BY_VALUE, output("s3cr3t-"), output("s3cr3t", "stderr"), output("s3cr3t"))
    assert passed == [output(REDACTED), output("s3cr3t", "stderr")]


def test_held_output_comes_before_the_end_of_its_tool() -> None:
    end = ToolFinished(call_id="c", result="")
    passed = feed_all(BY_PATTERN, output("one\nno end "), output(f"{SECRET}"), end)
    assert passed == [output("one\n"), output(f"no end {REDACTED}"), end]


def test_endless_line_of_output_is_released_in_parts() -> None:
    passed = feed_all(BY_PATTERN, *[output("x" * 1000)] * 200)
    assert len("".join(piece.text for piece in passed if isinstance(piece, ToolOutputDelta))) == 200_000
    assert len(passed) >= 200_000 // (MAX_LINE + 1000)


def test_pieces_of_arguments_are_dropped_if_there_are_patterns() -> None:
    pieces = [ToolArgsDelta(call_id="c", text=text) for text in ('{"a": "s3cr', '3t-s3cr3t"}')]
    ready = ToolReady(call_id="c", args={"a": SECRET})
    assert feed_all(BY_PATTERN, *pieces, ready) == [ready]
    by_value = feed_all(BY_VALUE, *pieces, ready)
    assert [piece.text for piece in by_value if isinstance(piece, ToolArgsDelta)] == ['{"a": "', REDACTED + '"}']


async def test_objects_are_redacted_in_their_stored_form() -> None:
    """A result that is not JSON is stored as text, and the text is redacted."""

    class Client:
        def __repr__(self) -> str:
            return f"Client(key={SECRET!r})"

    run = execution(redactor=BY_VALUE)
    run.emit(RunStarted(agent="a"))
    run.emit(ToolStarted(call_id="c", name="t", args={"client": Client()}))
    run.emit(output(f"using {SECRET[:5]}"))
    run.emit(ToolFinished(call_id="c", result=[SECRET] * 10_000))
    append = run.take()
    assert SECRET not in repr(append.records) + repr(append.results)
    started, *printed, _ = [record.event for record in append.records[1:]]
    assert isinstance(started, ToolStarted) and f"Client(key='{REDACTED}')" in str(started.args)
    assert printed == [output("using "), output(SECRET[:5])]
    assert append.results  # the complete value of a large result, which is stored separately


@pytest.mark.parametrize("secret", [SECRET, KEY])
def test_secret_in_pieces_of_a_plan_is_redacted_and_the_plan_equals_its_pieces(secret: str) -> None:
    redactor = BY_VALUE if secret == SECRET else DEFAULT_REDACTOR
    text = f"Use {secret} and go on."
    for size in range(1, 30):
        pieces = [PlanDelta(agent_id="a", text=text[at : at + size]) for at in range(0, len(text), size)]
        *passed, plan = feed_all(redactor, *pieces, Plan(agent_id="a", text=text))
        joined = "".join(event.text for event in passed if isinstance(event, PlanDelta))
        assert secret[4:] not in joined and f"{REDACTED} and go on." in joined
        assert plan == Plan(agent_id="a", text=joined)


def test_plans_of_two_agents_are_redacted_separately() -> None:
    pieces = [PlanDelta(text="one "), PlanDelta(agent_id="a", text="two"), PlanDelta(text="more")]
    assert feed_all(BY_VALUE, *pieces, Plan(text="something else")) == [*pieces, Plan(text="something else")]
    held = PlanDelta(agent_id="a", text=SECRET[:8])
    assert feed_all(BY_VALUE, held, AgentFinished(agent_id="a")) == [held, AgentFinished(agent_id="a")]


def test_held_plan_comes_before_the_end_of_its_step() -> None:
    ended = StepFinished(number=1, step_kind="planning", error="hung up")
    assert feed_all(BY_VALUE, PlanDelta(text=SECRET[:8]), ended) == [PlanDelta(text=SECRET[:8]), ended]


def test_pieces_of_a_plan_are_dropped_if_there_are_patterns() -> None:
    assert feed_all(BY_PATTERN, PlanDelta(text="Use s3c"), Plan(text="Use it.")) == [Plan(text="Use it.")]


def test_secrets_in_the_schemas_of_an_approval_are_redacted_and_names_of_properties_stay() -> None:
    schema = {"properties": {"password": {"default": SECRET}}}
    request = ApprovalRequested(approval_id="p", name="t", args={}, answer_schema=schema, args_schema=schema)
    redacted = EventRedactor(BY_VALUE).redact(request)
    assert isinstance(redacted, ApprovalRequested)
    clean = {"properties": {"password": {"default": REDACTED}}}
    assert (redacted.answer_schema, redacted.args_schema) == (clean, clean)
