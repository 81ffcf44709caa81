"""What a source is, what it is given, and what all of them share.

A source wraps one agent object. For each turn the engine asks it for a stream of Events and takes care of the rest: it
writes `run_started`, checks the grammar, measures durations, closes what is left open, and turns an exception into
`run_failed`. A source ends with `final_answer` and `run_finished`. It must not know dialects, stores or HTTP.
"""

from collections.abc import AsyncGenerator, Coroutine, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol

import msgspec

from limelight.events import AnyEvent, Decision, ToolFinished, ToolStarted
from limelight.messages import Message

UNSTOPPABLE = "A step that cannot be interrupted is still running; what it returns will be dropped."
"""What a run says if it is stopped and something of it goes on."""


class User(msgspec.Struct, frozen=True):
    """For whom the agent works. `user_id` is the owner of the session."""

    user_id: str
    name: str = ""


class Approval(msgspec.Struct, frozen=True):
    """A person's word. It is true if the agent may go on; `args` are the ones to use, edited or not."""

    decision: Decision
    args: dict[str, Any]
    reason: str = ""
    by: str = ""

    def __bool__(self) -> bool:
        return self.decision != "reject"


class FileMade(msgspec.Struct, frozen=True, kw_only=True):
    """A file that an agent hands over: the engine stores the bytes and logs `artifact_made`."""

    name: str
    data: bytes
    media_type: str = "application/octet-stream"
    call_id: str = ""
    agent_id: str = ""


Item = AnyEvent | FileMade
"""What a source yields."""


class Context(Protocol):
    """What an agent may know and do during a turn, beside its messages."""

    @property
    def run_id(self) -> str: ...
    @property
    def session_id(self) -> str: ...
    @property
    def user(self) -> User: ...
    @property
    def workspace(self) -> Path:
        """A folder of the session's own."""
        ...

    @property
    def cancelled(self) -> bool:
        """True once somebody pressed Stop. Code that cannot be interrupted looks at it."""
        ...

    def emit(self, event: AnyEvent) -> None:
        """Say something from anywhere, also from another thread, without yielding it."""
        ...

    def approve(
        self, name: str, args: dict[str, Any], *, call_id: str = "", agent_id: str = ""
    ) -> Coroutine[Any, Any, Approval]:
        """Ask a person, and `await` the answer."""
        ...

    def approve_blocking(self, name: str, args: dict[str, Any], *, call_id: str = "", agent_id: str = "") -> Approval:
        """The same for an ordinary generator, which runs in a thread of its own."""
        ...


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One request to an agent."""

    messages: Sequence[Message]
    context: Context


class Source(Protocol):
    """One agent of one framework. Found by entry point; `accepts` decides which one takes a target."""

    framework: ClassVar[str]

    @classmethod
    def accepts(cls, target: object) -> bool: ...

    def __init__(self, target: object) -> None: ...

    @property
    def description(self) -> str:
        """One line about the agent, for lists."""
        ...

    def run(self, turn: Turn) -> AsyncGenerator[Item, None]:
        """The turn's events. Closing the generator must end the framework's work."""
        ...


class CallIds:
    """Makes the ids of tool calls present and unique within a run, as some frameworks repeat or omit them.

    Of several calls that are open under one raw id, the oldest is meant: it is the first to end.
    """

    def __init__(self) -> None:
        self._open: dict[str, list[str]] = {}
        self._used: set[str] = set()

    def start(self, raw: str) -> str:
        """The id under which a call that begins now is known from here on."""
        base = raw or "call"
        call_id, number = base, 1
        while call_id in self._used:
            number += 1
            call_id = f"{base}-{number}"
        self._used.add(call_id)
        self._open.setdefault(raw, []).append(call_id)
        return call_id

    def of(self, raw: str) -> str:
        """The id of the call that is open under this raw id."""
        return next(iter(self._open.get(raw, ())), raw)

    def finish(self, raw: str) -> str:
        """The same, for the call's end."""
        call_id = self.of(raw)
        if call_id in self._open.get(raw, ()):
            self._open[raw].remove(call_id)
        return call_id


def filled_in(event: AnyEvent) -> AnyEvent:
    """What a source left out of a tool call: a name, the message of an error, a result that repeats it."""
    match event:
        case ToolStarted() if not event.name:
            return msgspec.structs.replace(event, name="unknown")
        case ToolFinished() if event.error is not None:
            error = event.error or "Unknown error"
            result = f"Error: {error}" if event.result in (None, "") else event.result
            return msgspec.structs.replace(event, error=error, result=result)
        case _:
            return event


def first_line(text: str | None) -> str:
    """The first line of a docstring, for descriptions."""
    return (text or "").strip().partition("\n")[0].strip()
