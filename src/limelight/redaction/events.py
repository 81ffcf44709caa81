"""What tools get and return, and what agents say, without what may not be kept. Pure; the engine asks before anything
is written.

Arguments, results, output, errors, plans and notes are looked through for all that is to be hidden; what a model says,
only for the server's own secrets. What a running tool prints is held back as long as something in it may still turn out
to be hidden: with patterns, until the line ends. Pieces of arguments and of plans are left out then, since `tool_ready`
and `plan` have all of them. Of what is said, only the beginning of a secret is ever held back, until it is none, or the
text ends.
"""

from typing import Any, NamedTuple

import msgspec

from limelight.deltas import Delta
from limelight.events import (
    AgentFinished,
    AnyEvent,
    ApprovalRequested,
    ApprovalResolved,
    FinalAnswer,
    Plan,
    PlanDelta,
    ReasoningDelta,
    ReasoningFinished,
    RunCancelled,
    RunFailed,
    RunFinished,
    SourceCited,
    Status,
    StepFinished,
    TextDelta,
    TextFinished,
    Todo,
    ToolArgsDelta,
    ToolFinished,
    ToolOutputDelta,
    ToolReady,
    ToolStarted,
)
from limelight.redaction.rules import Hiding
from limelight.redaction.stream import Pieces

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
        self._own = hiding.own
        self._streams: dict[tuple[type[AnyEvent], str, str], _Stream] = {}
        self._said: dict[tuple[type[AnyEvent], str], _Stream] = {}
        self._plans: dict[str, _PlanInPieces] = {}
        """The plan that each agent writes."""

    @property
    def listens(self) -> bool:
        """Whether there is a secret that somebody may say."""
        return self._own is not None

    def passes(self, piece: TextDelta | ReasoningDelta) -> bool:
        """Whether one more piece of a text can be told as it is, and needs not be fed."""
        stream = self._said.get((type(piece), piece.message_id))
        return stream is not None and stream.pieces.passes(piece.text)

    def whole(self, event: AnyEvent) -> AnyEvent:
        """An event that needs no other one to be understood. An answer that was streamed is as it was said."""
        hiding = self._hiding
        if isinstance(event, FinalAnswer) and event.message_id is not None:
            if self._own is None:
                return event
            hiding = self._own
        changes: dict[str, Any] = {}
        for field in LOOKED_AT.get(type(event), ()):
            value = getattr(event, field)
            if isinstance(value, tuple):
                value = list(msgspec.to_builtins(value))
            hidden = hiding.value(value)
            if hidden != value:
                changes[field] = msgspec.convert(hidden, TUPLES[field]) if field in TUPLES else hidden
        return msgspec.structs.replace(event, **changes) if changes else event

    def feed(self, event: AnyEvent) -> list[AnyEvent]:
        """An event on its way, with what was held back before it."""
        match event:
            case ToolArgsDelta() | PlanDelta() if self._hiding.needs_whole_texts:
                return []
            case ToolArgsDelta(call_id=str(), text=str()) | ToolOutputDelta(call_id=str(), text=str()):
                return self._piece(event)
            case ToolReady() | ToolFinished():
                return [*self._rest_of(event.call_id), event]
            case TextDelta(message_id=str(), text=str()) | ReasoningDelta(message_id=str(), text=str()):
                return [event] if self._own is None else self._word(event, self._own)
            case PlanDelta(agent_id=str(), text=str()):
                return self._plan_piece(event)
            case Plan(agent_id=str()):
                return self._plan(event)
            case StepFinished(agent_id=str()):
                return [*self._rest_of_plan(event.agent_id), event]
            case TextFinished(message_id=str()):
                return [*self._rest_said(TextDelta, event.message_id), event]
            case ReasoningFinished(message_id=str()):
                return [*self._rest_said(ReasoningDelta, event.message_id), event]
            case FinalAnswer(message_id=str(message_id)):
                return [*self._rest_said(TextDelta, message_id), event]
            case AgentFinished():
                of_agent = [key for key, stream in self._said.items() if stream.last.agent_id == event.agent_id]
                said = [piece for key in of_agent for piece in self._rest_said(*key)]
                return [*self._rest_of_plan(event.agent_id), *said, event]
            case RunFinished() | RunFailed() | RunCancelled():
                return [*self.rest(), event]
            case _:
                return [event]

    def rest(self) -> list[AnyEvent]:
        """What is still held back."""
        calls = dict.fromkeys(key[1] for key in self._streams)
        printed = [piece for call_id in calls for piece in self._rest_of(call_id)]
        planned = [piece for agent_id in list(self._plans) for piece in self._rest_of_plan(agent_id)]
        return printed + planned + [piece for key in list(self._said) for piece in self._rest_said(*key)]

    def _plan_piece(self, event: PlanDelta) -> list[AnyEvent]:
        plan = self._plans.setdefault(event.agent_id, _PlanInPieces(Pieces(self._hiding)))
        plan.last = event
        plan.written.append(event.text)
        return plan.tell(plan.pieces.feed(event.text))

    def _plan(self, event: Plan) -> list[AnyEvent]:
        """A plan that came in pieces is as it was told: of where a secret begins, these may have said more."""
        plan = self._plans.get(event.agent_id)
        rest = self._rest_of_plan(event.agent_id)
        if plan is not None and "".join(plan.written) == event.text:
            event = msgspec.structs.replace(event, text="".join(plan.told))
        return [*rest, event]

    def _rest_of_plan(self, agent_id: str) -> list[AnyEvent]:
        plan = self._plans.pop(agent_id, None)
        return [] if plan is None else plan.tell(plan.pieces.rest())

    def _word(self, event: TextDelta | ReasoningDelta, own: Hiding) -> list[AnyEvent]:
        key = (type(event), event.message_id)
        known = self._said.get(key)
        stream = self._said[key] = _Stream(event, known.pieces if known else Pieces(own))
        return stream.told(stream.pieces.feed(event.text)) if event.text else [event]

    def _rest_said(self, kind: type[AnyEvent], message_id: str) -> list[AnyEvent]:
        stream = self._said.pop((kind, message_id), None)
        return [] if stream is None else stream.told(stream.pieces.rest())

    def _piece(self, event: ToolOutputDelta | ToolArgsDelta) -> list[AnyEvent]:
        key = (type(event), event.call_id, getattr(event, "stream", ""))
        known = self._streams.get(key)
        stream = self._streams[key] = _Stream(event, known.pieces if known else Pieces(self._hiding))
        return stream.told(stream.pieces.feed(event.text))

    def _rest_of(self, call_id: str) -> list[AnyEvent]:
        ended = [self._streams.pop(key) for key in list(self._streams) if key[1] == call_id]
        return [piece for stream in ended for piece in stream.told(stream.pieces.rest())]


class _Stream(NamedTuple):
    """What a tool gets or prints, or an agent says, piece by piece."""

    last: Delta
    pieces: Pieces

    def told(self, text: str) -> list[AnyEvent]:
        return [msgspec.structs.replace(self.last, text=text)] if text else []


class _PlanInPieces:
    """A plan on its way: what came of it, and what was told."""

    def __init__(self, pieces: Pieces) -> None:
        self.pieces = pieces
        self.written: list[str] = []
        self.told: list[str] = []
        self.last = PlanDelta(text="")

    def tell(self, text: str) -> list[AnyEvent]:
        if not text:
            return []
        self.told.append(text)
        return [msgspec.structs.replace(self.last, text=text)]
