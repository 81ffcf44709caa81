"""Redacts the events of a run before they are written to the log. Pure.

All rules apply to the input and output of tools, errors, plans, sources and approvals. Only the server's secrets are
removed from texts of models, and nothing from the user's input.

Deltas of tool output and of texts are held while they may contain the beginning of a secret (`stream.py`). If there
are patterns, deltas of arguments and of plans are dropped, because `tool_ready` and `plan` have the complete value.
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
from limelight.redaction.rules import Redactor
from limelight.redaction.stream import StreamRedactor

REDACTED_FIELDS: dict[type[AnyEvent], tuple[str, ...]] = {
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
    FinalAnswer: ("content", "title", "sources", "data"),
}
FIELD_TYPES: dict[str, Any] = {"items": tuple[Todo, ...], "sources": tuple[str, ...]}
"""The types of fields that are converted to JSON for redaction, and back."""


class EventRedactor:
    """Redacts the events of one run before they are logged. The events must be passed in order."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._text_redactor = redactor.secrets_only
        self._tool_streams: dict[tuple[type[AnyEvent], str, str], _Stream] = {}
        """Arguments and output of open calls, by type of delta, call and stream."""
        self._text_streams: dict[tuple[type[AnyEvent], str], _Stream] = {}
        """Open texts, by type of delta and message."""
        self._plans: dict[str, _PlanStream] = {}
        """The open plan of each agent."""

    @property
    def redacts_texts(self) -> bool:
        """Whether there are secrets to remove from texts of models. If not, text deltas can be logged unchanged."""
        return self._text_redactor is not None

    def passes(self, piece: TextDelta | ReasoningDelta) -> bool:
        """Whether a text delta of a model contains nothing to redact, so that it can be logged unchanged.

        If True, the redactor has recorded the delta. If False, the caller must pass the delta to `feed`.
        """
        stream = self._text_streams.get((type(piece), piece.message_id))
        return stream is not None and stream.redactor.passes(piece.text)

    def redact(self, event: AnyEvent) -> AnyEvent:
        """Return an event with secrets removed from its complete values, such as arguments, results and errors.

        A streamed answer is redacted like a text of a model: only the server's secrets are removed.
        """
        redactor = self._redactor
        if isinstance(event, FinalAnswer) and event.message_id is not None:
            if self._text_redactor is None:
                return event
            redactor = self._text_redactor
        changes: dict[str, Any] = {}
        for field in REDACTED_FIELDS.get(type(event), ()):
            value = getattr(event, field)
            if isinstance(value, tuple):
                value = list(msgspec.to_builtins(value))
            redacted = redactor.redact_value(value)
            if redacted != value:
                changes[field] = msgspec.convert(redacted, FIELD_TYPES[field]) if field in FIELD_TYPES else redacted
        return msgspec.structs.replace(event, **changes) if changes else event

    def feed(self, event: AnyEvent) -> list[AnyEvent]:
        """Take the next event of the run, and return the events to log: deltas held before it, and the event.

        A delta is redacted, and may be held or dropped. Other events are returned unredacted; `redact` does that.
        """
        match event:
            case ToolArgsDelta() | PlanDelta() if self._redactor.needs_complete_texts:
                return []
            case ToolArgsDelta(call_id=str(), text=str()) | ToolOutputDelta(call_id=str(), text=str()):
                return self._feed_tool(event)
            case ToolReady() | ToolFinished():
                return [*self._flush_call(event.call_id), event]
            case TextDelta(message_id=str(), text=str()) | ReasoningDelta(message_id=str(), text=str()):
                return [event] if self._text_redactor is None else self._feed_text(event, self._text_redactor)
            case PlanDelta(agent_id=str(), text=str()):
                return self._feed_plan(event)
            case Plan(agent_id=str()):
                return self._finish_plan(event)
            case StepFinished(agent_id=str()):
                return [*self._flush_plan(event.agent_id), event]
            case TextFinished(message_id=str()):
                return [*self._flush_text(TextDelta, event.message_id), event]
            case ReasoningFinished(message_id=str()):
                return [*self._flush_text(ReasoningDelta, event.message_id), event]
            case FinalAnswer(message_id=str(message_id)):
                return [*self._flush_text(TextDelta, message_id), event]
            case AgentFinished():
                keys = [key for key, stream in self._text_streams.items() if stream.last.agent_id == event.agent_id]
                texts = [piece for key in keys for piece in self._flush_text(*key)]
                return [*self._flush_plan(event.agent_id), *texts, event]
            case RunFinished() | RunFailed() | RunCancelled():
                return [*self.flush(), event]
            case _:
                return [event]

    def flush(self) -> list[AnyEvent]:
        """Return all text that is still held, as redacted deltas to log."""
        calls = dict.fromkeys(key[1] for key in self._tool_streams)
        tools = [piece for call_id in calls for piece in self._flush_call(call_id)]
        plans = [piece for agent_id in list(self._plans) for piece in self._flush_plan(agent_id)]
        return tools + plans + [piece for key in list(self._text_streams) for piece in self._flush_text(*key)]

    def _feed_tool(self, event: ToolOutputDelta | ToolArgsDelta) -> list[AnyEvent]:
        key = (type(event), event.call_id, getattr(event, "stream", ""))
        known = self._tool_streams.get(key)
        redactor = known.redactor if known else StreamRedactor(self._redactor)
        stream = self._tool_streams[key] = _Stream(event, redactor)
        return stream.events(redactor.feed(event.text))

    def _flush_call(self, call_id: str) -> list[AnyEvent]:
        ended = [self._tool_streams.pop(key) for key in list(self._tool_streams) if key[1] == call_id]
        return [piece for stream in ended for piece in stream.events(stream.redactor.flush())]

    def _feed_text(self, event: TextDelta | ReasoningDelta, text_redactor: Redactor) -> list[AnyEvent]:
        key = (type(event), event.message_id)
        known = self._text_streams.get(key)
        redactor = known.redactor if known else StreamRedactor(text_redactor)
        stream = self._text_streams[key] = _Stream(event, redactor)
        return stream.events(redactor.feed(event.text)) if event.text else [event]

    def _flush_text(self, kind: type[AnyEvent], message_id: str) -> list[AnyEvent]:
        stream = self._text_streams.pop((kind, message_id), None)
        return [] if stream is None else stream.events(stream.redactor.flush())

    def _feed_plan(self, event: PlanDelta) -> list[AnyEvent]:
        plan = self._plans.setdefault(event.agent_id, _PlanStream(StreamRedactor(self._redactor)))
        plan.last = event
        plan.received.append(event.text)
        return plan.events(plan.redactor.feed(event.text))

    def _finish_plan(self, event: Plan) -> list[AnyEvent]:
        """Return the held deltas of a plan and the complete plan, with the text of the redacted deltas as its text.

        The text of a plan that did not come in deltas is not changed. Otherwise the texts could differ: the redacted
        deltas may contain the first characters of a secret.
        """
        plan = self._plans.get(event.agent_id)
        held = self._flush_plan(event.agent_id)
        if plan is not None and "".join(plan.received) == event.text:
            event = msgspec.structs.replace(event, text="".join(plan.passed))
        return [*held, event]

    def _flush_plan(self, agent_id: str) -> list[AnyEvent]:
        plan = self._plans.pop(agent_id, None)
        return [] if plan is None else plan.events(plan.redactor.flush())


class _Stream(NamedTuple):
    """The redaction state of one streamed text, tool output or argument text: its last delta and its redactor."""

    last: Delta
    redactor: StreamRedactor

    def events(self, text: str) -> list[AnyEvent]:
        """Return redacted text as an event, which is a copy of the last delta, in a list; [] for an empty text."""
        return [msgspec.structs.replace(self.last, text=text)] if text else []


class _PlanStream:
    """The redaction state of one streamed plan: its redactor, the received texts and the redacted texts."""

    def __init__(self, redactor: StreamRedactor) -> None:
        self.redactor = redactor
        self.received: list[str] = []
        self.passed: list[str] = []
        self.last = PlanDelta(text="")

    def events(self, text: str) -> list[AnyEvent]:
        """Record redacted text, and return it as a copy of the plan's last delta, in a list; [] for an empty text."""
        if not text:
            return []
        self.passed.append(text)
        return [msgspec.structs.replace(self.last, text=text)]
