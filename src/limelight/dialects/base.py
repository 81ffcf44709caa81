"""The contract of a dialect, its frames and cursors, and helpers that all dialects share.

A dialect translates ONE run, from its `run_started` on. It is fed Records in order and returns payloads, one JSON text
each. The encoder adds cursors, transports add framing. It must not know stores, the hub, HTTP, asyncio or the time.
"""

import math
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import msgspec
from msgspec.structs import replace

from limelight.deltas import Delta
from limelight.errors import BadCursor
from limelight.events import AgentStarted, Event, FinalAnswer, JsonValue, Record, ToolFinished
from limelight.links import link

encode = msgspec.json.Encoder().encode
STOPPED = "Stopped"
"""The status line of a run that was stopped."""


class Dialect(Protocol):
    """One wire protocol. `DROPS` names the events that it has no frame for, so that none vanishes by accident."""

    event_name: ClassVar[str]
    """The SSE `event:` of every frame; "" for none."""
    joins: ClassVar[bool]
    """May neighbouring deltas reach a reader who catches up as one? Not where each Record counts."""
    DROPS: ClassVar[frozenset[type[Event]]]

    def __init__(self, root: str = "") -> None:
        """`root` is what stands before each path of the server in a link: `/limelight`, or "" where it is alone."""
        ...

    def feed(self, record: Record) -> list[bytes]:
        """The payloads of this Record, in order."""
        ...

    def fits(self, event: Delta) -> bool:
        """Whether deltas that were joined to this one may be fed as one. Not if a frame would end inside of it: what
        comes behind that frame could not be found again by its id."""
        ...

    def gap(self, first: int, last: int) -> bytes:
        """The payload that says: Records `first` … `last` are no longer kept."""
        ...


class Cursor(NamedTuple):
    """A place in a stream: everything up to Record `seq` was received, or, if `k` > 0, the first k frames of it."""

    seq: int
    k: int = 0

    @classmethod
    def parse(cls, text: str) -> Self:
        """`57` or `57.1`; raises BadCursor."""
        seq, dot, k = text.partition(".")
        if not (seq.isascii() and seq.isdecimal()) or (dot and not (k.isascii() and k.isdecimal())) or len(text) > 32:
            raise BadCursor(f"a cursor is a number like 57 or 57.1, not {text[:40]!r}")
        return cls(int(seq), int(k or 0))

    @property
    def place(self) -> tuple[int, float]:
        """For comparing: a whole Record comes behind each part of it."""
        return self.seq, self.k or math.inf


class Frame(NamedTuple):
    """One payload of a dialect with its cursor. Transports add their own framing."""

    cursor: str
    payload: bytes


class GapFrame(Frame):
    """The frame that names Records which are no longer kept."""


class Increment(bytes):
    """A payload that is a part of a growing text; the complete text follows in a later payload."""


class AgentTree:
    """Who started whom, so that depth never depends on the order in which agents end."""

    def __init__(self) -> None:
        self._depths: dict[str, int] = {"": 0}

    def add(self, event: AgentStarted) -> int:
        depth = self._depths[event.agent_id] = self.depth(event.parent_id) + 1
        return depth

    def depth(self, agent_id: str) -> int:
        return self._depths.get(agent_id, 0)


class Paragraphs:
    """Parts the messages of an agent by a blank line, for wires on which all of them are one text."""

    def __init__(self) -> None:
        self._last: dict[str, str | None] = {}

    def part(self, agent_id: str, message_id: str | None, text: str) -> str:
        """The next piece of a message; a new message is set apart from what the agent said before."""
        last = self._last.get(agent_id, message_id)
        self._last[agent_id] = message_id
        return text if last == message_id else f"\n\n{text}"

    def separate(self, text: str) -> str:
        """A text that belongs to no message, with a blank line before it if any agent has sent text."""
        return f"\n\n{text}" if self._last else text


class MayBeCut(Protocol):
    """An event whose value the log may hold in part only."""

    @property
    def truncated(self) -> bool: ...
    @property
    def size(self) -> int: ...
    @property
    def result_url(self) -> str: ...


def cut_of(event: MayBeCut) -> dict[str, Any]:
    """The keys by which every wire says that a value is a part, and where the whole is; none if it is whole."""
    if not event.truncated:
        return {}
    return {"truncated": True, "size": event.size, "result_url": event.result_url}


def seen_of(event: ToolFinished) -> dict[str, Any]:
    """The key by which every wire says that a call has ended and its result was not seen; none if it was."""
    return {} if event.result_seen else {"result_seen": False}


def rooted(record: Record, root: str) -> Record:
    """The Record with links as a client asks for them, below the root."""
    if not root or not (path := getattr(record.event, "result_url", "")):
        return record
    return replace(record, event=replace(record.event, result_url=link(root, path)))


def text_of(value: JsonValue) -> str:
    """A result as text: a string as it is, anything else as JSON."""
    return value if isinstance(value, str) else encode(value).decode()


def is_structured(answer: FinalAnswer) -> bool:
    """Whether an answer is more than its text: it has a title or sources, or is a value and no text."""
    return bool(answer.title or answer.sources) or not isinstance(answer.content, str)
