"""The interface between agents and the engine: `Source`, and the `Turn` and `Context` that a source receives.

A source wraps one agent object. For each turn the engine asks the source for a stream of Events. The engine writes
`run_started`, checks the grammar, measures durations, ends messages, calls and steps that are still open, and turns an
exception into `run_failed`. A source ends its stream with `final_answer` and `run_finished`. It must not depend on
dialects, stores or HTTP.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, TypedDict, Unpack

import msgspec

from limelight.events import NO_RESULT_SEEN, AnyEvent, Decision, ToolFinished, ToolStarted
from limelight.messages import Message
from limelight.sandbox.sandbox import Sandbox

DECISIONS: tuple[Decision, ...] = ("approve", "edit", "reject")
UNSTOPPABLE = "A step that cannot be interrupted is still running; what it returns will be dropped."
"""Status text of a stopped run in which a step without a known name is still running."""


class User(msgspec.Struct, frozen=True):
    """The user for whom an agent works. `user_id` identifies the owner of the session."""

    user_id: str
    name: str = ""


class Approval(msgspec.Struct, frozen=True):
    """A person's decision about an approval request. It is truthy unless the person has rejected the request.

    `args` are the arguments to use, edited or not.
    """

    decision: Decision
    args: dict[str, Any]
    reason: str = ""
    by: str = ""

    def __bool__(self) -> bool:
        return self.decision != "reject"


class ApprovalOptions(TypedDict, total=False):
    """Optional fields of an approval request."""

    call_id: str
    """The open tool call that needs the approval."""
    agent_id: str
    """The id of the agent that asks; "" is the main agent."""
    decisions: Sequence[Decision]
    """The allowed decisions; all by default."""


class FileMade(msgspec.Struct, frozen=True, kw_only=True):
    """A file that an agent has produced. The engine stores its bytes and logs `artifact_made`."""

    name: str
    data: bytes | Callable[[], bytes]
    """The bytes, or a function that returns them and is called in a thread."""
    media_type: str = "application/octet-stream"
    call_id: str = ""
    agent_id: str = ""

    async def read(self) -> bytes:
        """Return the bytes; call `data` in a thread if it is a function."""
        return self.data if isinstance(self.data, bytes) else await asyncio.to_thread(self.data)


Item = AnyEvent | FileMade
"""What a source yields: an event, or a file for the engine to store."""


class Context(Protocol):
    """An agent's access to its run: ids, user, workspace, cancellation, extra events and approval requests."""

    @property
    def run_id(self) -> str: ...
    @property
    def session_id(self) -> str: ...
    @property
    def user(self) -> User: ...
    @property
    def workspace(self) -> Path:
        """The folder for the agent's files: the session's own folder, or one that all sessions of the agent share."""
        ...

    @property
    def cancelled(self) -> bool:
        """True once the run is stopped. Code that cannot be interrupted should poll this."""
        ...

    def emit(self, event: AnyEvent) -> None:
        """Add an event to the run without yielding it. Any thread may call this."""
        ...

    def approve(
        self, name: str, args: dict[str, Any], **options: Unpack[ApprovalOptions]
    ) -> Coroutine[Any, Any, Approval]:
        """Ask a person to approve, edit or reject an action, and wait for the decision."""
        ...

    def approve_blocking(self, name: str, args: dict[str, Any], **options: Unpack[ApprovalOptions]) -> Approval:
        """Ask a person to approve, edit or reject an action, and block the current thread until the decision."""
        ...

    async def together(self, *asking: Coroutine[Any, Any, Approval]) -> list[Approval]:
        """Await several `approve` calls at once, for an agent that runs no tool before all decisions are made."""
        ...


CURRENT: ContextVar[Context | None] = ContextVar("limelight_context", default=None)
"""The context of the run that the current code belongs to; `limelight.current()` reads it."""
CURRENT_AGENT_ID: ContextVar[Callable[[], str]] = ContextVar("limelight_agent_id", default=str)
"""A function that returns the id of the agent that the current code works for; "" is the main agent or unknown."""


