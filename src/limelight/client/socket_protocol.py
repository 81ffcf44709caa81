"""The protocol of a session's socket, without I/O: frames, commands and their answers, the position in the log.

`Socket` feeds received frames to `parse_frame` and sends the frames that `PendingCommands` returns. Frame types of a
newer server are ignored. See docs/protocols/v2.md for the frames.
"""

import asyncio
import math
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from limelight.client.errors import ClientError, ConnectionLost, error_from_code, unsupported_data
from limelight.client.models import Gap, Message, State
from limelight.client.record_stream import GapRange
from limelight.events import Record

PING = b'{"type":"ping"}'
UNKNOWN_OUTCOME = "the connection was cut before the server answered: whether the command took effect is not known"


class LogItem(NamedTuple):
    """A message, a Record or a gap of the session's log, with its cursor."""

    cursor: str
    item: Message | Record | Gap


class Pong(msgspec.Struct, tag="pong", tag_field="type"):
    """The answer to a ping: the server has answered or queued every command that was sent before the ping."""


class StateFrame(msgspec.Struct, tag="state", tag_field="type"):
    """The state of the session, sent on connecting and when a run begins or ends."""

    state: State


class ErrorFrame(msgspec.Struct, tag="error", tag_field="type"):
    """The answer to a refused command. `request_id` is set for a query that was refused after it had been queued."""

    message: str = ""
    error_code: str = ""
    request_id: str = ""
    run_id: str = ""
    retry_after: int = 0

    def error(self) -> ClientError:
        return error_from_code(self.message, self.error_code, self.run_id, self.retry_after)


class Accepted(msgspec.Struct, tag="accepted", tag_field="type"):
    """The answer to a query that has started a run."""

    request_id: str
    run_id: str


class Decided(msgspec.Struct, tag="decided", tag_field="type"):
    """The answer to a decision that has taken effect."""

    decision: str


Reply = Pong | ErrorFrame | Accepted | Decided


class _Head(msgspec.Struct):
    """The fields of a received frame that determine its type."""

    type: str = ""
    cursor: str = ""
    seq: int = 0
    gap: GapRange | None = None


_BY_TYPE: dict[Any, type[Any]] = {
    frame.__struct_config__.tag: frame for frame in (Pong, StateFrame, ErrorFrame, Accepted, Decided)
}


def parse_frame(text: str | bytes) -> LogItem | StateFrame | Reply | None:
    """Decode a frame. Returns None for a type that this version does not know."""
    try:
        head = msgspec.json.decode(text, type=_Head)
        if head.type in _BY_TYPE:
            return msgspec.json.decode(text, type=_BY_TYPE[head.type])
        gap = msgspec.json.decode(text, type=GapRange) if head.type == "gap" else head.gap
        if gap is not None:
            return LogItem(head.cursor or str(gap.last), Gap(gap.first, gap.last))
        if head.type or not head.cursor:
            return None
        return LogItem(head.cursor, msgspec.json.decode(text, type=Record if head.seq else Message))
    except msgspec.DecodeError as error:
        raise unsupported_data(error) from error


