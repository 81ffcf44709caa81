"""The events of a run: immutable types, which form one tagged union.

An Event is one thing that an agent did. It has no storage id and no time; a Record is an Event with its number in the
log. Sources emit events, the grammar checks their order, stores store them, and dialects encode them as frames. This
module imports none of these layers.
"""

import re
from typing import Any, Literal

import msgspec

JsonValue = dict[str, Any] | list[Any] | str | int | float | bool | None
"""Any JSON value, such as the arguments and the result of a tool."""

TodoStatus = Literal["pending", "in_progress", "completed"]
OutputStream = Literal["stdout", "stderr"]
Decision = Literal["approve", "edit", "reject"]
RequestedDecision = Literal["approve", "edit", "reject", "respond"]
"""A decision as clients send it. In the log, `respond` is an `edit` that is `answered`: older clients know only three
decisions."""
Outcome = Literal["", "failed", "stopped", "rejected"]
"""Why a call, a step or a sub-agent has an error. With an error, "" means the same as `failed`.

`stopped`: its run or its agent ended first, by a Stop, a failure or otherwise; the error names the reason. `rejected`:
the call did not run, because its approval was rejected or has expired. `failed` is only written if the error has one of
the texts by which readers of old logs recognise what was stopped (`OLD_CLOSING_TEXTS` in `display_fields.py`).
"""


def _tag(class_name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", class_name).lower()


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag=_tag):
    """The base class of all events. `agent_id` names the agent that acted; "" is the main agent."""

    agent_id: str = ""


def kind_of(event: Event | type[Event]) -> str:
    """Return the `kind` of an event in JSON: `ToolStarted` -> `tool_started`."""
    return str(event.__struct_config__.tag)


class Todo(msgspec.Struct, frozen=True):
    """One item of a plan."""

    content: str
    status: TodoStatus = "pending"


