"""Limits the size of events, and makes their values valid JSON, before they are logged. Pure; the engine calls it.

Deltas that are too long are split. Arguments, results, answers and inputs that are too large are stored in the results
table, up to `result_max` bytes; the event has a preview and a link to the stored value. Other texts are shortened.
Sources, attachments and plan items for which an event has no room are dropped, and the event is `truncated`.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import msgspec

from limelight.deltas import MAX_DELTA, Delta, json_size
from limelight.errors import BadEvent
from limelight.events import (
    EVENT_TYPES,
    AgentFinished,
    AgentStarted,
    AnyEvent,
    ApprovalRequested,
    ApprovalResolved,
    FinalAnswer,
    Plan,
    RunCancelled,
    RunFailed,
    RunStarted,
    SourceCited,
    Status,
    StepFinished,
    ToolFinished,
    ToolReady,
    ToolStarted,
    kind_of,
)
from limelight.json_values import MAX_DEPTH, clean_text, is_too_deep, json_value
from limelight.links import result_url
from limelight.models import Result
from limelight.structured_answers import to_text

MAX_INLINE = 32 * 1024
"""Maximum size of a value inside of an event, in bytes. A larger value is replaced by a preview."""
PREVIEW_CHARACTERS = 10_000
PREVIEW_BYTES = 24 * 1024
SHORT_CHARACTERS = 2_000
"""Maximum length of errors, statuses, titles and reasons, in characters. Longer texts are shortened."""
MAX_INPUT_VALUES = 8 * 1024
"""Maximum size of the values of an input object, in bytes of JSON. Larger ones are added to the text of the input."""
QUESTION_CHARACTERS = 4_000
"""Maximum length of the question of an approval request, in characters."""
MAX_QUESTION = 8 * 1024
"""Maximum size of that question, and of the schema of its answer, in bytes of JSON."""
MAX_LINK = 8 * 1024
"""Maximum length of the URL of a cited source, in bytes of JSON. A longer URL is removed."""
MAX_EVENT = 56 * 1024
"""Maximum size of an event as JSON, in bytes, so that no SSE line exceeds 64 KiB."""
MAX_OTHER_FIELDS = 4 * 1024
"""Maximum size of the ids, the links and the names of the fields of an answer, in bytes of JSON."""
MAX_NAME = 512
"""Maximum length of an id or a name in an event, in characters. A frame contains them in addition to its values."""
TEXT = "text/plain; charset=utf-8"
JSON = "application/json"
_TEXTS: dict[type, str] = {ToolFinished: "result", FinalAnswer: "content", RunStarted: "input"}
"""For each event type with a text that may be large, the field. A large text is stored in the results table."""
_NAMES = {kind: [f for f in kind.__struct_fields__ if f in ("name", "by") or f.endswith("_id")] for kind in EVENT_TYPES}
E = TypeVar("E", bound=msgspec.Struct)
_decode = msgspec.json.Decoder(AnyEvent).decode


Change = Callable[[AnyEvent], AnyEvent]


def _unchanged(event: AnyEvent) -> AnyEvent:
    return event


class Fitted(NamedTuple):
    """What `fit` makes of an event: the events for the log, and the large values for the results table."""

    events: list[AnyEvent]
    results: list[Result]
    size: int
    """Total bytes of the events as JSON and of the values."""


def fit(
    event: AnyEvent, run_id: str, result_max: int, redact: Change = _unchanged, present: Change = _unchanged
) -> Fitted:
    """Make an event ready for the log: redacted, valid JSON, and within the size limits.

    `redact` removes secrets, and then `present` adds derived fields for clients, both before anything is truncated. A
    value that is too large for the log is stored whole as a Result, redacted but without the changes of `present`.
    Raises BadEvent if a field has the
    wrong type, or if the event is too large and cannot be shortened.
    """
    is_large = bool(_large_text(event))
    event = redact(event if is_large else _json_round_trip(event))
    if text := _large_text(event):
        return _store_large_text(event, text, run_id, result_max, present)
    if is_large:  # the text was large only before redaction, so it was not validated above
        event = _json_round_trip(event)
    given, event = event, present(event)
    if isinstance(event, Delta):
        return _fitted(_split(event))
    match event:
        case ToolStarted() if event.args is not None:
            return _store_if_large(event, "args", run_id, event.call_id, result_max)
        case ToolReady():
            return _store_if_large(event, "args", run_id, event.call_id, result_max)
        case ApprovalRequested():
            event = _fit_question(event)
            return _store_if_large(event, "args", run_id, event.approval_id, result_max, kind="approval")
        case ToolFinished():
            return _store_if_large(_shortened(event, "error"), "result", run_id, event.call_id, result_max)
        case FinalAnswer() if isinstance(given, FinalAnswer):
            return _fit_answer(event, given, run_id, result_max)
        case RunStarted():
            return _fit_run_started(event, run_id, result_max)
        case Plan():
            event = _fit_plan(event)
        case Status():
            event = _shortened(event, "text")
        case SourceCited():
            event = _fit_source(event)
        case AgentStarted():
            event = _shortened(_shortened(event, "task"), "title")
        case AgentFinished() | StepFinished():
            event = _shortened(event, "error")
        case ApprovalResolved() if event.args is not None:
            event = _shortened(event, "reason")
            return _store_if_large(event, "args", run_id, event.approval_id, result_max, kind="edited")
        case ApprovalResolved() | RunCancelled():
            event = _shortened(event, "reason")
        case RunFailed():
            event = _shortened(event, "message")
        case _:
            pass
    return _fitted([event])


def _fit_answer(event: FinalAnswer, given: FinalAnswer, run_id: str, result_max: int) -> Fitted:
    """Return a `final_answer` event within the size limits. `given` is the event before display fields were added.

    If the answer is too large, or some of its sources are dropped, the content of `given` is stored in the results
    table. The content of a structured answer contains all its sources.
    """
    all_sources, event = event.sources, _fit_sources(event)
    is_cut = len(event.sources) < len(all_sources)
    if event.content is given.content and not is_cut:
        return _store_if_large(event, "content", run_id, "", result_max)
    if json_size(to_text(event.content)) + json_size(to_text(event.data)) > MAX_INLINE:
        event = msgspec.structs.replace(event, content=preview_of(to_text(event.content)), data=None)
    elif not is_cut:
        return _fitted([event])
    body = to_text(given.content).encode()
    media_type = TEXT if isinstance(given.content, str) else JSON
    return _with_preview(event, "content", "", body, media_type, run_id, result_max)


def _fit_run_started(event: RunStarted, run_id: str, result_max: int) -> Fitted:
    """Return a `run_started` event within the size limits.

    If attachments or their URLs are removed, the event is `truncated`, and its input is stored in the results table.
    """
    shown = _fit_attachments(event)
    fitted = _store_if_large(shown, "input", run_id, "", result_max)
    if shown is event or fitted.results:
        return fitted
    return _with_preview(shown, "input", "", event.input.encode(), TEXT, run_id, result_max)


def _large_text(event: AnyEvent) -> str:
    """Return the text of an input, an answer or a tool result if it is too large for the log, else ""."""
    text = getattr(event, _TEXTS.get(type(event), ""), "")
    return text if type(text) is str and len(text) > MAX_INLINE else ""


def _store_large_text(event: AnyEvent, text: str, run_id: str, result_max: int, present: Change) -> Fitted:
    """Replace a large text in an event by a preview, and return both the event and the text for the results table.

    The text is not encoded as JSON, because this would block the event loop.
    """
    field = _TEXTS[type(event)]
    try:
        body = text.encode()
    except UnicodeEncodeError:
        text = clean_text(text)
        body = text.encode()
    shown = present(msgspec.structs.replace(event, **{field: text}))
    changes: dict[str, Any] = {field: preview_of(getattr(shown, field))}
    if isinstance(shown, FinalAnswer):
        changes["data"] = None
    event = fit(msgspec.structs.replace(shown, **changes), run_id, result_max).events[0]
    id_ = event.call_id if isinstance(event, ToolFinished) else ""
    return _with_preview(event, field, id_, body, TEXT, run_id, result_max)


def is_plain(text: Any) -> bool:
    """Whether `fit` would not change the text of a delta: it is short, and has no lone surrogates."""
    return type(text) is str and len(text) * 6 <= MAX_DELTA and (text.isascii() or _is_valid_unicode(text))


def preview_of(text: str) -> str:
    """Return the beginning of a text: at most PREVIEW_CHARACTERS, and at most PREVIEW_BYTES as JSON."""
    preview = text[:PREVIEW_CHARACTERS]
    while json_size(preview) > PREVIEW_BYTES:
        preview = preview[: len(preview) // 2]
    return preview


def _is_valid_unicode(text: str) -> bool:
    try:
        return bool(text.encode())
    except UnicodeEncodeError:
        return False


def _split(event: Delta) -> list[AnyEvent]:
    text = event.text
    if len(text) * 6 <= MAX_DELTA or json_size(text) <= MAX_DELTA:  # a character takes at most six bytes
        return [event]
    halves = [text[: len(text) // 2], text[len(text) // 2 :]]
    return [part for half in halves for part in _split(msgspec.structs.replace(event, text=half))]


def _json_round_trip(event: AnyEvent) -> AnyEvent:
    """Encode an event as JSON and decode it again, so that live viewers get the same values as readers of the log.

    Values that have no JSON form are converted (`json_values.py`). Raises BadEvent if a field has the wrong type.
    """
    value: Any = getattr(event, "result", getattr(event, "content", None))
    try:
        if isinstance(value, float) and not math.isfinite(value):
            return _as_json_values(event)
        written = msgspec.json.encode(event)
        nested = written.count(b"[") + written.count(b"{") > MAX_DEPTH
        if nested and any(is_too_deep(getattr(event, name)) for name in event.__struct_fields__):
            return _as_json_values(event)
        return _decode(written)
    except msgspec.ValidationError as error:
        raise BadEvent(f"{kind_of(event)}: {error}") from error
    except (TypeError, ValueError, OverflowError, RecursionError):
        return _as_json_values(event)


def _as_json_values(event: AnyEvent) -> AnyEvent:
    fields = {name: getattr(event, name) for name in event.__struct_fields__}
    plain = {name: value if value is None else json_value(value) for name, value in fields.items()}
    try:
        return msgspec.convert(plain, type(event))
    except msgspec.ValidationError as error:
        raise BadEvent(f"{kind_of(event)}: {error}") from error


def _store_if_large(event: Any, field: str, run_id: str, id_: str, result_max: int, kind: str = "") -> Fitted:
    """Replace a large value of `field` in an event by a preview, and return both the event and the value to store.

    `kind` names the value in the results table and in its link; the default is the name of the field.
    """
    kind = kind or field
    value: Any = getattr(event, field)
    if value is None:
        value = ""
    is_text = isinstance(value, str)
    body = value.encode() if is_text else msgspec.json.encode(value)
    if len(body) <= MAX_INLINE and json_size(body.decode()) <= MAX_INLINE:
        return _fitted([msgspec.structs.replace(event, **{field: value})])
    media_type = TEXT if is_text else JSON
    begin = body[: 4 * PREVIEW_CHARACTERS].decode(errors="ignore")  # a character takes at most four bytes
    event = msgspec.structs.replace(event, **{field: preview_of(begin)})
    return _with_preview(event, kind, id_, body, media_type, run_id, result_max)


def _with_preview(
    event: Any, kind: str, id_: str, body: bytes, media_type: str, run_id: str, result_max: int
) -> Fitted:
    """Add to an event with a preview the size of the complete value and a link to it. Return also the value to store.

    `body` is the complete value, of which the first `result_max` bytes are stored.
    """
    event = msgspec.structs.replace(event, truncated=True, size=len(body), result_url=result_url(run_id, kind, id_))
    return _fitted([event], Result(key=result_key(kind, id_), media_type=media_type, body=body[:result_max]))


def result_key(kind: str, id_: str = "") -> str:
    """Return the key of a value in the results table, made of its kind and the id of its tool call or approval."""
    return f"{kind}:{id_}"


def _fitted(events: list[AnyEvent], *results: Result) -> Fitted:
    size = sum(_size_of(event) for event in events) + sum(len(result.body) for result in results)
    return Fitted(events, list(results), size)


def _size_of(event: AnyEvent) -> int:
    """Return the number of bytes of an event as JSON. Raises BadEvent above MAX_EVENT, or for a name above MAX_NAME."""
    for field in _NAMES[type(event)]:
        if len(getattr(event, field) or "") > MAX_NAME:
            raise BadEvent(f"{kind_of(event)}: its {field} has more than {MAX_NAME} characters")
    size = len(msgspec.json.encode(event))
    if size > MAX_EVENT:
        raise BadEvent(f"{kind_of(event)}: {size} bytes are too large for one event")
    return size


def _fit_question(event: ApprovalRequested) -> ApprovalRequested:
    """Shorten a long question, and remove schemas that are too large: an answer can then be any value."""
    question = event.question[:QUESTION_CHARACTERS]
    while json_size(question) > MAX_QUESTION:
        question = question[: len(question) // 2]
    if question != event.question:
        event = msgspec.structs.replace(event, question=question[:-1] + "…")
    if event.answer_schema is not None and len(msgspec.json.encode(event.answer_schema)) > MAX_QUESTION:
        event = msgspec.structs.replace(event, answer_schema={})
    if event.args_schema and len(msgspec.json.encode((event.answer_schema, event.args_schema))) > MAX_QUESTION:
        event = msgspec.structs.replace(event, args_schema=None)
    return event


def _fit_attachments(event: RunStarted) -> RunStarted:
    """Return a `run_started` event in which the descriptions of attachments are not too large.

    If they are, the URLs of all are removed, and then the last attachments until the rest fits. Input values that leave
    no room, because redaction has made them longer, are removed first; the input describes them.
    """
    room = MAX_EVENT - MAX_INLINE - SHORT_CHARACTERS
    values_size = len(msgspec.json.encode(event.input_values)) if event.input_values else 0
    if values_size > room - MAX_OTHER_FIELDS:
        event = msgspec.structs.replace(event, input_values=None)
    else:
        room -= values_size
    if len(msgspec.json.encode(event.attachments)) <= room:
        return event
    bare = tuple(msgspec.structs.replace(file, url="") for file in event.attachments)
    while len(msgspec.json.encode(bare)) > room:
        bare = bare[: len(bare) // 2]
    return msgspec.structs.replace(event, attachments=bare)


def _fit_sources(event: FinalAnswer) -> FinalAnswer:
    """Shorten the title of an answer, and drop its last sources until the rest fits into the event, with its links."""
    event = _shortened(event, "title")
    room = MAX_EVENT - MAX_INLINE - json_size(event.title) - MAX_OTHER_FIELDS
    sources, links = event.sources, event.source_links
    while len(msgspec.json.encode((sources, links))) > room:
        sources, links = sources[: len(sources) // 2], links[: len(sources) // 2]
    if sources is event.sources:
        return event
    return msgspec.structs.replace(event, sources=sources, source_links=links)


def _fit_plan(event: Plan) -> Plan:
    """Replace a long text of a plan by a preview, and drop the last items until the plan fits into an event."""
    if json_size(event.text) > MAX_INLINE:
        event = msgspec.structs.replace(event, text=preview_of(event.text), truncated=True)
    while event.items and len(msgspec.json.encode(event)) > MAX_INLINE + PREVIEW_BYTES:
        event = msgspec.structs.replace(event, items=event.items[: len(event.items) // 2], truncated=True)
    return event


def _fit_source(event: SourceCited) -> SourceCited:
    """Shorten the text and the title of a cited source, and remove its URL if that is too long."""
    if json_size(event.url) > MAX_LINK:
        event = msgspec.structs.replace(event, url="", truncated=True)
    if json_size(event.text) > MAX_INLINE:
        event = msgspec.structs.replace(event, text=preview_of(event.text), truncated=True)
    return _shortened(event, "title")


def _shortened(event: E, field: str) -> E:
    text: str | None = getattr(event, field)
    if text is None or len(text) <= SHORT_CHARACTERS:
        return event
    return msgspec.structs.replace(event, **{field: text[: SHORT_CHARACTERS - 1] + "…"})
