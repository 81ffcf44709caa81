"""What a source is, what it is given, and what all of them share.

A source wraps one agent object. For each turn the engine asks it for a stream of Events and takes care of the rest: it
writes `run_started`, checks the grammar, measures durations, closes what is left open, and turns an exception into
`run_failed`. A source ends with `final_answer` and `run_finished`. It must not know dialects, stores or HTTP.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, TypedDict, Unpack

import msgspec

from limelight.events import NO_RESULT_SEEN, AnyEvent, Decision, ToolFinished, ToolStarted
from limelight.messages import Message

DECISIONS: tuple[Decision, ...] = ("approve", "edit", "reject")
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


class About(TypedDict, total=False):
    """What a question may say beside a name and arguments."""

    call_id: str
    """The open tool call that it is about."""
    agent_id: str
    """The sub-agent that asks."""
    decisions: Sequence[Decision]
    """The answers on offer, in place of all."""


class FileMade(msgspec.Struct, frozen=True, kw_only=True):
    """A file that an agent hands over: the engine stores the bytes and logs `artifact_made`."""

    name: str
    data: bytes | Callable[[], bytes]
    """The bytes, or what reads or makes them, if that takes time: it is called in a thread."""
    media_type: str = "application/octet-stream"
    call_id: str = ""
    agent_id: str = ""

    async def read(self) -> bytes:
        """The bytes, wherever they come from."""
        return self.data if isinstance(self.data, bytes) else await asyncio.to_thread(self.data)


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

    def approve(self, name: str, args: dict[str, Any], **about: Unpack[About]) -> Coroutine[Any, Any, Approval]:
        """Ask a person, and `await` the answer."""
        ...

    def approve_blocking(self, name: str, args: dict[str, Any], **about: Unpack[About]) -> Approval:
        """The same for an ordinary generator, which runs in a thread of its own."""
        ...

    async def together(self, *asking: Coroutine[Any, Any, Approval]) -> list[Approval]:
        """Await several answers, for an agent that stands still until it has all: no call of it runs before."""
        ...


CURRENT: ContextVar[Context | None] = ContextVar("limelight_context", default=None)
"""The context of the run that this code is a part of, for tools that know nothing of Limelight but one function."""
SPEAKER: ContextVar[Callable[[], str]] = ContextVar("limelight_speaker", default=str)
"""Finds the agent that this code works for, as far as the framework lets it be known; "" is the main one."""


async def no_history() -> Sequence[Message]:
    return ()


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One request to an agent.

    An agent without a memory takes `messages` as they are. One that keeps its state does so under `memory_key`: if it
    has some there, it gets the `question` only; if not, it first gets the `history`.
    """

    messages: Sequence[Message]
    """What the client sent, all of it."""
    context: Context
    memory_key: str = ""
    """Names the conversation. The same key means that this turn goes on where the last one with it ended."""
    history: Callable[[], Awaitable[Sequence[Message]]] = no_history
    """The conversation before this turn, without system messages: as the client sent it, else as the log has it."""
    max_steps: int | None = None
    """How many steps the main agent may make; None leaves it to the agent."""

    @property
    def question(self) -> Message:
        """The newest message of the user."""
        return next(message for message in reversed(self.messages) if message.role == "user")

    @property
    def instructions(self) -> str:
        """What the client's system messages say: it adds to the agent's instructions, for this turn."""
        return "\n\n".join(message.text for message in self.messages if message.role == "system")


class Home(Protocol):
    """What a server has for its sources."""

    @property
    def data(self) -> Path:
        """The data folder, for databases of the frameworks."""
        ...

    async def understudy(self) -> tuple[str, str]:
        """The address and the key of the stand-in model, which is started when somebody first asks."""
        ...


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What the configuration says about one agent, as far as its source has to know."""

    max_steps: int | None = None
    planning_interval: int | None = None
    approve: tuple[str, ...] = ()
    """Tools before which a person is asked, for sources that can hold up a call."""


NO_OPTIONS = Options()
"""The configuration says nothing."""


Feature = Literal[
    "reasoning",
    "argument_deltas",
    "output_deltas",
    "parallel_tools",
    "sub_agents",
    "plans",
    "steps",
    "code",
    "approvals",
    "usage",
    "stop_in_a_tool",
    "stop_in_a_sync_tool",
    "memory_after_restart",
]
"""What agents of some frameworks show and others cannot."""


class Source(Protocol):
    """One agent of one framework. Found by entry point; `accepts` decides which one takes a target.

    The module of a source must not import its framework: it is loaded to find out who takes a target.
    """

    framework: ClassVar[str]
    LACKS: ClassVar[Mapping[Feature, str]] = {}
    """What the framework cannot do, each with the reason in a few words. Tests fail if it is not so."""
    OPTIONS: ClassVar[frozenset[str]] = frozenset()
    """The fields of Options that make a difference."""
    keeps_memory: ClassVar[bool] = False
    """Whether state is kept under `memory_key` between turns."""
    resumes: ClassVar[bool] = False
    """Whether a run that waits for a person survives its server: `resume` then goes on with it."""

    @classmethod
    def accepts(cls, target: object) -> bool: ...

    def __init__(self, target: object, options: Options = NO_OPTIONS) -> None: ...

    @property
    def description(self) -> str:
        """One line about the agent, for lists."""
        ...

    @property
    def failed(self) -> bool:
        """Whether it could not be opened, though the server goes on: who asks is told why, and has it tried again."""
        return False

    async def open(self, home: Home) -> None:
        """Called once, before the first turn, in the server's event loop."""

    async def close(self) -> None:
        """Called once, after the last turn."""

    def run(self, turn: Turn) -> AsyncGenerator[Item, None]:
        """The turn's events. Closing the generator must end the framework's work."""
        ...

    def resume(self, turn: Turn, so_far: Sequence[AnyEvent]) -> AsyncGenerator[Item, None]:
        """Go on with a run that waited for a person when its server ended. `so_far` is what its log has.

        It asks again what it asked before, by `approve`: that finds the open question, or the answer if there is one.
        """
        raise RuntimeError(f"{self.framework} cannot go on with a run that waited")

    async def forget(self, memory_key: str) -> None:
        """The conversation is gone for good: remove what is kept of it."""

    async def rest(self, memory_key: str) -> None:
        """The conversation is idle: let go of what is held in memory and can be had again."""


class CallIds:
    """Makes the ids of tool calls present and unique within a run, as some frameworks repeat or omit them.

    Of several calls that are open under one raw id, the oldest is meant: it is the first to end.
    """

    def __init__(self) -> None:
        self._open: dict[str, list[str]] = {}
        self._used: set[str] = set()

    def reserve(self, used: Iterable[str]) -> None:
        """These ids are taken: they were used before this object was there."""
        self._used.update(used)

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
    """What a source left out of a tool call: a name, the message of an error, a result that repeats it.

    A call that failed has an outcome, so its `result_seen` is true.
    """
    match event:
        case ToolStarted() if not event.name:
            return msgspec.structs.replace(event, name="unknown")
        case ToolFinished() if event.error is not None:
            error = event.error or "Unknown error"
            result = f"Error: {error}" if event.result in (None, "") else event.result
            return msgspec.structs.replace(event, error=error, result=result, result_seen=True)
        case ToolFinished() if not event.result_seen:
            return msgspec.structs.replace(event, result=NO_RESULT_SEEN)
        case _:
            return event


def first_line(text: str | None) -> str:
    """The first line of a docstring, for descriptions."""
    return (text or "").strip().partition("\n")[0].strip()
