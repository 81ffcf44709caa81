"""Whatever an agent says fits the log: valid, bounded, and nothing lost that is not kept elsewhere."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limelight import plugins
from limelight.deltas import MAX_DELTA, Delta, json_size
from limelight.dialects.frame_encoder import FrameEncoder
from limelight.display_fields import DisplayFields
from limelight.errors import BadEvent
from limelight.events import (
    EVENT_TYPES,
    AgentFinished,
    AgentStarted,
    AnyEvent,
    ApprovalRequested,
    ApprovalResolved,
    Attachment,
    Event,
    FinalAnswer,
    Plan,
    Record,
    RunCancelled,
    RunFailed,
    RunStarted,
    SourceCited,
    Status,
    StepFinished,
    TextDelta,
    Todo,
    ToolArgsDelta,
    ToolFinished,
    ToolReady,
    ToolStarted,
    Usage,
    kind_of,
)
from limelight.models import Result
from limelight.runs.truncation import (
    MAX_EVENT,
    MAX_INLINE,
    MAX_NAME,
    PREVIEW_CHARACTERS,
    SHORT_CHARACTERS,
    Fitted,
    fit,
    preview_of,
    result_key,
)
from tests.runs.truncated import fitted, only, result_of
from tests.support.strategies import events, struct, texts

MAX_LINE = 64 * 1024


# Any event


@settings(max_examples=300)
@given(events())
def test_values_within_the_limits_are_unchanged(event: AnyEvent) -> None:
    expected = event
    if isinstance(event, ToolFinished) and event.result is None:
        expected = msgspec.structs.replace(event, result="")
    if isinstance(event, FinalAnswer) and event.content is None:
        expected = msgspec.structs.replace(event, content="")
    assert fitted(event) == Fitted([expected], [], len(msgspec.json.encode(expected)))


@settings(max_examples=200)
@given(events(surrogates=True))
def test_truncated_events_survive_encoding_and_decoding(event: AnyEvent) -> None:
    for part in fitted(event).events:
        record = Record(1, "run_1", 0, part)
        assert msgspec.json.decode(msgspec.json.encode(record), type=Record) == record


PIECES = ("a", "\x00", "é", "😀", '"', "\\", "\x1f\n", "\ud800", "字")
TIMES = (1, 500, 513, 3_000, 5_462, 10_001, 16_385, 33_000, 70_000)
huge_texts = st.sampled_from([piece * times for piece in PIECES for times in TIMES])
names = st.sampled_from(["", "n", "\x00" * MAX_NAME, "😀" * MAX_NAME]) | texts()
huge_values: st.SearchStrategy[Any] = (
    huge_texts | st.dictionaries(st.just("key"), huge_texts) | st.lists(huge_texts, max_size=2)
)


def huge_event_of(kind: type[Event]) -> st.SearchStrategy[AnyEvent]:
    """Events whose ids are just legal and whose values may be far too large."""
    fields = msgspec.structs.fields(kind)
    bounded = {f.name: names for f in fields if f.name in ("name", "call_id", "agent_id", "message_id", "approval_id")}
    values = struct(kind, huge_texts, huge_values)
    ids = st.fixed_dictionaries(bounded)
    return st.tuples(values, ids).map(lambda drawn: msgspec.structs.replace(drawn[0], **drawn[1]))


@pytest.mark.requirement("previews")
@pytest.mark.parametrize("kind", EVENT_TYPES, ids=kind_of)
@settings(max_examples=15)
@given(data=st.data())
def test_truncated_events_fit_the_frames_of_each_dialect(kind: type[Event], data: st.DataObject) -> None:
    """For every dialect, and with a start and an approval before it whose names the frame may repeat."""
    event = data.draw(huge_event_of(kind))
    name, call_id = data.draw(names), getattr(event, "call_id", "")
    approval_id: str = getattr(event, "approval_id", "")
    before: list[AnyEvent] = [
        RunStarted(agent="a"),
        ToolStarted(call_id=call_id, name=name),
        ApprovalRequested(approval_id=approval_id, name=name, args=data.draw(huge_texts), call_id=call_id),
    ]
    try:
        parts = fitted(event).events
    except BadEvent as error:
        assert kind_of(event) in error.detail
        return
    assert all(len(msgspec.json.encode(part)) <= MAX_EVENT for part in parts)
    for make_dialect in plugins.find("dialects").values():
        encoder = FrameEncoder(make_dialect)
        for part in [part for earlier in before for part in fitted(earlier).events] + parts:
            sent = encoder.encode(Record(2**53, "run_1", 2**53, part))
            assert all(len(b"data: " + frame.payload) <= MAX_LINE for frame in sent)


def test_large_text_is_not_encoded_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everybody waits while that is done, and it takes a second for the largest."""
    seen: list[int] = []
    encode = msgspec.json.encode

    def noting(value: Any) -> bytes:
        seen.append(len(encode(value)))
        return encode(value)

    def measured(text: str) -> int:
        return len(noting(text))

    monkeypatch.setattr("limelight.runs.truncation.msgspec.json.encode", noting)
    monkeypatch.setattr("limelight.runs.truncation.json_size", measured)
    text = "line\n" * 100_000
    for event in (ToolFinished(call_id="c", result=text), FinalAnswer(content=text), RunStarted(agent="a", input=text)):
        assert fitted(event).results[0].body.decode() == text
    assert max(seen) < 64 * 1024


