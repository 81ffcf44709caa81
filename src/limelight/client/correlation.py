"""Which answer belongs to which command of a socket. It must not know connections; `Socket` is the caller.

The server answers in order, but not everything has an answer, and an error does not say what it is about. So a ping
goes behind each command: what comes before its pong is about that command. Only a question may be answered later,
because it waits for its turn; its answer has its `request_id`.
"""

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import Any

import msgspec

from limelight.client.errors import ClientError, ConnectionLost, refusal_by_code
from limelight.client.replies import Accepted, Decided, Pong, Refused

PING = b'{"type":"ping"}'
LOST = "the connection was cut before the server answered: whether it counts is not known"


class Command:
    """One thing that was said. `request_id` is a question's, which may be said again without harm; so may a ping."""

    def __init__(self, kind: str, fields: Mapping[str, Any], request_id: str = "") -> None:
        self.kind = kind
        self.request_id = request_id
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


class Exchange:
    """The commands of one socket over all its connections."""

    def __init__(self) -> None:
        self._unsaid: deque[Command] = deque()
        self._said: deque[Command] = deque()
        """Those whose pong has not come."""
        self._questions: dict[str, Command] = {}
        """Those that have no run yet, by their `request_id`."""

    @property
    def busy(self) -> bool:
        """Whether anybody waits for an answer."""
        return any(not command.answer.done() for command in self._open())

    def add(self, command: Command) -> None:
        self._unsaid.append(command)

    def next(self) -> list[bytes]:
        """What has to be said now; nothing if all is said."""
        while self._unsaid:
            command = self._unsaid.popleft()
            if command.answer.done():  # nobody waits for it any more
                continue
            self._said.append(command)
            if command.request_id:
                self._questions[command.request_id] = command
            return command.frames
        return []

    def take(self, reply: Pong | Refused | Accepted | Decided) -> None:
        match reply:
            case Pong():
                self._close_first()
            case Accepted():
                if (question := self._questions.pop(reply.request_id, None)) is not None:
                    question.succeed(reply.run_id)
            case Decided():
                if self._said:
                    self._said[0].succeed(reply.decision)
            case Refused():
                self._refuse(reply)

    def cut(self) -> None:
        """The connection is gone: what is repeatable will be said again, the rest is lost."""
        again = [command for command in self._open() if command.repeatable or command in self._unsaid]
        for command in self._said:
            if not command.repeatable:
                command.fail(ConnectionLost(LOST))
        self._unsaid, self._said, self._questions = deque(again), deque(), {}

    def end(self, error: Exception) -> None:
        for command in self._open():
            command.fail(error)
        self._unsaid, self._said, self._questions = deque(), deque(), {}

    def _open(self) -> list[Command]:
        """All that are not answered, first said first."""
        return list(dict.fromkeys([*self._questions.values(), *self._said, *self._unsaid]))

    def _close_first(self) -> None:
        if not self._said:
            return
        command = self._said.popleft()
        if command.request_id in self._questions or command in self._unsaid:
            return
        if command.kind == "approve":
            command.fail(ClientError("the server did not answer", code="not_limelight"))
        command.succeed()

    def _refuse(self, reply: Refused) -> None:
        candidates = [*self._said, *self._questions.values()]
        command = self._questions.get(reply.request_id) or next(iter(candidates), None)
        if command is None:
            return
        self._questions.pop(command.request_id, None)
        if reply.error_code == "shutting_down" and command.repeatable:
            self._unsaid.append(command)  # for the server that comes back
            return
        command.fail(refusal_by_code(reply.message, reply.error_code, reply.run_id, reply.retry_after))
