"""The contract of a dialect, its frames and cursors, and state and fields that several dialects share.

A dialect translates one run, from its `run_started` on. It is fed Records in order and returns payloads, one JSON text
each. The encoder adds cursors, transports add framing. A dialect must not know stores, the hub, HTTP, asyncio or the
time.
"""

import math
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import msgspec
from msgspec.structs import replace

from limelight.deltas import Delta
from limelight.display_fields import DisplayFields
from limelight.errors import BadCursor
from limelight.events import (
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
from limelight.structured_answers import to_text

encode = msgspec.json.Encoder().encode
STOPPED = "Stopped"
"""The status text of a run that was stopped."""
WAITING_FOR_APPROVAL = "Waiting for approval"


class Dialect(Protocol):
    """A translator of one run into one wire format. `DROPS` lists the event types that the format does not send."""

    event_name: ClassVar[str]
    """The SSE `event:` of every frame; "" for none."""
    joins: ClassVar[bool]
    """Whether neighbouring deltas may be joined into one for a viewer that catches up."""
    DROPS: ClassVar[frozenset[type[Event]]]

    def __init__(self, root: str = "") -> None:
        """Start the translation of a run. `root` is the path prefix of links, as `/limelight` behind a proxy."""
        ...

    def feed(self, record: Record) -> list[bytes]:
        """Return the payloads of this Record, in order."""
        ...

    def fits(self, event: Delta) -> bool:
        """Whether a joined delta can be encoded in one message of the format, so that it may be fed as one Record.

        If it needs several, the delta is fed unjoined: a client that reconnects between two of the frames could not
        resume exactly, because no Record of the log ends there.
        """
        ...

    def gap(self, first: int, last: int) -> bytes:
        """Return the payload that says that Records `first` to `last` were deleted."""
        ...


class Cursor(NamedTuple):
    """A position in a stream: after Record `seq`, or, if `k` > 0, after the first k frames of that Record."""

    seq: int
    k: int = 0

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `57` or `57.1`. Raises BadCursor."""
        seq, dot, k = text.partition(".")
        if not (seq.isascii() and seq.isdecimal()) or (dot and not (k.isascii() and k.isdecimal())) or len(text) > 32:
            raise BadCursor(f"a cursor is a number like 57 or 57.1, not {text[:40]!r}")
        return cls(int(seq), int(k or 0))

    @property
    def sort_key(self) -> tuple[int, float]:
        """The sort key of a position. One Record can become several frames, and its end comes after all of them."""
        return self.seq, self.k or math.inf


class Frame(NamedTuple):
    """One payload of a dialect with its cursor. Transports add their own framing."""

    cursor: str
    payload: bytes


class GapFrame(Frame):
    """The frame that says which Records were deleted."""


class Increment(bytes):
    """A payload with a part of a text. A later payload has the complete text."""


class AgentTree:
    """The depth of each agent: 0 for the main agent, one more than its parent for a sub-agent."""

    def __init__(self) -> None:
        self._depths: dict[str, int] = {"": 0}

    def add(self, event: AgentStarted) -> int:
        """Add a sub-agent and return its depth."""
        depth = self._depths[event.agent_id] = self.depth(event.parent_id) + 1
        return depth

    def depth(self, agent_id: str) -> int:
        return self._depths.get(agent_id, 0)


BLANK_LINE = "\n\n"


class Paragraphs:
    """Separates the messages of an agent by blank lines, for formats that join all messages into one text."""

    def __init__(self) -> None:
        self._last_message: dict[str, str | None] = {}

    def separator(self, agent_id: str, message_id: str | None) -> str:
        """Return the text to send before a delta: a blank line if the agent's last delta had another message id."""
        last = self._last_message.get(agent_id, message_id)
        self._last_message[agent_id] = message_id
        return "" if last == message_id else BLANK_LINE

    def separator_of_notice(self) -> str:
        """Return the text to send before a notice, which has no message: a blank line if an agent has sent text."""
        return BLANK_LINE if self._last_message else ""


class ApprovalStatus(NamedTuple):
    """The status text after an approval event: a label, and the approval (`subject`) that the label describes."""

    label: str
    subject: ApprovalRequested
    request: ApprovalRequested
    """The approval of the event. It differs from `subject` if another approval is still open."""


class Approvals:
    """Tracks the open approvals of a run, and describes them as status texts for formats without approval frames."""

    def __init__(self) -> None:
        self._open: dict[str, ApprovalRequested] = {}

    def feed(self, event: ApprovalRequested | ApprovalResolved) -> ApprovalStatus:
        """Return the status after an event: the newest open approval or, if none is open, the decision."""
        if isinstance(event, ApprovalRequested):
            self._open[event.approval_id] = event
            return ApprovalStatus(WAITING_FOR_APPROVAL, event, event)
        request = self._open.pop(event.approval_id)
        next_open = next(reversed(self._open.values()), None)
        if next_open is not None:
            return ApprovalStatus(WAITING_FOR_APPROVAL, next_open, request)
        return ApprovalStatus(_decision_label(event), request, request)


def _decision_label(event: ApprovalResolved) -> str:
    """Return the label of a decision. The server rejects approvals that expire or are open when their agent ends."""
    match event.decision:
        case "approve":
            return "Approved"
        case "edit":
            return "Approved with changes"
        case "reject" if event.by != "system":
            return "Rejected"
        case "reject":
            return "Approval expired" if event.reason == "expired" else "Approval withdrawn"


class Truncatable(Protocol):
    """An event with a value that may be truncated to a preview."""

    @property
    def truncated(self) -> bool: ...
    @property
    def size(self) -> int: ...
    @property
    def result_url(self) -> str: ...


def truncation_fields(event: Truncatable) -> dict[str, Any]:
    """Return the fields `truncated`, `size` and `result_url` if the value of an event is truncated, else {}."""
    if not event.truncated:
        return {}
    return {"truncated": True, "size": event.size, "result_url": event.result_url}


def result_seen_field(event: ToolFinished) -> dict[str, Any]:
    """Return the field `result_seen` if the result of a call was not seen, else {}."""
    return {} if event.result_seen else {"result_seen": False}


class EventReader:
    """Prepares the events of one run for a dialect.

    It adds the root path to links, and the derived fields to events that an older version has logged.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._display_fields = DisplayFields()

    def read(self, event: AnyEvent) -> AnyEvent:
        event = self._display_fields.add_to(event)
        if not self._root or not (path := getattr(event, "result_url", "")):
            return event
        return replace(event, result_url=link(self._root, path))


def text_of(value: JsonValue) -> str:
    """Return a string unchanged, and any other value as JSON, also None as "null"."""
    return "null" if value is None else to_text(value)


def is_structured(answer: FinalAnswer) -> bool:
    """Whether an answer is more than a text: it has a title, sources or data, or its content is not a string."""
    return bool(answer.title or answer.sources or answer.data) or not isinstance(answer.content, str)


def summary_field(event: ToolStarted | ToolReady | ApprovalRequested | ApprovalResolved) -> dict[str, Any]:
    """Return the field `summary` of a call if the summary is not empty, else {}."""
    return {"summary": event.summary} if event.summary else {}
