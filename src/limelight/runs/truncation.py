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
"""Limit for a value inside of an event, in bytes. A larger value is replaced by a preview."""
PREVIEW_CHARACTERS = 10_000
PREVIEW_BYTES = 24 * 1024
SHORT_CHARACTERS = 2_000
"""Limit for errors, statuses, titles and reasons, in characters. Longer texts are shortened."""
MAX_LINK = 8 * 1024
"""Limit for the URL of a source, in bytes of JSON. A longer URL is removed."""
MAX_EVENT = 56 * 1024
"""Limit for an event as JSON, in bytes, so that no SSE line exceeds 64 KiB."""
MAX_NAME = 512
"""Limit for an id or a name, in characters. Frames repeat ids and names beside other values."""
TEXT = "text/plain; charset=utf-8"
JSON = "application/json"
_TEXTS: dict[type, str] = {ToolFinished: "result", FinalAnswer: "content", RunStarted: "input"}
"""The field of each event type whose text is stored in the results table if it is large."""
_NAMES = {kind: [f for f in kind.__struct_fields__ if f in ("name", "by") or f.endswith("_id")] for kind in EVENT_TYPES}
E = TypeVar("E", bound=msgspec.Struct)
_decode = msgspec.json.Decoder(AnyEvent).decode


Change = Callable[[AnyEvent], AnyEvent]


def _unchanged(event: AnyEvent) -> AnyEvent:
    return event


class Fitted(NamedTuple):
    """The outcome of `fit`: the events for the log, and the values for the results table."""

    events: list[AnyEvent]
    results: list[Result]
    size: int
    """The bytes of the events as JSON, plus the bytes of the results."""


def fit(
    event: AnyEvent, run_id: str, result_max: int, redact: Change = _unchanged, present: Change = _unchanged
) -> Fitted:
    """Return an event in the form in which it is logged: valid JSON, redacted, and within the size limits.

    `redact` and then `present` are applied before anything is truncated. `present` derives fields for clients; a value
    in the results table is stored as it was before `present`. Raises BadEvent if a field has the wrong type, or if the
    event is too large and cannot be shortened.
    """
    is_large = bool(_large_text(event))
    event = redact(event if is_large else _as_read_back(event))
    if text := _large_text(event):
        return _store_large_text(event, text, run_id, result_max, present)
    if is_large:  # the text was large only before redaction, so it was not validated above
        event = _as_read_back(event)
    given, event = event, present(event)
    if isinstance(event, Delta):
        return _fitted(_split(event))
    match event:
        case ToolStarted() if event.args is not None:
            return _store_if_large(event, "args", run_id, event.call_id, result_max)
        case ToolReady():
            return _store_if_large(event, "args", run_id, event.call_id, result_max)
        case ApprovalRequested():
            return _store_if_large(event, "args", run_id, event.approval_id, result_max, kind="approval")
        case ToolFinished():
            return _store_if_large(_shortened(event, "error"), "result", run_id, event.call_id, result_max)
        case FinalAnswer() if isinstance(given, FinalAnswer):
            return _answer(event, given, run_id, result_max)
        case RunStarted():
            return _started(event, run_id, result_max)
        case Plan():
            event = _plan(event)
        case Status():
            event = _shortened(event, "text")
        case SourceCited():
            event = _source(event)
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


def _answer(event: FinalAnswer, given: FinalAnswer, run_id: str, result_max: int) -> Fitted:
    """Return a `final_answer` event within the size limits. `given` is the event before `present`.

    If the answer is too large, or some of its sources are dropped, the content of `given` is stored in the results
    table. The content of a structured answer contains all its sources.
    """
    all_sources, event = event.sources, _with_sources(event)
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


def _started(event: RunStarted, run_id: str, result_max: int) -> Fitted:
    """Return a `run_started` event within the size limits.

    If attachments or their URLs are removed, the event is `truncated`, and its input is stored in the results table.
    """
    shown = _with_room(event)
    fitted = _store_if_large(shown, "input", run_id, "", result_max)
    if shown is event or fitted.results:
        return fitted
    return _with_preview(shown, "input", "", event.input.encode(), TEXT, run_id, result_max)