async def no_history() -> Sequence[Message]:
    return ()


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One request to an agent.

    A stateless agent reads all `messages`. An agent that stores state does so under `memory_key`: if state exists under
    that key, the agent reads only the `question`; otherwise it reads the `history` first.
    """

    messages: Sequence[Message]
    """All messages of the request."""
    context: Context
    memory_key: str = ""
    """The key of the conversation: a turn continues from the state of the last turn with the same key."""
    history: Callable[[], Awaitable[Sequence[Message]]] = no_history
    """A function that returns the conversation before this turn, without system messages: from the request, or else
    from the log."""
    max_steps: int | None = None
    """The step limit of the main agent; None leaves the limit to the agent."""

    @property
    def question(self) -> Message:
        """The newest message of the user."""
        return next(message for message in reversed(self.messages) if message.role == "user")

    @property
    def instructions(self) -> str:
        """The texts of the request's system messages, which add to the agent's instructions for this turn."""
        return "\n\n".join(message.text for message in self.messages if message.role == "system")


class AgentResources(Protocol):
    """The resources of a server that its sources may use."""

    @property
    def data(self) -> Path:
        """The data folder of the server, where frameworks store their databases."""
        ...

    async def understudy(self) -> tuple[str, str]:
        """Return the URL and the API key of the offline model. The first call starts the model."""
        ...


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of one agent that its framework applies: limits, planning and approvals. The source passes them on."""

    max_steps: int | None = None
    planning_interval: int | None = None
    approve: tuple[str, ...] = ()
    """The names of tools that need an approval before each call."""
    sandbox: Sandbox | None = None
    """The sandbox for code of the model; None runs code in this process."""


NO_OPTIONS = Options()
"""The default options."""


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
"""Abilities that some frameworks have and others lack."""


class Source(Protocol):
    """Adapter that runs one agent of one framework. Entry points list the sources; `accepts` selects one for a target.

    The module of a source must not import its framework, because every source is loaded to select one for a target.
    """

    framework: ClassVar[str]
    LACKS: ClassVar[Mapping[Feature, str]] = {}
    """Features that the framework lacks, each with a short reason. Tests fail if a framework has such a feature."""
    OPTIONS: ClassVar[frozenset[str]] = frozenset()
    """The fields of Options that the source applies."""
    keeps_memory: ClassVar[bool] = False
    """Whether the source stores state under `memory_key` between turns."""
    resumes: ClassVar[bool] = False
    """Whether `resume` can continue a run that waited for a person when its server ended."""

    @classmethod
    def accepts(cls, target: object) -> bool: ...

    def __init__(self, target: object, options: Options = NO_OPTIONS) -> None: ...

    @property
    def description(self) -> str:
        """A one-line description of the agent, for lists."""
        ...

    @property
    def failed(self) -> bool:
        """Whether the last attempt to open the agent in the background has failed. The next request retries."""
        return False

    async def loaded(self) -> None:
        """Wait until the agent and its framework are loaded, if `open` loads them in the background, or fail to."""

    async def open(self, resources: AgentResources) -> None:
        """Prepare the agent. Called once, before the first turn, in the server's event loop."""

    async def close(self) -> None:
        """Release the agent's resources. Called once, after the last turn."""

    def run(self, turn: Turn) -> AsyncGenerator[Item, None]:
        """Yield the events of a turn. Closing the generator must end the framework's work."""
        ...

    def resume(self, turn: Turn, events: Sequence[AnyEvent]) -> AsyncGenerator[Item, None]:
        """Continue a run that waited for a person when its server ended. `events` are all events in its log.

        The source calls `approve` again, which finds the logged request, and its decision if there is one.
        """
        raise RuntimeError(f"{self.framework} cannot resume a run")

    async def forget(self, memory_key: str) -> None:
        """Delete the stored state of a conversation, after the conversation was deleted."""

    async def rest(self, memory_key: str) -> None:
        """Release the memory of an idle conversation. The conversation can still continue later."""


def with_defaults(event: AnyEvent) -> AnyEvent:
    """Return a tool event with missing fields filled in: the tool's name, the error message, and the result.

    For a failed call, the error serves as the result, and `result_seen` is true because the outcome is known. A call
    whose outcome is unknown gets a placeholder as its result.
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
    """Return the first line of a text, such as a docstring."""
    return (text or "").strip().partition("\n")[0].strip()
