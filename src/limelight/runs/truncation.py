"""Makes any event fit the log: valid text, bounded size, nothing lost.

Deltas that are too long are split. Arguments, results, answers and inputs that are too large go whole to the results
table; the event keeps a preview and says where the rest is. Values that JSON does not know become text. Pure; the
engine calls it.
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
"""The most bytes that a value may take in the log."""
PREVIEW_CHARACTERS = 10_000
PREVIEW_BYTES = 24 * 1024
SHORT_CHARACTERS = 2_000
"""Errors, statuses and other lines for humans are cut here."""
MAX_LINK = 8 * 1024
"""The most bytes of the link of a source."""
MAX_EVENT = 56 * 1024
"""What no event exceeds as JSON, so that no SSE line exceeds 64 KiB."""
MAX_NAME = 512
"""The most characters of an id or a name; frames repeat them beside other values."""
TEXT = "text/plain; charset=utf-8"
JSON = "application/json"
_TEXTS: dict[type, str] = {ToolFinished: "result", FinalAnswer: "content", RunStarted: "input"}
"""Fields whose text goes to the results table if it is large."""
_NAMES = {kind: [f for f in kind.__struct_fields__ if f in ("name", "by") or f.endswith("_id")] for kind in EVENT_TYPES}
E = TypeVar("E", bound=msgspec.Struct)
_decode = msgspec.json.Decoder(AnyEvent).decode


Change = Callable[[AnyEvent], AnyEvent]


def _unchanged(event: AnyEvent) -> AnyEvent:
    return event


class Fitted(NamedTuple):
    """The events that go into the log instead of one event, and the values that go to the results table."""

    events: list[AnyEvent]
    results: list[Result]
    size: int
    """The bytes of the events as JSON and of the results."""


def fit(
    event: AnyEvent, run_id: str, result_max: int, redact: Change = _unchanged, present: Change = _unchanged
) -> Fitted:
    """Bring an event into a form that every store and every wire can carry.

    `redact` and then `present` get the event when its values are valid, and before anything is truncated. `present`
    adds what clients show; a value that is moved to the results table is stored without these changes.
    """
    is_large = bool(_large_text(event))
    event = redact(event if is_large else _as_read_back(event))
    if text := _large_text(event):
        return _without_text(event, text, run_id, result_max, present)
    if is_large:  # before its secrets were removed
        event = _as_read_back(event)
    given, event = event, present(event)
    if isinstance(event, Delta):
        return _fitted(_split(event))
    match event:
        case ToolStarted() if event.args is not None:
            return _spill(event, "args", run_id, event.call_id, result_max)
        case ToolReady():
            return _spill(event, "args", run_id, event.call_id, result_max)
        case ApprovalRequested():
            return _spill(event, "args", run_id, event.approval_id, result_max, kind="approval")
        case ToolFinished():
            return _spill(_shortened(event, "error"), "result", run_id, event.call_id, result_max)
        case FinalAnswer() if isinstance(given, FinalAnswer):
            return _answer(_with_sources(event), given, run_id, result_max)
        case RunStarted():
            return _spill(_with_room(event), "input", run_id, "", result_max)
        case Plan():
            event = _plan(event)
        case Status():
            event = _shortened(event, "text")
        case SourceCited():
            event = _source(event)
        case AgentFinished() | StepFinished():
            event = _shortened(event, "error")
        case ApprovalResolved() if event.args is not None:
            return _spill(_shortened(event, "reason"), "args", run_id, event.approval_id, result_max, kind="edited")
        case ApprovalResolved() | RunCancelled():
            event = _shortened(event, "reason")
        case RunFailed():
            event = _shortened(event, "message")
        case _:
            pass
    return _fitted([event])


def _answer(event: FinalAnswer, given: FinalAnswer, run_id: str, result_max: int) -> Fitted:
    """Fit an answer. If its parts were moved to fields of the event and are too large, the given content is stored."""
    if event.content is given.content:
        return _spill(event, "content", run_id, "", result_max)
    if json_size(to_text(event.content)) + json_size(to_text(event.data)) <= MAX_INLINE:
        return _fitted([event])
    body = to_text(given.content).encode()
    media_type = TEXT if isinstance(given.content, str) else JSON
    event = msgspec.structs.replace(event, content=preview_of(to_text(event.content)), data=None)
    return _moved(event, "content", "", body, media_type, run_id, result_max)


def _large_text(event: AnyEvent) -> str:
    """A text that goes to the results table; "" if there is none, or it is small."""
    text = getattr(event, _TEXTS.get(type(event), ""), "")
    return text if type(text) is str and len(text) > MAX_INLINE else ""


def _without_text(event: AnyEvent, text: str, run_id: str, result_max: int, present: Change) -> Fitted:
    """Do the same for a large text without encoding it as JSON, which would block the event loop."""
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
    return _moved(event, field, id_, body, TEXT, run_id, result_max)


def is_plain(text: Any) -> bool:
    """True for short text without odd characters: `fit` would not change it."""
    return type(text) is str and len(text) * 6 <= MAX_DELTA and (text.isascii() or _writable(text))


def preview_of(text: str) -> str:
    """The beginning of a text: 10,000 characters, or less if these take more room than a frame has."""
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
    if len(text) * 6 <= MAX_DELTA or json_size(text) <= MAX_DELTA:  # six bytes are the most that a character takes
        return [event]
    pieces = [text[: len(text) // 2], text[len(text) // 2 :]]
    return [part for piece in pieces for part in _split(msgspec.structs.replace(event, text=piece))]


def _as_read_back(event: AnyEvent) -> AnyEvent:
    """The event as the log will give it back, so that those who watch now and those who come later see the same.

    Values that cannot be written as JSON are made plain ones. Raises BadEvent if a field has the wrong type.
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


