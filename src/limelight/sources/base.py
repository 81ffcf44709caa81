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

from limelight.events import NO_RESULT_SEEN, AnyEvent, Decision, JsonValue, ToolFinished, ToolStarted
from limelight.messages import Message
from limelight.models import User
from limelight.sandbox.sandbox import Sandbox
from limelight.sources.image_budget import ImageLease, separate_lease
from limelight.sources.input_schemas import NO_SCHEMAS, InputSchemas

DECISIONS: tuple[Decision, ...] = ("approve", "edit", "reject")
UNSTOPPABLE = "A step that cannot be interrupted is still running; what it returns will be dropped."
"""Status text for a run that was stopped while an agent's step of unknown name still runs."""


class Approval(msgspec.Struct, frozen=True):
    """A decision about an approval request. It is truthy unless the request was rejected or has expired.

    `args` are the arguments to use, edited or not. If the person has answered a question (`answered`), the decision is
    `edit` and `args` is `{"value": answer}`.
    """

    decision: Decision
    args: dict[str, Any]
    reason: str = ""
    by: str = ""
    answered: bool = False

    @property
    def answer(self) -> JsonValue:
        """The person's answer to the question of the request; None if the person has not answered."""
        return self.args.get("value") if self.answered else None

    def __bool__(self) -> bool:
        return self.decision != "reject"


class ApprovalOptions(TypedDict, total=False):
    """Optional fields of an agent's request for an approval."""

    call_id: str
    """The open tool call that needs the approval."""
    agent_id: str
    """The id of the agent that asks; "" is the main agent."""
    decisions: Sequence[Decision]
    """The decisions that the person may choose from; all by default."""
    question: str
    """What the agent asks, as a text for the person."""
    answer_schema: dict[str, Any] | None
    """The JSON Schema of the answer that the person may give; None, the default, if the request takes no answer."""
    args_schema: dict[str, Any] | None
    """The JSON Schema of the arguments, for a form to edit them; None, the default, if it is not known."""


class FileMade(msgspec.Struct, frozen=True, kw_only=True):
    """A file that an agent has produced. The engine stores its bytes and logs the event `artifact_made`."""

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
        """True once the run was stopped. Code that cannot be interrupted should check this repeatedly."""
        ...

    def emit(self, event: AnyEvent) -> None:
        """Add an event to the run's log without yielding it from the source. Any thread may call this."""
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
"""The context of the run to which the current code belongs; `limelight.current()` reads it."""
CURRENT_AGENT_ID: ContextVar[Callable[[], str]] = ContextVar("limelight_agent_id", default=str)
"""A function that returns the id of the agent for which the current code works; "" if that is the main agent or
unknown."""


async def no_history() -> Sequence[Message]:
    return ()


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One request to an agent: its messages, the context of its run, and the key of the agent's memory.

    A stateless agent reads the `complete_messages`. An agent that stores state does so under `memory_key`: if state
    exists under that key, the agent reads only the `question`; otherwise it reads the `history` first.
    """

    messages: Sequence[Message]
    """All messages of the request."""
    context: Context
    agent: str = ""
    """The name under which the agent is served."""
    memory_key: str = ""
    """Key of the conversation in the agent's memory: a turn continues from the state of the last turn with this key."""
    history: Callable[[], Awaitable[Sequence[Message]]] = no_history
    """Returns the conversation before this turn, without system messages: from the request, or else from the log."""
    missing_messages: Callable[[], Awaitable[Sequence[Message]]] = no_history
    """Returns the session's earlier questions and answers from the log if the request continues the session without
    sending them; else nothing. Tool calls, and the oldest turns of a very long session, are left out."""
    replaces_memory: bool = False
    """Whether the turn starts another conversation in its session, so that the memory of the old one is obsolete."""
    max_steps: int | None = None
    """The step limit of the main agent; None means the agent's own limit."""
    input: Mapping[str, Any] | None = None
    """The input object of the request, which fits the agent's schema; None if the request has only a question."""
    input_is_question: bool = False
    """Whether the request has only an input object. The question is then the text of the input, for people."""
    context_values: Mapping[str, Any] = {}
    """Context values of the request, which the agent's settings allow."""
    images: ImageLease = msgspec.field(default_factory=separate_lease)
    """The pixels of the images that the agent has decoded for this turn. A source that decodes images reserves them
    here first, and closes the lease when the turn has ended."""

    @property
    def question(self) -> Message:
        """The user's newest message in the request."""
        return next(message for message in reversed(self.messages) if message.role == "user")

    async def complete_messages(self) -> list[Message]:
        """Return the messages of the request, preceded by the session's earlier turns if the request lacks them."""
        messages = list(self.messages)
        last = max(at for at, message in enumerate(messages) if message.role == "user")
        messages[last:last] = await self.missing_messages()
        return messages

    @property
    def instructions(self) -> str:
        """The texts of the request's system messages: instructions to the agent that apply to this turn only."""
        return "\n\n".join(message.text for message in self.messages if message.role == "system")


