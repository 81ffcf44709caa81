"""The interface of dialects (wire formats), their frames and cursors, and code that several dialects share.

A dialect translates one run, from its `run_started` on. It is fed Records in order and returns payloads, one JSON text
each. The encoder adds cursors, transports add framing. A dialect must not know stores, the hub, HTTP, asyncio or the
time.
"""

from typing import Any, ClassVar, NamedTuple, Protocol

import msgspec
from msgspec.structs import replace

from limelight.deltas import Delta
from limelight.display_fields import DisplayFields, restore_outcome
from limelight.events import (
    AgentFinished,
    AgentStarted,
    AnyEvent,
    ApprovalRequested,
    ApprovalResolved,
    Event,
    FinalAnswer,
    JsonValue,
    Record,
    ToolFinished,
    ToolReady,
    ToolStarted,
)
from limelight.links import link
from limelight.models import Cursor
from limelight.structured_answers import to_text

encode = msgspec.json.Encoder().encode
STOPPED = "Stopped"
"""Status text of a run that was stopped."""
WAITING_FOR_APPROVAL = "Waiting for approval"


class Dialect(Protocol):
    """Translates one run into one wire format. `DROPS` lists the event types that the format does not send."""

    event_name: ClassVar[str] = ""
    """The `event:` name of every server-sent event of this format; "" for none."""
    joins: ClassVar[bool] = True
    """Whether neighbouring text deltas may be joined for a viewer that is catching up."""
    DROPS: ClassVar[frozenset[type[Event]]] = frozenset()

    def __init__(self, root: str = "") -> None:
        """Start to translate a run. `root` is the path prefix of links, such as `/limelight` behind a proxy."""
        ...

    def feed(self, record: Record) -> list[bytes]:
        """Return the payloads that encode a Record in the wire format, in order."""
        ...

    def fits(self, event: Delta) -> bool:
        """Whether a delta joined from several can be sent in one message of the format.

        If it needs several, the delta is fed unjoined: a client that reconnects between two of the frames could not
        resume exactly, because no Record of the log ends there.
        """
        return True

    def gap(self, first: int, last: int) -> bytes:
        """Return the payload which says that Records `first` to `last` were deleted from the log."""
        ...


class Frame(NamedTuple):
    """One payload of a wire format with its cursor. Transports add their own framing."""

    cursor: Cursor
    payload: bytes


class GapFrame(Frame):
    """A frame which says that a range of Records was deleted from the log."""


class Increment(bytes):
    """A payload with a part of a text whose complete text follows in a later payload."""


class AgentTree:
    """The nesting depth of each agent: 0 for the main agent, its parent's depth plus 1 for a sub-agent."""

    def __init__(self) -> None:
        self._depths: dict[str, int] = {"": 0}

    def add(self, event: AgentStarted) -> int:
        """Add a sub-agent and return its depth."""
        depth = self._depths[event.agent_id] = self.depth(event.parent_id) + 1
        return depth

    def depth(self, agent_id: str) -> int:
        return self._depths.get(agent_id, 0)


def agent_label(event: AgentStarted) -> str:
    """Return the name of a sub-agent with its title, which distinguishes it from others of the same name."""
    return f"{event.name} · {event.title}" if event.title else event.name


BLANK_LINE = "\n\n"


class Paragraphs:
    """Puts blank lines between the messages of an agent, for formats that join all messages into one text."""

    def __init__(self) -> None:
        self._last_message: dict[str, str | None] = {}

    def separator(self, agent_id: str, message_id: str | None) -> str:
        """Return the text to send before a delta: a blank line if the agent's last delta was of another message."""
        last = self._last_message.get(agent_id, message_id)
        self._last_message[agent_id] = message_id
        return "" if last == message_id else BLANK_LINE

    def separator_of_notice(self) -> str:
        """Return the text to send before a notice outside of messages: a blank line if an agent has sent text."""
        return BLANK_LINE if self._last_message else ""


class ApprovalStatus(NamedTuple):
    """The status text to send after an approval event: a label, and the approval (`subject`) that it describes."""

    label: str
    subject: ApprovalRequested
    request: ApprovalRequested
    """The approval that the event is about; not `subject` if another approval is still open."""


class Approvals:
    """Tracks a run's open approvals, and describes them as status texts for formats without approval frames."""

    def __init__(self) -> None:
        self._open: dict[str, ApprovalRequested] = {}

    def feed(self, event: ApprovalRequested | ApprovalResolved) -> ApprovalStatus:
        """Return the status text after an approval event, about the newest open approval or else about the decision."""
        if isinstance(event, ApprovalRequested):
            self._open[event.approval_id] = event
            return ApprovalStatus(WAITING_FOR_APPROVAL, event, event)
        request = self._open.pop(event.approval_id)
        next_open = next(reversed(self._open.values()), None)
        if next_open is not None:
            return ApprovalStatus(WAITING_FOR_APPROVAL, next_open, request)
        return ApprovalStatus(_decision_label(event), request, request)


def _decision_label(event: ApprovalResolved) -> str:
    """Return the label of a decision, such as that the server has rejected an expired approval."""
    match event.decision:
        case "approve":
            return "Approved"
        case "edit":
            return "Answered" if event.answered else "Approved with changes"
        case "reject" if event.by != "system":
            return "Rejected"
        case "reject":
            return "Approval expired" if event.reason == "expired" else "Approval withdrawn"


class Truncatable(Protocol):
    """Protocol of events with a value that may be truncated to a preview."""

    @property
    def truncated(self) -> bool: ...
    @property
    def size(self) -> int: ...
    @property
    def result_url(self) -> str: ...


def truncation_fields(event: Truncatable) -> dict[str, Any]:
    """Return the fields `truncated`, `size` and `result_url` if an event's value is truncated, else {}."""
    if not event.truncated:
        return {}
    return {"truncated": True, "size": event.size, "result_url": event.result_url}


def result_seen_field(event: ToolFinished) -> dict[str, Any]:
    """Return the field `result_seen` if the agent has not reported a call's result, else {}."""
    return {} if event.result_seen else {"result_seen": False}


def outcome_field(event: ToolFinished | AgentFinished) -> dict[str, Any]:
    """Return the field `outcome` if a call or a sub-agent was stopped or rejected, else {}."""
    return {"outcome": event.outcome} if event.outcome in ("stopped", "rejected") else {}


class EventReader:
    """Prepares the events of one run for a dialect: completes links and derived fields.

    It adds the root path to links, and the derived fields to events that an older version has logged.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._display_fields = DisplayFields()

    def read(self, event: AnyEvent) -> AnyEvent:
        event = self._display_fields.add_to(restore_outcome(event))
        if not self._root or not (path := getattr(event, "result_url", "")):
            return event
        return replace(event, result_url=link(self._root, path))


def text_of(value: JsonValue) -> str:
    """Return a string unchanged, and any other value as JSON; None becomes "null"."""
    return "null" if value is None else to_text(value)


def is_structured(answer: FinalAnswer) -> bool:
    """Whether an answer is more than a text: it has a title, sources or data, or its content is not a string."""
    return bool(answer.title or answer.sources or answer.data) or not isinstance(answer.content, str)


def summary_field(event: ToolStarted | ToolReady | ApprovalRequested | ApprovalResolved) -> dict[str, Any]:
    """Return the field `summary` (one line about a call's arguments) if the event has one, else {}."""
    return {"summary": event.summary} if event.summary else {}
