"""What is written of tools, without what may not be kept."""

import re

import pytest

from limelight.events import (
    EVENT_TYPES,
    AgentStarted,
    AnyEvent,
    ApprovalRequested,
    ApprovalResolved,
    ArtifactMade,
    FinalAnswer,
    Plan,
    ReasoningDelta,
    ReasoningFinished,
    RunFailed,
    RunFinished,
    RunStarted,
    SourceCited,
    Status,
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
from limelight.hiding import HIDDEN, Hiding
from limelight.pieces import MAX_LINE
from limelight.runs.redaction import LOOKED_AT, Redaction
from tests.runs.executions import execution

SECRET = "s3cr3t-s3cr3t"
BY_PATTERN = Hiding([re.compile(r"s3cr3t-\w+")])
BY_VALUE = Hiding(secrets=[SECRET])


def fed(hiding: Hiding, *events: AnyEvent) -> list[AnyEvent]:
    redaction = Redaction(hiding)
    return [*(said for event in events for said in redaction.feed(event)), *redaction.rest()]


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
        RunFailed(code="agent_error", message=f"401 {SECRET}"),
        Plan(text=SECRET, items=(Todo(f"use {SECRET}", "completed"),)),
        FinalAnswer(content={"key": SECRET}, title=SECRET, sources=(SECRET,)),
    ],
)
@pytest.mark.parametrize("hiding", [BY_PATTERN, BY_VALUE])
def test_every_event_of_a_tool_and_every_error_is_looked_at(event: AnyEvent, hiding: Hiding) -> None:
    hidden = Redaction(hiding).whole(event)
    assert SECRET not in repr(hidden) and HIDDEN in repr(hidden)
    assert type(hidden) is type(event)


def test_of_every_event_it_is_decided_whether_it_is_looked_at() -> None:
    said = (TextDelta, TextFinished, ReasoningDelta, ReasoningFinished, RunStarted)
    nothing_of_a_tool = (StepStarted, AgentStarted, ArtifactMade, Usage, RunFinished)
    pieces = (ToolArgsDelta, ToolOutputDelta)
    assert sorted(map(repr, (*LOOKED_AT, *said, *nothing_of_a_tool, *pieces))) == sorted(map(repr, EVENT_TYPES))


def test_what_people_and_models_say_is_left_alone() -> None:
    said = FinalAnswer(content=SECRET, message_id="m")
    for event in (RunStarted(agent="a", input=SECRET), TextDelta(message_id="m", text=SECRET), said):
        assert Redaction(BY_PATTERN).whole(event) is event
        assert fed(BY_PATTERN, event) == [event]


def test_output_is_held_back_only_as_long_as_it_has_to_be() -> None:
    redaction = Redaction(BY_VALUE)
    assert redaction.feed(output("10 % ")) == [output("10 % ")]
    assert redaction.feed(output("key s3cr")) == [output("key ")]
    assert redaction.feed(output("3t-s3cr3t.")) == [output(f"{HIDDEN}.")]


def test_output_of_two_streams_is_not_mixed() -> None:
    said = fed(BY_VALUE, output("s3cr3t-"), output("s3cr3t", "stderr"), output("s3cr3t"))
    assert said == [output(HIDDEN), output("s3cr3t", "stderr")]


def test_the_rest_comes_before_the_end_of_its_tool() -> None:
    end = ToolFinished(call_id="c", result="")
    said = fed(BY_PATTERN, output("one\nno end "), output(f"{SECRET}"), end)
    assert said == [output("one\n"), output(f"no end {HIDDEN}"), end]


def test_a_line_that_never_ends_is_not_kept_for_ever() -> None:
    said = fed(BY_PATTERN, *[output("x" * 1000)] * 200)
    assert len("".join(piece.text for piece in said if isinstance(piece, ToolOutputDelta))) == 200_000
    assert len(said) >= 200_000 // (MAX_LINE + 1000)


def test_with_patterns_arguments_come_whole() -> None:
    pieces = [ToolArgsDelta(call_id="c", text=text) for text in ('{"a": "s3cr', '3t-s3cr3t"}')]
    ready = ToolReady(call_id="c", args={"a": SECRET})
    assert fed(BY_PATTERN, *pieces, ready) == [ready]
    by_value = fed(BY_VALUE, *pieces, ready)
    assert [piece.text for piece in by_value if isinstance(piece, ToolArgsDelta)] == ['{"a": "', HIDDEN + '"}']


async def test_objects_are_hidden_in_the_form_that_is_kept() -> None:
    """A result that is no JSON becomes text, and that is what is looked at."""

    class Client:
        def __repr__(self) -> str:
            return f"Client(key={SECRET!r})"

    run = execution(hiding=BY_VALUE)
    run.accept(RunStarted(agent="a"))
    run.accept(ToolStarted(call_id="c", name="t", args={"client": Client()}))
    run.accept(output(f"using {SECRET[:5]}"))
    run.accept(ToolFinished(call_id="c", result=[SECRET] * 10_000))
    append = run.take()
    assert SECRET not in repr(append.records) + repr(append.results)
    started, *printed, _ = [record.event for record in append.records[1:]]
    assert isinstance(started, ToolStarted) and f"Client(key='{HIDDEN}')" in str(started.args)
    assert printed == [output("using "), output(SECRET[:5])]
    assert append.results  # the whole of a large result is kept elsewhere, and is hidden there too