class Attachment(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file or image in the user's message. If the message contained the bytes, they are stored as an artifact."""

    media_type: str
    name: str = ""
    artifact_id: str = ""
    url: str = ""


class SourceLink(msgspec.Struct, frozen=True):
    """The title and the URL of one source of an answer. `title` is "" if the source is only a URL."""

    title: str
    url: str = ""
    """The URL, which begins with `http://` or `https://`; "" if the source has none."""


class RunStarted(Event, frozen=True, kw_only=True):
    """The run began: the agent, the user's input, and the settings that a dialect needs to encode the run."""

    agent: str
    input: str = ""
    turn: int = 1
    enable_streaming: bool = True
    """False if the agent is configured to send complete texts instead of deltas."""
    framework: str = ""
    """The name of the source, e.g. `smolagents`."""
    python_tools: tuple[str, ...] = ()
    """Names of the tools that run Python code, if the agent's settings list them."""
    traceparent: str = ""
    """The `traceparent` header (W3C Trace Context) of the request that started the run."""
    attachments: tuple[Attachment, ...] = ()
    input_values: dict[str, Any] | None = None
    """The values of the request's input object. Large ones are left out here, and are part of `input` as text."""
    truncated: bool = False
    size: int = 0
    result_url: str = ""


class Status(Event, frozen=True, kw_only=True):
    """A short text for people about the progress of the run. It contains no results."""

    text: str


class TextDelta(Event, frozen=True, kw_only=True, gc=False):
    """The next part of a text message. The first delta with a `message_id` opens the message."""

    message_id: str
    text: str


class TextFinished(Event, frozen=True, kw_only=True, gc=False):
    """The text message is complete. Its text is the joined text of its deltas."""

    message_id: str


class ReasoningDelta(Event, frozen=True, kw_only=True, gc=False):
    """The next part of the agent's reasoning. The first delta with a `message_id` opens the message."""

    message_id: str
    text: str


class ReasoningFinished(Event, frozen=True, kw_only=True, gc=False):
    """The reasoning message is complete."""

    message_id: str


class PlanDelta(Event, frozen=True, kw_only=True, gc=False):
    """The next part of a plan text, sent while the agent writes it. A `plan` event with the complete plan follows."""

    text: str
    update: bool = False


class Plan(Event, frozen=True, kw_only=True):
    """The agent's plan, as text or as items. `update` is False for the first plan of a run."""

    text: str = ""
    items: tuple[Todo, ...] = ()
    update: bool = False
    truncated: bool = False


class StepStarted(Event, frozen=True, kw_only=True):
    """The agent's loop began a step."""

    number: int
    step_kind: str = "action"


class StepFinished(Event, frozen=True, kw_only=True):
    """The step ended. The event has token counts if the framework reports them."""

    number: int
    step_kind: str = "action"
    input_tokens: int | None = None
    output_tokens: int | None = None
    duration_ms: int | None = None
    error: str | None = None
    outcome: Outcome = ""


class ToolStarted(Event, frozen=True, kw_only=True):
    """A tool call began. `args` is None while the arguments stream, and a text if they are not a JSON object.

    The server derives `summary`, `language` and `code_key` from the name and the arguments (`display_fields.py`);
    sources leave them empty.
    """

    call_id: str
    name: str
    args: dict[str, Any] | str | None = None
    summary: str = ""
    """The argument that describes the call best, as one line of at most 80 characters."""
    language: str = ""
    """The language of the code that the call runs: "" if it runs no code, "text" if the language is not known."""
    code_key: str = ""
    """The name of the argument that contains the code."""
    truncated: bool = False
    size: int = 0
    result_url: str = ""


class ToolArgsDelta(Event, frozen=True, kw_only=True, gc=False):
    """The next part of the JSON text of a call's arguments."""

    call_id: str
    text: str


class ToolReady(Event, frozen=True, kw_only=True):
    """The arguments of a call are complete: the tool runs now, or waits for an approval.

    `summary`, `language` and `code_key` are derived as in `ToolStarted`.
    """

    call_id: str
    args: dict[str, Any] | str
    summary: str = ""
    language: str = ""
    code_key: str = ""
    truncated: bool = False
    size: int = 0
    result_url: str = ""


class ToolOutputDelta(Event, frozen=True, kw_only=True, gc=False):
    """The next part of the output of a running tool."""

    call_id: str
    text: str
    stream: OutputStream = "stdout"


NO_RESULT_SEEN = "No result seen"
"""The `result` of a tool call whose result the agent did not report, for clients that do not know `result_seen`."""


class ToolFinished(Event, frozen=True, kw_only=True):
    """The tool call ended. If it failed, `error` is the error message, and `result` is "Error: " and that message.

    A call without an error succeeded, unless `result_seen` is False: then it is unknown whether it succeeded. A call
    with an error failed, unless `outcome` is set: then it was stopped or rejected. The server sets `outcome`; sources
    may leave it empty.
    """

    call_id: str
    result: JsonValue = ""
    error: str | None = None
    outcome: Outcome = ""
    result_seen: bool = True
    """False if the agent ended without reporting a result; `result` is then "No result seen"."""
    duration_ms: int | None = None
    truncated: bool = False
    size: int = 0
    result_url: str = ""


class AgentStarted(Event, frozen=True, kw_only=True):
    """A sub-agent started. `agent_id` is its id, `parent_id` the parent agent, `call_id` the call that started it.

    The server derives `task` from the arguments of that call (`display_fields.py`), unless the source sets it.
    """

    name: str
    parent_id: str = ""
    call_id: str = ""
    task: str = ""
    """The task of the sub-agent, as text of at most 2,000 characters; "" if it is not known."""
    title: str = ""
    """What distinguishes the sub-agent from others with its name: its main input, or a number; "" if nothing does."""
    branch: bool = False
    """Whether the sub-agent is a branch: a part of its parent's work that runs beside other parts of it."""


class AgentFinished(Event, frozen=True, kw_only=True):
    """The sub-agent ended. Its report is the result of the tool call that started the sub-agent."""

    error: str | None = None
    outcome: Outcome = ""


class ApprovalRequested(Event, frozen=True, kw_only=True):
    """The agent waits for the decision of a person. `expires_at` is in ms since the epoch.

    A request with an `answer_schema` is also a question: the person may send an answer, which counts as an `edit`.
    `summary`, `language` and `code_key` are derived as in `ToolStarted`.
    """

    approval_id: str
    name: str
    args: dict[str, Any] | str
    summary: str = ""
    language: str = ""
    code_key: str = ""
    call_id: str = ""
    decisions: tuple[Decision, ...] = ("approve", "edit", "reject")
    question: str = ""
    """What the agent asks, in its own words; "" if it only names the tool and the arguments."""
    answer_schema: dict[str, Any] | None = None
    """The JSON Schema of an answer; `{}` accepts any value, and None means that the request takes no answer."""
    args_schema: dict[str, Any] | None = None
    """The JSON Schema of the arguments, for a form in which a person edits them; None if it is not known."""
    expires_at: int | None = None
    truncated: bool = False
    size: int = 0
    result_url: str = ""


class ApprovalResolved(Event, frozen=True, kw_only=True):
    """The approval was decided by a person, expired or was withdrawn. `by` is the user, or `system`.

    `args` are the edited arguments, or the answer: `{"value": answer}`. `summary`, `language` and `code_key` are
    derived as in `ToolStarted`.
    """

    approval_id: str
    decision: Decision
    args: dict[str, Any] | str | None = None
    answered: bool = False
    """Whether the person has answered the question of the request. The decision is then `edit`."""
    summary: str = ""
    language: str = ""
    code_key: str = ""
    reason: str = ""
    by: str = ""
    truncated: bool = False
    size: int = 0
    result_url: str = ""


class SourceCited(Event, frozen=True, kw_only=True):
    """A source that the agent cites."""

    title: str
    url: str = ""
    text: str = ""
    truncated: bool = False


class ArtifactMade(Event, frozen=True, kw_only=True):
    """The agent made a file. Its bytes are in the store under `artifact_id`."""

    artifact_id: str
    name: str
    media_type: str
    size: int
    call_id: str = ""


class Usage(Event, frozen=True, kw_only=True):
    """The token counts of one request to a model."""

    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0


class FinalAnswer(Event, frozen=True, kw_only=True):
    """The answer of the run. `message_id` is the text message that the answer repeats; None if it was not streamed.

    If the agent's answer is an object, or the text of one, with a title, a content and sources, the server moves these
    to the fields of the event (`structured_answers.py`).
    """

    content: JsonValue = ""
    message_id: str | None = None
    title: str = ""
    sources: tuple[str, ...] = ()
    source_links: tuple[SourceLink, ...] = ()
    """The title and the URL of each source, in the order of `sources`. The server derives them."""
    data: dict[str, Any] | None = None
    """The answer as an object, if the agent answered with one that contains more than the other fields."""
    truncated: bool = False
    size: int = 0
    result_url: str = ""


class RunFinished(Event, frozen=True, kw_only=True):
    """Terminal event: the agent finished. `code` names the limit that ended the run, e.g. `max_steps`; "" if none."""

    code: str = ""


class RunFailed(Event, frozen=True, kw_only=True):
    """Terminal event: the run failed. The server's log has the complete error under `error_id`."""

    code: str
    message: str
    error_id: str = ""


class RunCancelled(Event, frozen=True, kw_only=True):
    """Terminal event: the run was stopped."""

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
"""Union of all event types. A `match` over it ends in `assert_never`, so that a type checker finds missing types."""

Terminal = RunFinished | RunFailed | RunCancelled
EVENT_TYPES: tuple[type[Event], ...] = AnyEvent.__args__
TERMINAL_TYPES: tuple[type[Event], ...] = Terminal.__args__


def terminal_of(event: AnyEvent) -> Terminal | None:
    """Return the event if it is terminal (ends the run), else None."""
    return event if isinstance(event, RunFinished | RunFailed | RunCancelled) else None


class Record(msgspec.Struct, frozen=True):
    """An event in the log: `seq` counts 1, 2, 3 … per session, `at` is the time in ms since the epoch."""

    seq: int
    run_id: str
    at: int
    event: AnyEvent