# Deltas


@pytest.mark.parametrize("piece", ["a", "é", "😀", "\x00", '"', "ab\n"])
def test_pieces_of_a_long_delta_join_to_its_text(piece: str) -> None:
    text = piece * 40_000
    parts = fitted(TextDelta(agent_id="a", message_id="m", text=text)).events
    assert len(parts) > 1
    assert {(type(part), part.agent_id) for part in parts} == {(TextDelta, "a")}
    pieces = [part.text for part in parts if isinstance(part, Delta)]
    assert "".join(pieces) == text
    assert max(map(json_size, pieces)) <= MAX_DELTA


def test_delta_at_the_limit_is_not_split() -> None:
    event = ToolArgsDelta(call_id="c", text="x" * (MAX_DELTA - 2))
    assert only(event) == event
    assert len(fitted(ToolArgsDelta(call_id="c", text="x" * (MAX_DELTA - 1))).events) == 2


def test_empty_delta_is_unchanged() -> None:
    assert only(TextDelta(message_id="m", text="")) == TextDelta(message_id="m", text="")


# Large values


@pytest.mark.parametrize(
    ("event", "field", "key", "url"),
    [
        (ToolStarted(call_id="c/1", name="t", args={"q": "x" * 40_000}), "args", "args:c/1", "/runs/run_1/tools/c%2F1"),
        (ToolReady(call_id="c", args={"q": "x" * 40_000}), "args", "args:c", "/runs/run_1/tools/c"),
        (ToolFinished(call_id="c", result=["x" * 40_000]), "result", "result:c", "/runs/run_1/tools/c"),
        (FinalAnswer(content={"a": "x" * 40_000}), "content", "content:", "/runs/run_1/answer"),
    ],
    ids=lambda value: kind_of(value) if isinstance(value, Event) else "",
)
def test_large_value_is_stored_completely_beside_the_log(event: AnyEvent, field: str, key: str, url: str) -> None:
    found = fitted(event)
    whole = msgspec.json.encode(getattr(event, field))
    assert found.results == [Result(key=key, media_type="application/json", body=whole)]
    part: Any = found.events[0]
    assert getattr(part, field) == whole.decode()[:PREVIEW_CHARACTERS]
    assert (part.truncated, part.size, part.result_url) == (True, len(whole), url)


@pytest.mark.parametrize(
    "event", [ToolFinished(call_id="c", result="é" * 20_000), RunStarted(agent="a", input="é" * 20_000)]
)
def test_large_text_is_stored_as_text_and_its_size_is_in_bytes(event: AnyEvent) -> None:
    found = fitted(event)
    part: Any = found.events[0]
    assert found.results[0].media_type == "text/plain; charset=utf-8"
    assert found.results[0].body == ("é" * 20_000).encode()
    assert (part.truncated, part.size) == (True, 40_000)
    preview = part.result if isinstance(part, ToolFinished) else part.input
    assert preview == "é" * PREVIEW_CHARACTERS


def test_arguments_of_an_approval_are_stored_separately_from_those_of_its_call() -> None:
    args = {"text": "x" * 50_000}
    found = fitted(ApprovalRequested(approval_id="p", call_id="c", name="t", args=args))
    assert [kept.key for kept in found.results] == [result_key("approval", "p")]
    (event,) = found.events
    assert isinstance(event, ApprovalRequested)
    assert (event.truncated, event.result_url) == (True, "/runs/run_1/approvals/p")