def _spill(event: Any, field: str, run_id: str, id_: str, result_max: int, kind: str = "") -> Fitted:
    """Move a value that is too large out of the event, whole. `kind` is what it is, if the field does not say it."""
    kind = kind or field
    value: Any = getattr(event, field)
    if value is None:
        value = ""
    is_text = isinstance(value, str)
    body = value.encode() if is_text else msgspec.json.encode(value)
    if len(body) <= MAX_INLINE and json_size(body.decode()) <= MAX_INLINE:
        return _fitted([msgspec.structs.replace(event, **{field: value})])
    media_type = TEXT if is_text else JSON
    begin = body[: 4 * PREVIEW_CHARACTERS].decode(errors="ignore")  # four bytes are the most that a character takes
    event = msgspec.structs.replace(event, **{field: preview_of(begin)})
    return _moved(event, kind, id_, body, media_type, run_id, result_max)


def _moved(event: Any, kind: str, id_: str, body: bytes, media_type: str, run_id: str, result_max: int) -> Fitted:
    """An event with a preview, which says where the whole of it is."""
    event = msgspec.structs.replace(event, truncated=True, size=len(body), result_url=result_url(run_id, kind, id_))
    return _fitted([event], Result(key=result_key(kind, id_), media_type=media_type, body=body[:result_max]))


def result_key(kind: str, id_: str = "") -> str:
    """Under which key a value that was moved out is kept: what it is, and of which call or approval."""
    return f"{kind}:{id_}"


def _fitted(events: list[AnyEvent], *results: Result) -> Fitted:
    size = sum(_size_of(event) for event in events) + sum(len(result.body) for result in results)
    return Fitted(events, list(results), size)


def _size_of(event: AnyEvent) -> int:
    """Its bytes as JSON. Raises BadEvent if these are too many, or if one of its names is too long."""
    for field in _NAMES[type(event)]:
        if len(getattr(event, field) or "") > MAX_NAME:
            raise BadEvent(f"{kind_of(event)}: its {field} has more than {MAX_NAME} characters")
    size = len(msgspec.json.encode(event))
    if size > MAX_EVENT:
        raise BadEvent(f"{kind_of(event)}: {size} bytes are too large for one event")
    return size


def _with_room(event: RunStarted) -> RunStarted:
    """Links to attachments are the first to go if a question has more than there is room for."""
    room = MAX_EVENT - MAX_INLINE - SHORT_CHARACTERS
    if len(msgspec.json.encode(event.attachments)) <= room:
        return event
    bare = tuple(msgspec.structs.replace(file, url="") for file in event.attachments)
    while len(msgspec.json.encode(bare)) > room:
        bare = bare[: len(bare) // 2]
    return msgspec.structs.replace(event, attachments=bare)


def _with_sources(event: FinalAnswer) -> FinalAnswer:
    """As much of a title, and as many sources, as there is room for beside the answer."""
    event = _shortened(event, "title")
    room = MAX_EVENT - MAX_INLINE - 6 * SHORT_CHARACTERS
    sources = event.sources
    while len(msgspec.json.encode(sources)) > room:
        sources = sources[: len(sources) // 2]
    return event if sources is event.sources else msgspec.structs.replace(event, sources=sources)


def _plan(event: Plan) -> Plan:
    """As many items and as much text as a frame has room for."""
    if json_size(event.text) > MAX_INLINE:
        event = msgspec.structs.replace(event, text=preview_of(event.text), truncated=True)
    while event.items and len(msgspec.json.encode(event)) > MAX_INLINE + PREVIEW_BYTES:
        event = msgspec.structs.replace(event, items=event.items[: len(event.items) // 2], truncated=True)
    return event


def _source(event: SourceCited) -> SourceCited:
    """A link that is cut leads nowhere, so one that is too long is left out."""
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
