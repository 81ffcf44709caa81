"""Makes any event fit the log: valid text, bounded size, nothing lost.

Deltas that are too long are split. Arguments, results, answers and inputs that are too large go whole to the results
table; the event keeps a preview and says where the rest is. Values that JSON does not know become text. Pure; the
engine calls it.
"""

from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec

from limelight.deltas import MAX_DELTA, Delta, json_size
from limelight.errors import BadEvent
from limelight.events import (
    AnyEvent,
    ApprovalRequested,
    FinalAnswer,
    JsonValue,
    Plan,
    RunFailed,
    RunStarted,
    SourceCited,
    Status,
    ToolFinished,
    ToolReady,
    ToolStarted,
    kind_of,
)
from limelight.stores.base import Result

MAX_INLINE = 32 * 1024
"""The most bytes that a value may take in the log."""
PREVIEW_CHARACTERS = 10_000
PREVIEW_BYTES = 24 * 1024
SHORT_CHARACTERS = 2_000
"""Errors, statuses and other lines for humans are cut here."""
MAX_EVENT = 56 * 1024
"""What no event exceeds as JSON, so that no SSE line exceeds 64 KiB."""


class Fitted(NamedTuple):
    """What goes into the log instead of the event, and what goes beside it."""

    events: list[AnyEvent]
    results: list[Result]


def fit(event: AnyEvent, run_id: str, result_max: int) -> Fitted:
    """Bring an event into a form that every store and every wire can carry."""
    if isinstance(event, Delta):
        return Fitted(_split(event), [])
    event = _writable(event)
    match event:
        case ToolStarted() if event.args is not None:
            return _spill(event, "args", run_id, event.call_id, result_max)
        case ToolReady():
            return _spill(event, "args", run_id, event.call_id, result_max)
        case ApprovalRequested():
            return _spill(event, "args", run_id, event.call_id or event.approval_id, result_max)
        case ToolFinished():
            event = msgspec.structs.replace(event, error=None if event.error is None else _short(event.error))
            return _spill(event, "result", run_id, event.call_id, result_max)
        case FinalAnswer():
            return _spill(event, "content", run_id, "", result_max)
        case RunStarted():
            return _spill(event, "input", run_id, "", result_max)
        case Plan() if json_size(event.text) > MAX_INLINE:
            event = msgspec.structs.replace(event, text=preview_of(event.text), truncated=True)
        case Status():
            event = msgspec.structs.replace(event, text=_short(event.text))
        case SourceCited() if json_size(event.text) > MAX_INLINE:
            event = msgspec.structs.replace(event, text=preview_of(event.text))
        case RunFailed():
            event = msgspec.structs.replace(event, message=_short(event.message))
        case _:
            pass
    return Fitted([_bounded(event)], [])


def jsonable(value: Any) -> JsonValue:
    """JSON if it can be, else text; None is ""."""
    if value is None:
        return ""
    try:
        return msgspec.json.decode(msgspec.json.encode(value))
    except UnicodeEncodeError:
        return _clean(value)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return _clean_text(str(value))


def preview_of(text: str) -> str:
    """The beginning of a text: 10,000 characters, or less if these take more room than a frame has."""
    preview = text[:PREVIEW_CHARACTERS]
    while json_size(preview) > PREVIEW_BYTES:
        preview = preview[: len(preview) // 2]
    return preview


def _split(event: Delta) -> list[AnyEvent]:
    text = event.text
    if not text.isascii():
        text = _clean_text(text)
    if len(text) * 6 <= MAX_DELTA or json_size(text) <= MAX_DELTA:  # six bytes are the most that a character takes
        return [event if text is event.text else msgspec.structs.replace(event, text=text)]
    pieces = [text[: len(text) // 2], text[len(text) // 2 :]]
    return [part for piece in pieces for part in _split(msgspec.structs.replace(event, text=piece))]


def _writable(event: AnyEvent) -> AnyEvent:
    """The same event, if it can be written as JSON at all; otherwise with every odd value made a plain one."""
    try:
        msgspec.json.encode(event)
        return event
    except (UnicodeEncodeError, TypeError, ValueError, OverflowError, RecursionError):
        fields = {name: getattr(event, name) for name in event.__struct_fields__}
        plain = {name: value if value is None else jsonable(value) for name, value in fields.items()}
        try:
            return msgspec.convert(plain, type(event))
        except msgspec.ValidationError as error:
            raise BadEvent(f"{kind_of(event)}: {error}") from error


def _spill(event: Any, field: str, run_id: str, call_id: str, result_max: int) -> Fitted:
    """Move a value that is too large out of the event, whole."""
    value: Any = getattr(event, field)
    if value is None or (field == "result" and isinstance(value, msgspec.Struct)):
        value = jsonable(value)
    is_text = isinstance(value, str)
    text = value if is_text else msgspec.json.encode(value).decode()
    if json_size(text) <= MAX_INLINE:
        return Fitted([_bounded(msgspec.structs.replace(event, **{field: value}))], [])
    body = text.encode()
    changes: dict[str, Any] = {field: preview_of(text), "truncated": True, "size": len(body)}
    if "result_url" in event.__struct_fields__:
        changes["result_url"] = result_url(run_id, field, call_id)
    media_type = "text/plain; charset=utf-8" if is_text else "application/json"
    kept = Result(key=result_key(field, call_id), media_type=media_type, body=body[:result_max])
    return Fitted([_bounded(msgspec.structs.replace(event, **changes))], [kept])


def result_key(field: str, call_id: str = "") -> str:
    """Under which key a value that was moved out is kept: what it is, and of which call."""
    return f"{field}:{call_id}"


def result_url(run_id: str, field: str, call_id: str) -> str:
    """Where a client gets the whole value."""
    if call_id:
        return f"/runs/{run_id}/tools/{quote(call_id, safe='')}"
    return f"/runs/{run_id}/{'answer' if field == 'content' else 'input'}"


def _bounded(event: AnyEvent) -> AnyEvent:
    size = len(msgspec.json.encode(event))
    if size > MAX_EVENT:
        raise BadEvent(f"{kind_of(event)}: {size} bytes are too large for one event")
    return event


def _short(text: str) -> str:
    return text if len(text) <= SHORT_CHARACTERS else text[: SHORT_CHARACTERS - 1] + "…"


def _clean(value: Any) -> Any:
    """The same value with text that can be written; the keys of objects too."""
    if isinstance(value, str):
        return _clean_text(value)
    if isinstance(value, dict):
        return {_clean_text(str(k)): _clean(v) for k, v in value.items()}  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    if isinstance(value, list | tuple | set):
        return [_clean(v) for v in value]  # pyright: ignore[reportUnknownVariableType]
    return value if value is None or isinstance(value, bool | int | float) else _clean_text(str(value))


def _clean_text(text: str) -> str:
    """Halves of surrogate pairs are not text: two that belong together become one character, others U+FFFD."""
    try:
        text.encode()
        return text
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