def test_schemas_of_an_approval_that_are_too_large_are_removed() -> None:
    large, small = {"description": "x" * 5_000}, {"type": "object"}
    request = ApprovalRequested(approval_id="p", name="t", args={}, args_schema=large)
    assert only(request) == request
    assert only(msgspec.structs.replace(request, answer_schema=small)).args_schema == large
    assert only(msgspec.structs.replace(request, answer_schema=large)).args_schema is None
    too_large = {"description": "x" * 9_000}
    cut = only(ApprovalRequested(approval_id="p", name="t", args={}, args_schema=too_large, answer_schema=too_large))
    assert (cut.args_schema, cut.answer_schema) == (None, {})


def test_input_values_that_leave_no_room_for_attachments_are_removed() -> None:
    file = Attachment(media_type="image/png", name="a", url="")
    started = RunStarted(agent="a", input="x", input_values={"a": "x" * 30_000}, attachments=(file,))
    (shown,) = fitted(started).events
    assert isinstance(shown, RunStarted)
    assert (shown.input_values, shown.attachments) == (None, (file,))


def test_question_that_is_too_long_loses_the_links_of_its_attachments() -> None:
    files = tuple(Attachment(media_type="image/png", name=f"{n}", url="ü" * 2000) for n in range(20))
    found = fitted(RunStarted(agent="a", input="x" * 30_000, attachments=files))
    (started,) = found.events
    assert isinstance(started, RunStarted)
    assert len(started.attachments) == 20
    assert {file.url for file in started.attachments} == {""}
    assert (started.truncated, started.size, started.result_url) == (True, 30_000, "/runs/run_1/input")
    assert [(result.key, len(result.body)) for result in found.results] == [("input:", 30_000)]


def test_value_just_below_the_limit_stays_in_the_log() -> None:
    text = "x" * (MAX_INLINE - 2)
    assert result_of(text) == text
    assert fitted(ToolFinished(call_id="c", result=text + "x")).results


def test_result_over_the_limit_is_cut_and_its_complete_size_is_reported() -> None:
    found = fitted(ToolFinished(call_id="c", result="x" * 50_000), result_max=45_000)
    assert len(found.results[0].body) == 45_000
    assert [event.size for event in found.events if isinstance(event, ToolFinished)] == [50_000]


def test_preview_has_at_most_ten_thousand_characters_and_24_kib_of_json() -> None:
    assert len(preview_of("a" * 50_000)) == len(preview_of("é" * 50_000)) == 10_000
    control = preview_of("\x00" * 50_000)
    assert json_size(control) <= 24 * 1024
    assert len(control) > 2_000
    assert preview_of("short") == "short"


def test_control_characters_count_with_the_size_of_their_json() -> None:
    text = "\x00" * 6_000
    found = fitted(ToolFinished(call_id="c", result=text))
    assert found.results[0].body == text.encode()
    assert len(msgspec.json.encode(found.events[0])) <= MAX_EVENT


def test_long_plan_and_long_citation_keep_their_beginning() -> None:
    plan = only(Plan(text="x" * 40_000))
    assert (plan.text, plan.truncated) == ("x" * PREVIEW_CHARACTERS, True)
    assert only(SourceCited(title="t", text="x" * 40_000)).text == "x" * PREVIEW_CHARACTERS


def test_citation_always_fits_and_its_link_is_complete_or_omitted() -> None:
    link = "https://example.org/" + "x" * 8_000
    cited = only(SourceCited(title="t", url=link))
    assert (cited.url, cited.truncated) == (link, False)
    control = "\x00" * 100_000
    found = fitted(SourceCited(title=control, url=f"data:text/plain,{control}", text=control)).events
    assert len(msgspec.json.encode(found)) <= MAX_EVENT
    cited = only(SourceCited(title="x" * 100_000, url=f"data:text/plain,{control}"))
    assert (len(cited.title), cited.url, cited.truncated) == (2_000, "", True)


@pytest.mark.parametrize(
    ("event", "field"),
    [
        (Status(text="x" * 100_000), "text"),
        (RunFailed(code="c", message="x" * 100_000), "message"),
        (RunCancelled(reason="x" * 100_000), "reason"),
        (AgentFinished(agent_id="a", error="x" * 100_000), "error"),
        (StepFinished(number=1, error="x" * 100_000), "error"),
        (ToolFinished(call_id="c", error="x" * 100_000), "error"),
        (ApprovalResolved(approval_id="p", decision="reject", reason="x" * 100_000), "reason"),
    ],
    ids=lambda value: kind_of(value) if isinstance(value, Event) else "",
)
def test_long_texts_of_events_are_cut_to_the_short_limit(event: AnyEvent, field: str) -> None:
    line = getattr(only(event), field)
    assert line == "x" * (SHORT_CHARACTERS - 1) + "…"


