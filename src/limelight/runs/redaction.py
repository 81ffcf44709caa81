"""What tools get and return, without what may not be kept. Pure; the engine asks before anything is written.

Arguments, results, output, errors, plans and notes are looked at; what a model says is not. What a running tool prints
is held back as long as something in it may still turn out to be hidden: with patterns, until the line ends. Pieces of
arguments are left out then, since `tool_ready` has all of them.
"""

from typing import Any, NamedTuple

import msgspec

from limelight.events import (
    AgentFinished,
    AnyEvent,
    ApprovalRequested,
    ApprovalResolved,
    FinalAnswer,
    Plan,
    RunCancelled,
    RunFailed,
    SourceCited,
    Status,
    StepFinished,
    Todo,
    ToolArgsDelta,
    ToolFinished,
    ToolOutputDelta,
    ToolReady,
    ToolStarted,
)
from limelight.hiding import Hiding
from limelight.pieces import Pieces

LOOKED_AT: dict[type[AnyEvent], tuple[str, ...]] = {
    ToolStarted: ("args",),
    ToolReady: ("args",),
    ToolFinished: ("result", "error"),
    ApprovalRequested: ("args",),
    ApprovalResolved: ("args", "reason"),
    SourceCited: ("title", "url", "text"),
    Status: ("text",),
    StepFinished: ("error",),
    AgentFinished: ("error",),
    RunFailed: ("message",),
    RunCancelled: ("reason",),
    Plan: ("text", "items"),
    FinalAnswer: ("content", "title", "sources"),
}
TUPLES: dict[str, Any] = {"items": tuple[Todo, ...], "sources": tuple[str, ...]}
"""Fields that are no JSON as they are."""


class Redaction:
    """Follows one run."""

    def __init__(self, hiding: Hiding) -> None:
        self._hiding = hiding
        self._streams: dict[tuple[type[AnyEvent], str, str], _Stream] = {}

    def whole(self, event: AnyEvent) -> AnyEvent:
        """An event that needs no other one to be understood. An answer that was streamed is as it was said."""
        if isinstance(event, FinalAnswer) and event.message_id is not None:
            return event
        changes: dict[str, Any] = {}
        for field in LOOKED_AT.get(type(event), ()):
            value = getattr(event, field)
            if isinstance(value, tuple):
                value = list(msgspec.to_builtins(value))
            hidden = self._hiding.value(value)
            if hidden != value:
                changes[field] = msgspec.convert(hidden, TUPLES[field]) if field in TUPLES else hidden
        return msgspec.structs.replace(event, **changes) if changes else event

    def feed(self, event: AnyEvent) -> list[AnyEvent]:
        """An event on its way, with what was held back before it."""
        match event:
            case ToolArgsDelta() if self._hiding.needs_whole_texts:
                return []
            case ToolArgsDelta(call_id=str(), text=str()) | ToolOutputDelta(call_id=str(), text=str()):
                return self._piece(event)
            case ToolReady() | ToolFinished():
                return [*self._rest_of(event.call_id), event]
            case _:
                return [event]

    def rest(self) -> list[AnyEvent]:
        """What is still held back."""
        return [piece for call_id in dict.fromkeys(key[1] for key in self._streams) for piece in self._rest_of(call_id)]

    def _piece(self, event: ToolOutputDelta | ToolArgsDelta) -> list[AnyEvent]:
        key = (type(event), event.call_id, getattr(event, "stream", ""))
        known = self._streams.get(key)
        stream = self._streams[key] = _Stream(event, known.pieces if known else Pieces(self._hiding))
        return stream.told(stream.pieces.feed(event.text))

    def _rest_of(self, call_id: str) -> list[AnyEvent]:
        ended = [self._streams.pop(key) for key in list(self._streams) if key[1] == call_id]
        return [piece for stream in ended for piece in stream.told(stream.pieces.rest())]


class _Stream(NamedTuple):
    """What a tool gets or prints, piece by piece."""

    last: ToolOutputDelta | ToolArgsDelta
    pieces: Pieces

    def told(self, text: str) -> list[AnyEvent]:
        return [msgspec.structs.replace(self.last, text=text)] if text else []
