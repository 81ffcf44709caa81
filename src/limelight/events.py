"""The vocabulary: everything an agent can be seen to do, as frozen values.

An Event is one thing that happened. It knows no storage id and no clock; a Record is an Event that the log has
numbered. Every other part of Limelight is written in these words: sources make them, the grammar checks their order,
stores keep them, dialects turn them into frames. This module must not know any of those.
"""

import re
from typing import Any, Literal

import msgspec

JsonValue = dict[str, Any] | list[Any] | str | int | float | bool | None
"""Any JSON value; what a tool is called with and what it returns."""

TodoStatus = Literal["pending", "in_progress", "completed"]
OutputStream = Literal["stdout", "stderr"]
Decision = Literal["approve", "edit", "reject"]


def _tag(class_name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", class_name).lower()


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag=_tag):
    """The base of all events. `agent_id` says who acted; "" is the main agent."""

    agent_id: str = ""


def kind_of(event: Event | type[Event]) -> str:
    """The tag under which an Event is written: `ToolStarted` -> `tool_started`."""
    return str(event.__struct_config__.tag)


class Todo(msgspec.Struct, frozen=True):
    """One item of a plan."""

    content: str
    status: TodoStatus = "pending"


class Attachment(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file or image that came with the user's message. Bytes that were sent along are kept as an artifact."""

    media_type: str
    name: str = ""
    artifact_id: str = ""
    url: str = ""


class RunStarted(Event, frozen=True, kw_only=True):
    """A turn began: who was asked, and what. Carries all that a dialect needs to start from nothing."""

    agent: str
    input: str = ""
    turn: int = 1
    enable_streaming: bool = True
    """False if texts come whole, because the agent is set so."""
    framework: str = ""
    """The source that plays it, e.g. `smolagents`: what its reasoning stands for differs."""
    python_tools: tuple[str, ...] = ()
    """Tools whose argument is Python code, if the agent names any."""
    traceparent: str = ""
    """The span of the client in which the run was asked for, as the header of W3C Trace Context says it."""
    attachments: tuple[Attachment, ...] = ()
    truncated: bool = False
    size: int = 0
    result_url: str = ""


class Status(Event, frozen=True, kw_only=True):
    """A line that says what goes on, for a human; it never carries results."""

    text: str


class TextDelta(Event, frozen=True, kw_only=True, gc=False):
    """A piece of a message. The first one of a `message_id` opens the message."""

    message_id: str
    text: str


class TextFinished(Event, frozen=True, kw_only=True, gc=False):
    """The message is whole: its text is the sum of its deltas."""

    message_id: str


class ReasoningDelta(Event, frozen=True, kw_only=True, gc=False):
    """A piece of the agent's thinking. The first one of a `message_id` opens it."""

    message_id: str
    text: str


class ReasoningFinished(Event, frozen=True, kw_only=True, gc=False):
    """The thought is whole."""

    message_id: str


class PlanDelta(Event, frozen=True, kw_only=True, gc=False):
    """A piece of a plan in words, while the agent writes it. The `plan` that follows has all of it."""

    text: str
    update: bool = False


class Plan(Event, frozen=True, kw_only=True):
    """What the agent means to do, as text or as items; `update` is false for the first plan of a run."""

    text: str = ""
    items: tuple[Todo, ...] = ()
    update: bool = False
    truncated: bool = False


class StepStarted(Event, frozen=True, kw_only=True):
    """The agent's loop began another round."""

    number: int
    step_kind: str = "action"


class StepFinished(Event, frozen=True, kw_only=True):
    """The round ended, with what it cost where the framework says so."""

    number: int
    step_kind: str = "action"
    input_tokens: int | None = None
    output_tokens: int | None = None
    duration_ms: int | None = None
    error: str | None = None


class ToolStarted(Event, frozen=True, kw_only=True):
    """A tool call appeared. `args` is None while they are still streaming, and raw text if they are not valid JSON."""

    call_id: str
    name: str
    args: dict[str, Any] | str | None = None
    truncated: bool = False
    size: int = 0
    result_url: str = ""


class ToolArgsDelta(Event, frozen=True, kw_only=True, gc=False):
    """A piece of the arguments' JSON text."""

    call_id: str
    text: str


class ToolReady(Event, frozen=True, kw_only=True):
    """The arguments are whole: the tool runs now, or waits for an approval."""

    call_id: str
    args: dict[str, Any] | str
    truncated: bool = False
    size: int = 0
    result_url: str = ""


class ToolOutputDelta(Event, frozen=True, kw_only=True, gc=False):
    """What a running tool printed."""

    call_id: str
    text: str
    stream: OutputStream = "stdout"


NO_RESULT_SEEN = "No result seen"
"""The `result` of a call whose result was not seen: readers that do not know `result_seen` show this text."""


class ToolFinished(Event, frozen=True, kw_only=True):
    """The call is over. On failure `error` is its message and `result` is "Error: " + that message.

    A call without an error succeeded, unless `result_seen` is False: then it is not known how the call ended.
    """

    call_id: str
    result: JsonValue = ""
    error: str | None = None
    result_seen: bool = True
    """False if the agent ended without showing what became of the call; `result` is then "No result seen"."""
    duration_ms: int | None = None
    truncated: bool = False
    size: int = 0
    result_url: str = ""


class AgentStarted(Event, frozen=True, kw_only=True):
    """A sub-agent began: `agent_id` is its own id, `parent_id` who started it, `call_id` the call that spawned it."""

    name: str
    parent_id: str = ""
    call_id: str = ""


class AgentFinished(Event, frozen=True, kw_only=True):
    """The sub-agent ended; its report is the result of the call that spawned it."""

    error: str | None = None


class ApprovalRequested(Event, frozen=True, kw_only=True):
    """A person must decide before the agent goes on. `expires_at` is absolute (ms)."""

    approval_id: str
    name: str
    args: dict[str, Any] | str
    call_id: str = ""
    decisions: tuple[Decision, ...] = ("approve", "edit", "reject")
    expires_at: int | None = None
    truncated: bool = False
    size: int = 0
    result_url: str = ""


class ApprovalResolved(Event, frozen=True, kw_only=True):
    """Somebody decided, or the time ran out (`by` says who)."""

    approval_id: str
    decision: Decision
    args: dict[str, Any] | str | None = None
    reason: str = ""
    by: str = ""
    truncated: bool = False
    size: int = 0
    result_url: str = ""


class SourceCited(Event, frozen=True, kw_only=True):
    """Something the answer rests on."""

    title: str
    url: str = ""
    text: str = ""
    truncated: bool = False


class ArtifactMade(Event, frozen=True, kw_only=True):
    """A file was made; its bytes are in the store under `artifact_id`."""

    artifact_id: str
    name: str
    media_type: str
    size: int
    call_id: str = ""


class Usage(Event, frozen=True, kw_only=True):
    """What one request to a model cost."""

    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0


class FinalAnswer(Event, frozen=True, kw_only=True):
    """The answer of the run. `message_id` names the text message that it repeats; None means it was never streamed."""

    content: JsonValue = ""
    message_id: str | None = None
    title: str = ""
    sources: tuple[str, ...] = ()
    truncated: bool = False
    size: int = 0
    result_url: str = ""


class RunFinished(Event, frozen=True, kw_only=True):
    """Terminal: the agent came to its end. `code` says so if it was a limit, e.g. `max_steps`."""

    code: str = ""


class RunFailed(Event, frozen=True, kw_only=True):
    """Terminal: it broke. `error_id` stands beside the whole story in the server's log."""

    code: str
    message: str
    error_id: str = ""


class RunCancelled(Event, frozen=True, kw_only=True):
    """Terminal: somebody stopped it."""

    reason: str = ""


AnyEvent = (
    RunStarted
    | Status
    | TextDelta
    | TextFinished
    | ReasoningDelta
    | ReasoningFinished
    | PlanDelta
    | Plan
    | StepStarted
    | StepFinished
    | ToolStarted
    | ToolArgsDelta
    | ToolReady
    | ToolOutputDelta
    | ToolFinished
    | AgentStarted
    | AgentFinished
    | ApprovalRequested
    | ApprovalResolved
    | SourceCited
    | ArtifactMade
    | Usage
    | FinalAnswer
    | RunFinished
    | RunFailed
    | RunCancelled
)
"""The tagged union: what a log holds, and what every `match` must cover."""

Terminal = RunFinished | RunFailed | RunCancelled
EVENT_TYPES: tuple[type[Event], ...] = AnyEvent.__args__
TERMINAL_TYPES: tuple[type[Event], ...] = Terminal.__args__


def terminal_of(event: AnyEvent) -> Terminal | None:
    """The event itself, if it ends a run."""
    return event if isinstance(event, RunFinished | RunFailed | RunCancelled) else None


class Record(msgspec.Struct, frozen=True):
    """An Event in the log: numbered 1, 2, 3 … per session, with the run it belongs to and the time (ms)."""

    seq: int
    run_id: str
    at: int
    event: AnyEvent