@pytest.mark.parametrize(
    ("event", "field"),
    [
        (ToolStarted(call_id="c", name="n" * 600), "name"),
        (ToolStarted(call_id="c" * 600, name="n", args={}), "call_id"),
        (AgentStarted(agent_id="a", name="n" * 600), "name"),
        (TextDelta(message_id="m" * 600, text="x"), "message_id"),
        (ToolFinished(call_id="c" * 600), "call_id"),
        (Status(agent_id="a" * 600, text=""), "agent_id"),
    ],
    ids=lambda value: kind_of(value) if isinstance(value, Event) else value,
)
def test_oversized_name_is_a_bad_event(event: AnyEvent, field: str) -> None:
    with pytest.raises(BadEvent, match=f"{kind_of(event)}: its {field} has more than 512 characters"):
        fitted(event)


def test_event_that_cannot_be_truncated_is_a_bad_event() -> None:
    with pytest.raises(BadEvent, match=r"usage: \d+ bytes are too large for one event"):
        fitted(Usage(model="x" * 70_000))


def test_answer_keeps_as_many_sources_as_fit() -> None:
    sources = tuple(f"https://a.example/{number}" for number in range(5_000))
    found = fitted(FinalAnswer(content="x" * 10_000, title="t" * 5_000, sources=sources))
    (answer,) = found.events
    assert isinstance(answer, FinalAnswer)
    assert answer.content == "x" * 10_000 and len(answer.title) == SHORT_CHARACTERS
    assert answer.sources == sources[: len(answer.sources)] and len(answer.sources) > 100
    assert (answer.truncated, answer.size, answer.result_url) == (True, 10_000, "/runs/run_1/answer")
    assert [(result.key, result.body) for result in found.results] == [("content:", b"x" * 10_000)]


def test_answer_without_room_for_its_only_source_is_truncated() -> None:
    (answer,) = fitted(FinalAnswer(sources=("x" * 70_000,))).events
    assert isinstance(answer, FinalAnswer)
    assert (answer.sources, answer.truncated) == ((), True)


LONG_ANSWER: dict[str, Any] = {
    "title": "Bees",
    "content": "They dance. " * 4_000,
    "sources": ["https://example.org/"],
    "legs": 6,
}


@pytest.mark.parametrize("message_id", [None, "m"])
@pytest.mark.parametrize(
    "content", [LONG_ANSWER, json.dumps(LONG_ANSWER), repr(LONG_ANSWER)], ids=["dict", "json", "repr"]
)
def test_large_structured_answer_keeps_its_parts_and_is_stored_unchanged(content: Any, message_id: str | None) -> None:
    given = FinalAnswer(content=content, message_id=message_id)
    made = fit(given, "run_1", 10**6, present=DisplayFields().add_to)
    (answer,), (result,) = made.events, made.results
    assert isinstance(answer, FinalAnswer)
    assert (answer.title, answer.sources, answer.message_id) == ("Bees", ("https://example.org/",), message_id)
    assert isinstance(answer.content, str) and LONG_ANSWER["content"].startswith(answer.content)
    assert len(answer.content) == 10_000
    whole = result.body.decode()
    assert whole == content if isinstance(content, str) else json.loads(whole) == content
    assert (answer.truncated, answer.size) == (True, len(result.body))


@pytest.mark.parametrize("content", ["{" * 40_000 + "}" * 40_000, "{'content': " + "[" * 20_000 + "}" * 20_000])
def test_large_answer_that_only_looks_like_an_object_is_a_text(content: str) -> None:
    answer = fit(FinalAnswer(content=content), "run_1", 10**6, present=DisplayFields().add_to).events[0]
    assert isinstance(answer, FinalAnswer)
    assert (answer.title, answer.content) == ("", content[:10_000])


def test_plan_with_too_many_items_is_cut_with_a_note() -> None:
    plan = only(Plan(items=tuple(Todo(f"step {number} " + "x" * 90) for number in range(5_000))))
    assert isinstance(plan, Plan)
    assert plan.truncated
    assert plan.items[0] == Todo("step 0 " + "x" * 90)
    assert 100 < len(plan.items) < 5_000


def test_edited_arguments_are_cut_and_stored_like_others() -> None:
    args = {"text": "x" * 100_000}
    found = fitted(ApprovalResolved(approval_id="a", decision="edit", args=args))
    (event,), (kept,), _ = found
    assert isinstance(event, ApprovalResolved)
    assert event.truncated
    assert msgspec.json.decode(kept.body) == args