def _large_text(event: AnyEvent) -> str:
    """Return the text of an input, an answer or a tool result if it is too large for the log, else ""."""
    text = getattr(event, _TEXTS.get(type(event), ""), "")
    return text if type(text) is str and len(text) > MAX_INLINE else ""


def _store_large_text(event: AnyEvent, text: str, run_id: str, result_max: int, present: Change) -> Fitted:
    """Return the event with a preview of its large text, and the complete text for the results table.

    The text is not encoded as JSON, which would block the event loop.
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
    return type(text) is str and len(text) * 6 <= MAX_DELTA and (text.isascii() or _writable(text))


def preview_of(text: str) -> str:
    """Return the preview of a text, its beginning: at most PREVIEW_CHARACTERS, and at most PREVIEW_BYTES as JSON."""
    preview = text[:PREVIEW_CHARACTERS]
    while json_size(preview) > PREVIEW_BYTES:
        preview = preview[: len(preview) // 2]
    return preview


def _writable(text: str) -> bool:
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


def _as_read_back(event: AnyEvent) -> AnyEvent:
    """Encode an event as JSON and return the decoded event, so that live viewers get the same values as later readers.

    Values that have no JSON form are converted (`json_values.py`). Raises BadEvent if a field has the wrong type.
    """
    value: Any = getattr(event, "result", getattr(event, "content", None))
    try:
        if isinstance(value, float) and not math.isfinite(value):
            return _plain(event)
        written = msgspec.json.encode(event)
        nested = written.count(b"[") + written.count(b"{") > MAX_DEPTH
        if nested and any(is_too_deep(getattr(event, name)) for name in event.__struct_fields__):
            return _plain(event)
        return _decode(written)
    except msgspec.ValidationError as error:
        raise BadEvent(f"{kind_of(event)}: {error}") from error
    except (TypeError, ValueError, OverflowError, RecursionError):
        return _plain(event)


def _plain(event: AnyEvent) -> AnyEvent:
    fields = {name: getattr(event, name) for name in event.__struct_fields__}
    plain = {name: value if value is None else json_value(value) for name, value in fields.items()}
    try:
        return msgspec.convert(plain, type(event))
    except msgspec.ValidationError as error:
        raise BadEvent(f"{kind_of(event)}: {error}") from error


def _store_if_large(event: Any, field: str, run_id: str, id_: str, result_max: int, kind: str = "") -> Fitted:
    """Return an event in which a large value of `field` is replaced by a preview, and the value as a Result.

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
    """Add to an event with a preview the link and the size of the complete value. Return it with a Result to store.

    `body` is the complete value; the Result has its first `result_max` bytes.
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


def _with_room(event: RunStarted) -> RunStarted:
    """Return a `run_started` event whose attachments have room in it.

    If they are too large, their URLs are removed, and then the last attachments until the rest fits.
    """
    room = MAX_EVENT - MAX_INLINE - SHORT_CHARACTERS
    if len(msgspec.json.encode(event.attachments)) <= room:
        return event
    bare = tuple(msgspec.structs.replace(file, url="") for file in event.attachments)
    while len(msgspec.json.encode(bare)) > room:
        bare = bare[: len(bare) // 2]
    return msgspec.structs.replace(event, attachments=bare)


def _with_sources(event: FinalAnswer) -> FinalAnswer:
    """Shorten the title of an answer, and drop its last sources until the rest fits into the event."""
    event = _shortened(event, "title")
    room = MAX_EVENT - MAX_INLINE - 6 * SHORT_CHARACTERS
    sources = event.sources
    while len(msgspec.json.encode(sources)) > room:
        sources = sources[: len(sources) // 2]
    return event if sources is event.sources else msgspec.structs.replace(event, sources=sources)


def _plan(event: Plan) -> Plan:
    """Replace a long text of a plan by a preview, and drop the last items until the plan fits into an event."""
    if json_size(event.text) > MAX_INLINE:
        event = msgspec.structs.replace(event, text=preview_of(event.text), truncated=True)
    while event.items and len(msgspec.json.encode(event)) > MAX_INLINE + PREVIEW_BYTES:
        event = msgspec.structs.replace(event, items=event.items[: len(event.items) // 2], truncated=True)
    return event


def _source(event: SourceCited) -> SourceCited:
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