class Command:
    """A command of the client, with the future that gets the server's answer.

    If the connection is lost, only pings and queries are sent again. The server recognises a query by its `request_id`.
    """

    def __init__(self, kind: str, fields: Mapping[str, Any]) -> None:
        self.kind = kind
        self.request_id: str = fields["request_id"] if kind == "query" else ""
        self.answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.frames = [PING]
        if kind != "ping":
            self.frames.insert(0, msgspec.json.encode({"type": kind, **fields}))

    @property
    def repeatable(self) -> bool:
        return self.kind in ("query", "ping")

    def succeed(self, value: str = "") -> None:
        if not self.answer.done():
            self.answer.set_result(value)

    def fail(self, error: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


class PendingCommands:
    """The commands of one socket that have no answer yet, over all its connections.

    The server answers in order, but some commands have no answer, and an error does not name its command. Therefore a
    ping follows each command: a reply before its pong belongs to that command. Only a query may be answered later,
    because it may be queued; the answer contains the `request_id` of the query.
    """

    def __init__(self) -> None:
        self._unsent: deque[Command] = deque()
        self._sent: deque[Command] = deque()
        """Commands whose pong has not arrived."""
        self._queries: dict[str, Command] = {}
        """Queries that have not started a run, by `request_id`."""

    @property
    def waiting(self) -> bool:
        """Whether a command has no answer yet and its caller waits."""
        return any(not command.answer.done() for command in self._all())

    def add(self, command: Command) -> None:
        self._unsent.append(command)

    def next_frames(self) -> list[bytes]:
        """Return the frames of the next command to send; empty if all commands are sent."""
        while self._unsent:
            command = self._unsent.popleft()
            if command.answer.done():  # its caller was cancelled
                continue
            self._sent.append(command)
            if command.request_id:
                self._queries[command.request_id] = command
            return command.frames
        return []

    def handle(self, reply: Reply) -> None:
        """Pass a reply of the server to the caller of the command that it answers."""
        match reply:
            case Pong():
                self._complete_first()
            case Accepted():
                if (query := self._queries.pop(reply.request_id, None)) is not None:
                    query.succeed(reply.run_id)
            case Decided():
                if self._sent:
                    self._sent[0].succeed(reply.decision)
            case ErrorFrame():
                self._refuse(reply)

    def connection_lost(self) -> None:
        """Queue repeatable and unsent commands for the next connection. The others fail: their outcome is unknown."""
        unsent = [command for command in self._all() if command.repeatable or command in self._unsent]
        for command in self._sent:
            if not command.repeatable:
                command.fail(ConnectionLost(UNKNOWN_OUTCOME))
        self._unsent, self._sent, self._queries = deque(unsent), deque(), {}

    def fail_all(self, error: Exception) -> None:
        for command in self._all():
            command.fail(error)
        self._unsent, self._sent, self._queries = deque(), deque(), {}

    def _all(self) -> list[Command]:
        """Return all commands that have no answer yet, in the order in which they were sent."""
        return list(dict.fromkeys([*self._queries.values(), *self._sent, *self._unsent]))

    def _complete_first(self) -> None:
        if not self._sent:
            return
        command = self._sent.popleft()
        if command.request_id in self._queries or command in self._unsent:
            return
        if command.kind == "approve":
            command.fail(ClientError("the server did not answer", code="not_limelight"))
        command.succeed()

    def _refuse(self, reply: ErrorFrame) -> None:
        candidates = [*self._sent, *self._queries.values()]
        command = self._queries.get(reply.request_id) or next(iter(candidates), None)
        if command is None:
            return
        self._queries.pop(command.request_id, None)
        if reply.error_code == "shutting_down" and command.repeatable:
            self._unsent.append(command)  # sent again on the connection to the next server process
            return
        command.fail(reply.error())


class Position:
    """The cursor of the last item that the socket yielded, and the last state that it reported.

    Items that arrive twice are dropped. A state that was received on reconnecting is deferred until the items before it
    have arrived, so that a caller that leaves at "completed" has seen the answer.
    """

    def __init__(self, after: str | None) -> None:
        self.after = after
        """The cursor of the last item; None until the first item, if the server chooses where to begin."""
        self._state: tuple[str, str | None] | None = None
        self._deferred: tuple[tuple[int, float], State] | None = None

    def add_item(self, received: LogItem) -> Iterator[object]:
        """Yield a received item if it is new, and then a state that was deferred until this item."""
        if self.after is None or cursor_key(received.cursor) > cursor_key(self.after):
            self.after = received.cursor
            yield received.item
            yield from self._release()

    def add_state(self, state: State) -> Iterator[State]:
        """Yield a deferred state and then this state, each only if it differs from the last state that was yielded."""
        if self._deferred is not None:
            deferred, self._deferred = self._deferred[1], None
            yield from self.add_state(deferred)
        if self.is_new(state):
            self.set_state(state)
            yield state

    def set_state(self, state: State) -> None:
        """Store the state of the session without reporting it to the caller."""
        self._state = (state.state, state.run_id)

    def defer_state(self, state: State, last: str) -> Iterator[State]:
        """Defer a state until the item with the cursor `last` has arrived; if it has, yield the state at once."""
        self._deferred = (cursor_key(last), state)
        yield from self._release()

    def is_new(self, state: State) -> bool:
        return self._state != (state.state, state.run_id)

    def _release(self) -> Iterator[State]:
        if self._deferred is not None and cursor_key(self.after or "0") >= self._deferred[0]:
            deferred, self._deferred = self._deferred[1], None
            yield from self.add_state(deferred)


def cursor_key(cursor: str) -> tuple[int, float]:
    """Return the sort key of a cursor: `57`, the end of Record 57, comes after `57.1`, its first frame."""
    seq, _, frame = cursor.partition(".")
    try:
        return int(seq), int(frame or 0) or math.inf
    except ValueError:
        return 0, 0
