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
from limelight.presentation import Presentation

encode = msgspec.json.Encoder().encode
STOPPED = "Stopped"
"""The status text of a run that was stopped."""
WAITING_FOR_APPROVAL = "Waiting for approval"


class Dialect(Protocol):
    """One wire format. `DROPS` lists the events without a frame, so that none is left out by accident."""

    event_name: ClassVar[str]
    """The SSE `event:` of every frame; "" for none."""
    joins: ClassVar[bool]
    """Whether a viewer that catches up may get neighbouring deltas as one."""
    DROPS: ClassVar[frozenset[type[Event]]]

    def __init__(self, root: str = "") -> None:
        """`root` is the path prefix of links, as `/limelight` behind a proxy; "" for none."""
        ...

    def feed(self, record: Record) -> list[bytes]:
        """Return the payloads of this Record, in order."""
        ...

    def fits(self, event: Delta) -> bool:
        """Whether a joined delta may be fed as one.

        It may not if a frame would end inside of it: a resume could not find what comes after that frame by its cursor.
        """
        ...

    def gap(self, first: int, last: int) -> bytes:
        """Return the payload that says that Records `first` to `last` are no longer kept."""
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
        """A key that sorts the end of a Record after the positions inside of it."""
        return self.seq, self.k or math.inf


class Frame(NamedTuple):
    """One payload of a dialect with its cursor. Transports add their own framing."""

    cursor: str
    payload: bytes


class GapFrame(Frame):
    """The frame that says which Records are no longer kept."""


class Increment(bytes):
    """A payload with a piece of a text; the complete text follows in a later payload."""


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
    """Separates an agent's messages by blank lines, for formats in which all of them are one text."""

    def __init__(self) -> None:
        self._last_message: dict[str, str | None] = {}

    def separator(self, agent_id: str, message_id: str | None) -> str:
        """Return what goes before a piece of a message: a blank line if another message of the agent came before."""
        last = self._last_message.get(agent_id, message_id)
        self._last_message[agent_id] = message_id
        return "" if last == message_id else BLANK_LINE

    def separator_of_notice(self) -> str:
        """Return what goes before a text that belongs to no message: a blank line if any agent has sent text."""
        return BLANK_LINE if self._last_message else ""


class ApprovalStatus(NamedTuple):
    """The status text after an approval event: a label, and the approval that the label is about."""

    label: str
    subject: ApprovalRequested
    request: ApprovalRequested
    """The approval of the event. It is not the subject if another approval is still open."""


class Approvals:
    """The open approvals of a run, as status texts for formats without a documented frame for approvals."""

    def __init__(self) -> None:
        self._open: dict[str, ApprovalRequested] = {}

    def feed(self, event: ApprovalRequested | ApprovalResolved) -> ApprovalStatus:
        """Return the status after an event. After a decision, it shows another open approval, if there is one."""
        if isinstance(event, ApprovalRequested):
            self._open[event.approval_id] = event
            return ApprovalStatus(WAITING_FOR_APPROVAL, event, event)
        request = self._open.pop(event.approval_id)
        next_open = next(reversed(self._open.values()), None)
        if next_open is not None:
            return ApprovalStatus(WAITING_FOR_APPROVAL, next_open, request)
        return ApprovalStatus(_decision_label(event), request, request)


def _decision_label(event: ApprovalResolved) -> str:
    """Name a decision. The server itself rejects an approval that expires, or that is open when its agent ends."""
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
    """An event with a value that the log may have truncated."""

    @property
    def truncated(self) -> bool: ...
    @property
    def size(self) -> int: ...
    @property
    def result_url(self) -> str: ...


def truncation_fields(event: Truncatable) -> dict[str, Any]:
    """Return the fields that say that a value is truncated and where the complete one is; none if it is complete."""
    if not event.truncated:
        return {}
    return {"truncated": True, "size": event.size, "result_url": event.result_url}


def result_seen_field(event: ToolFinished) -> dict[str, Any]:
    """Return the field that says that the result of a call was not seen; none if it was."""
    return {} if event.result_seen else {"result_seen": False}


class EventReader:
    """Prepares the events of one run for a dialect.

    It adds the root path to links, and the derived fields to events of logs that an older version has written.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._presentation = Presentation()

    def read(self, event: AnyEvent) -> AnyEvent:
        event = self._presentation.add_to(event)
        if not self._root or not (path := getattr(event, "result_url", "")):
            return event
        return replace(event, result_url=link(self._root, path))


def text_of(value: JsonValue) -> str:
    """Return a string unchanged, and any other value as JSON."""
    return value if isinstance(value, str) else encode(value).decode()


def is_structured(answer: FinalAnswer) -> bool:
    """Whether an answer is more than a text: it has a title, sources or data, or its content is not a string."""
    return bool(answer.title or answer.sources or answer.data) or not isinstance(answer.content, str)


def summary_field(event: ToolStarted | ToolReady | ApprovalRequested | ApprovalResolved) -> dict[str, Any]:
    """Return the field with the summary of a call; none if it is empty."""
    return {"summary": event.summary} if event.summary else {}