class AgentResources(Protocol):
    """What a server provides to its sources: the data folder and the offline model."""

    @property
    def data(self) -> Path:
        """The data folder of the server, where frameworks store their databases."""
        ...

    async def understudy(self) -> tuple[str, str]:
        """Return the URL and the API key of the offline model, which the first call starts."""
        ...


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of one agent that its source passes to the framework: limits, planning, approvals and sandbox."""

    max_steps: int | None = None
    planning_interval: int | None = None
    approve: tuple[str, ...] = ()
    """Names of the tools that need an approval before each call."""
    sandbox: Sandbox | None = None
    """The sandbox in which code written by the model runs; None runs it in the server's process."""
    input: Mapping[str, Any] = {}
    """Values of the agent's input that a conversation begins with, unless its first request has others."""
    context: Mapping[str, Any] = {}
    """Values of the agent's context. Those of a request take precedence."""


NO_OPTIONS = Options()
"""Options without any setting; the framework's defaults apply."""


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
"""Names of the features that some frameworks have and others lack."""


class Source(Protocol):
    """Adapter that runs one agent of one framework. Entry points list the sources; `accepts` selects one for a target.

    The module of a source must not import its framework, because every source is loaded to select one for a target.
    """

    framework: ClassVar[str]
    LACKS: ClassVar[Mapping[Feature, str]] = {}
    """Features that the framework lacks, each with the reason. A test fails if the framework has a listed feature."""
    OPTIONS: ClassVar[frozenset[str]] = frozenset()
    """Names of the fields of Options that the source supports."""
    keeps_memory: ClassVar[bool] = False
    """Whether the source needs a `memory_key` and the session's earlier turns. A source to which the request's messages
    suffice leaves this False."""
    resumes: ClassVar[bool] = False
    """Whether `resume` can continue a run that waited for a person when its server ended."""

    @classmethod
    def accepts(cls, target: object) -> bool: ...

    @classmethod
    def agents_in(cls, target: object) -> Mapping[str, object]:
        """Return the agents that an object holds, by name, if it is a collection of this framework's agents."""
        return {}

    def __init__(self, target: object, options: Options = NO_OPTIONS) -> None: ...

    @property
    def description(self) -> str:
        """A one-line description of the agent, for lists."""
        return ""

    @property
    def schemas(self) -> InputSchemas:
        """What the agent takes besides a question, as JSON Schemas."""
        return NO_SCHEMAS

    @property
    def failed(self) -> bool:
        """Whether the last attempt to create the agent in the background has failed; the next request retries."""
        return False

    async def loaded(self) -> None:
        """Wait until the agent and its framework are loaded or have failed to load, if `open` loads them in the
        background.
        """

    async def open(self, resources: AgentResources) -> None:
        """Prepare the agent. Called once, before the first turn, in the server's event loop."""

    async def close(self) -> None:
        """Release the agent's resources. Called once, after the last turn."""

    def run(self, turn: Turn) -> AsyncGenerator[Item, None]:
        """Yield the events of a turn. Closing the generator must stop the framework's work."""
        ...

    def resume(self, turn: Turn, events: Sequence[AnyEvent]) -> AsyncGenerator[Item, None]:
        """Continue a run that was waiting for a person when its server ended; `events` are all events in its log.

        The source calls `approve` again, which finds the logged request, and its decision if there is one.
        """
        raise RuntimeError(f"{self.framework} cannot resume a run")

    async def forget(self, memory_key: str) -> None:
        """Delete the stored state of a conversation, after the conversation was deleted or replaced."""

    async def forget_session(self, user_id: str, session_id: str) -> None:
        """Delete state that the agent stores under a session's id, after the session was deleted.

        Another user may have a session with the same id.
        """

    def held_bytes(self, memory_key: str) -> int:
        """Return the approximate memory of this process that an idle conversation holds, and `unload` releases."""
        return 0

    async def unload(self, memory_key: str) -> None:
        """Release the memory of an idle conversation, which must still be able to continue later."""


def with_defaults(event: AnyEvent) -> AnyEvent:
    """Return a tool event with its missing fields filled in: the tool's name, the error message, the result.

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


def is_instance(value: object, module: str, class_name: str) -> bool:
    """Whether a value is an instance of this class of this module or package, without importing the module."""
    return any(
        base.__name__ == class_name and f"{base.__module__}.".startswith(f"{module}.") for base in type(value).__mro__
    )


def first_line(text: str | None) -> str:
    """Return the first line of a text, such as a docstring."""
    return (text or "").strip().partition("\n")[0].strip()
