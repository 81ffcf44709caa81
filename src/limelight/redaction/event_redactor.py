"""Redacts the events of a run before they are written to the log. Pure.

From the input and output of tools, errors, plans, sources and approvals, everything is removed that a rule matches.
From texts of models, only the secrets that the server knows are removed, and from the user's input nothing.

Deltas of tool output and of texts are held while they may contain the beginning of a secret (`stream_redactor.py`). If
the settings have patterns, deltas of arguments and of plans are dropped, because `tool_ready` and `plan` have the
complete value.
"""

from types import UnionType
from typing import Any

import msgspec

from limelight.deltas import Delta
from limelight.events import (
    AgentFinished,
    AgentStarted,
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
    SourceLink,
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
from limelight.redaction.stream_redactor import StreamRedactor

REDACTED_FIELDS: dict[type[AnyEvent], tuple[str, ...]] = {
    ToolStarted: ("args",),
    ToolReady: ("args",),
    ToolFinished: ("result", "error"),
    ApprovalRequested: ("args", "question"),
    ApprovalResolved: ("args", "reason"),
    SourceCited: ("title", "url", "text"),
    Status: ("text",),
    StepFinished: ("error",),
    AgentStarted: ("task", "title"),
    AgentFinished: ("error",),
    RunFailed: ("message",),
    RunCancelled: ("reason",),
    Plan: ("text", "items"),
    FinalAnswer: ("content", "title", "sources", "source_links", "data"),
}
FIELD_TYPES: dict[str, Any] = {
    "items": tuple[Todo, ...],
    "sources": tuple[str, ...],
    "source_links": tuple[SourceLink, ...],
}
"""The types of fields that are converted to JSON for redaction, and back."""


class EventRedactor:
    """Removes secrets from the events of one run before they are logged. The events must be passed in order."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._text_redactor = redactor.secrets_only
        self._streams: dict[tuple[object, ...], _Stream] = {}
        """The redaction of each open text, plan, argument text and output, by the type of its deltas and its ids."""

    @property
    def redacts_texts(self) -> bool:
        """Whether the server knows any secrets. If not, deltas of texts of models can be logged unchanged."""
        return self._text_redactor is not None

    def passes(self, piece: TextDelta | ReasoningDelta) -> bool:
        """Whether a text delta of a model contains nothing to redact, so that it can be logged unchanged.

        If True, the redactor has recorded the delta. If False, the caller must pass the delta to `feed`.
        """
        stream = self._streams.get((type(piece), piece.message_id))
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
        if isinstance(event, ApprovalRequested) and self._text_redactor is not None:
            # A property may have the name of a secret field: its schema is not a secret.
            for field in ("answer_schema", "args_schema"):
                if (schema := getattr(event, field)) is not None:
                    changes[field] = self._text_redactor.redact_value(schema)
        return msgspec.structs.replace(event, **changes) if changes else event

    def feed(self, event: AnyEvent) -> list[AnyEvent]:
        """Take the next event of the run, and return the events to log: deltas held before it, and the event.

        A delta is redacted, and may be held or dropped. Other events are returned unredacted; `redact` does that.
        """
        match event:
            case ToolArgsDelta() | PlanDelta() if self._redactor.needs_complete_texts:
                return []
            case ToolArgsDelta(call_id=str(), text=str()):
                return self._feed(event, self._redactor, event.call_id)
            case ToolOutputDelta(call_id=str(), text=str()):
                return self._feed(event, self._redactor, event.call_id, event.stream)
            case ToolReady() | ToolFinished():
                return [*self._flush(ToolArgsDelta | ToolOutputDelta, call_id=event.call_id), event]
            case TextDelta(message_id=str(), text=str()) | ReasoningDelta(message_id=str(), text=str()):
                return (
                    [event] if self._text_redactor is None else self._feed(event, self._text_redactor, event.message_id)
                )
            case PlanDelta(agent_id=str(), text=str()):
                return self._feed(event, self._redactor, event.agent_id)
            case Plan():
                return self._finish_plan(event)
            case StepFinished():
                return [*self._flush(PlanDelta, agent_id=event.agent_id), event]
            case TextFinished():
                return [*self._flush(TextDelta, message_id=event.message_id), event]
            case ReasoningFinished():
                return [*self._flush(ReasoningDelta, message_id=event.message_id), event]
            case FinalAnswer(message_id=str(message_id)):
                return [*self._flush(TextDelta, message_id=message_id), event]
            case AgentFinished():
                return [*self._flush(PlanDelta | TextDelta | ReasoningDelta, agent_id=event.agent_id), event]
            case RunFinished() | RunFailed() | RunCancelled():
                return [*self.flush(), event]
            case _:
                return [event]

    def flush(self) -> list[AnyEvent]:
        """Return all text that is still held, as redacted deltas to log."""
        return self._flush(Delta)

    def _feed(self, event: Delta, redactor: Redactor, *ids: str) -> list[AnyEvent]:
        """Redact the next delta of a streamed text with the given redactor, and return the deltas to log."""
        key = (type(event), *ids)
        stream = self._streams.get(key)
        if stream is None:
            kind = _PlanStream if isinstance(event, PlanDelta) else _Stream
            stream = self._streams[key] = kind(event, StreamRedactor(redactor))
        return stream.feed(event)

    def _flush(self, types: UnionType | type[Delta], **ids: str) -> list[AnyEvent]:
        """End the open texts whose deltas have one of these types and ids. Return the text that was held as deltas."""
        ended = [
            key
            for key, stream in self._streams.items()
            if isinstance(stream.last, types) and all(getattr(stream.last, name) == id_ for name, id_ in ids.items())
        ]
        return [piece for key in ended for piece in self._streams.pop(key).flush()]

    def _finish_plan(self, event: Plan) -> list[AnyEvent]:
        """Return the held deltas of a plan, and the plan event with the text of its redacted deltas.

        The text of a plan that did not come in deltas is not changed.
        """
        plans = [stream for stream in self._streams.values() if isinstance(stream, _PlanStream)]
        plan = next((plan for plan in plans if plan.last.agent_id == event.agent_id), None)
        held = self._flush(PlanDelta, agent_id=event.agent_id)
        if plan is not None and "".join(plan.received) == event.text:
            event = msgspec.structs.replace(event, text="".join(plan.passed))
        return [*held, event]


class _Stream:
    """The redaction of one streamed text, tool output or argument text: its newest delta and its StreamRedactor."""

    def __init__(self, last: Delta, redactor: StreamRedactor) -> None:
        self.last = last
        self.redactor = redactor

    def feed(self, delta: Delta) -> list[AnyEvent]:
        """Take the next delta, and return the text that can be logged now, as a delta."""
        self.last = delta
        if not delta.text and isinstance(delta, TextDelta | ReasoningDelta):  # it may open a message
            return [delta]
        return self._events(self.redactor.feed(delta.text))

    def flush(self) -> list[AnyEvent]:
        """Return the text that is still held, redacted, as a delta."""
        return self._events(self.redactor.flush())

    def _events(self, text: str) -> list[AnyEvent]:
        return [msgspec.structs.replace(self.last, text=text)] if text else []


class _PlanStream(_Stream):
    """The redaction of one streamed plan, with its text before and after redaction."""

    def __init__(self, last: Delta, redactor: StreamRedactor) -> None:
        super().__init__(last, redactor)
        self.received: list[str] = []
        self.passed: list[str] = []

    def feed(self, delta: Delta) -> list[AnyEvent]:
        self.received.append(delta.text)
        return super().feed(delta)

    def _events(self, text: str) -> list[AnyEvent]:
        self.passed.append(text)
        return super()._events(text)
