"""Types of the server's responses. Unknown keys are ignored, so that a client can talk to a newer server.

Times are milliseconds since 1970; those of the Web API v2, in `Message` and `State`, are ISO 8601. Events and Records
are those of `limelight.events`. This module does not import httpx.
"""

from typing import Any, NamedTuple

import msgspec

from limelight.events import JsonValue, Outcome, SourceLink


class Gap(NamedTuple):
    """A gap in a stream: the Records from `first` to `last` are no longer stored."""

    first: int
    last: int


class AgentInfo(msgspec.Struct, kw_only=True, frozen=True):
    """An agent that the server offers. The default agent handles requests that name none."""

    name: str
    title: str = ""
    description: str = ""
    framework: str = ""
    model: str = ""
    """The model of the agent: `understudy` is the offline model, "" is none or unknown."""
    default: bool = False
    input_schema: dict[str, Any] | None = None
    """The JSON Schema of `input`, if the agent takes more than a question."""
    question_key: str = ""
    """The key of the input that takes the question; "" if a question alone does not fit the agent."""
    context_schema: dict[str, Any] | None = None
    configurable_schema: dict[str, Any] | None = None
    context_from_request: bool | tuple[str, ...] = False
    """Whether requests may set `context`: all values, none, or those with these names."""


class Me(msgspec.Struct, kw_only=True, frozen=True):
    """The user and the scopes of the client's key. `open` is true on a server without keys."""

    user: str
    name: str = ""
    scopes: tuple[str, ...] = ()
    open: bool = False


class SessionInfo(msgspec.Struct, kw_only=True, frozen=True):
    """A session. `state` is idle, processing, completed, error or expired.

    `run_id` is the newest run, `run_state` its state: `waiting` while it waits for an approval.
    """

    session_id: str
    title: str = ""
    agent: str = ""
    state: str = ""
    created_at: int = 0
    active_at: int = 0
    turns: int = 0
    last_seq: int = 0
    run_id: str | None = None
    run_state: str | None = None


class Message(msgspec.Struct, kw_only=True, frozen=True):
    """A message of the Web API v2. `metadata` has its type and its pane, see docs/protocols/v2.md.

    `cursor` is its position in the session; `after` continues there.
    """

    message_id: str
    role: str = ""
    content: str = ""
    metadata: dict[str, Any] = {}
    timestamp: str = ""
    step_number: int | None = None
    session_id: str = ""
    cursor: str = ""

    @property
    def message_type(self) -> str:
        return str(self.metadata.get("message_type", ""))

    @property
    def whole(self) -> bool:
        """Whether the message is complete; False for the start and the deltas of a streamed text."""
        return not self.metadata.get("streaming")


class State(msgspec.Struct, kw_only=True, frozen=True):
    """A session of the Web API v2. `state` is idle, processing, completed, error or expired.

    `run_id` is the newest run, `cursor` the end of the log, `message_count` the number of complete messages.
    """

    session_id: str
    agent: str = msgspec.field(default="", name="agent_type")
    state: str = "idle"
    run_id: str | None = None
    title: str = ""
    message_count: int = 0
    max_steps: int = 0
    created_at: str = ""
    last_activity: str = ""
    cursor: str = "0"

    @property
    def live(self) -> bool:
        """Whether a run is live."""
        return self.state == "processing"


class Fault(msgspec.Struct, kw_only=True, frozen=True):
    """The error of a failed run. The server's log contains `error_id`."""

    code: str = ""
    message: str = ""
    error_id: str = ""


class ApprovalInfo(msgspec.Struct, kw_only=True, frozen=True):
    """An approval request. In a `RunInfo` it is open, and large `args` are `truncated`; `Client.approval` has all.

    Arguments over `limits.result_bytes` are not stored completely, so there too they are `truncated`.
    A request with an `answer_schema` also takes an answer to its `question`, by `Client.respond`.
    `state` is requested, approve, edit or reject; `edited_args`, `reason`, `by` and `decided_at` belong to the
    decision. An answer is an `edit` that is `answered`, with `{"value": answer}` as `edited_args`.
    """

    approval_id: str
    name: str = ""
    args: Any = None
    call_id: str = ""
    decisions: tuple[str, ...] = ()
    question: str = ""
    answer_schema: dict[str, Any] | None = None
    expires_at: int | None = None
    truncated: bool = False
    state: str = "requested"
    edited_args: Any = None
    reason: str = ""
    by: str = ""
    answered: bool = False
    decided_at: int | None = None


class RunInfo(msgspec.Struct, kw_only=True, frozen=True):
    """A run. `state` is queued, running, waiting, finished, failed or cancelled; `approvals` are the open requests."""

    run_id: str
    session_id: str = ""
    agent: str = ""
    request_id: str = ""
    state: str = ""
    started_at: int | None = None
    ended_at: int | None = None
    error: Fault | None = None
    approvals: tuple[ApprovalInfo, ...] = ()

    @property
    def live(self) -> bool:
        return self.state in ("queued", "running", "waiting")


class ToolResult(msgspec.Struct, kw_only=True, frozen=True):
    """A tool call with complete texts. `result` is None while the call runs.

    `result_seen` is False if the call has ended and its result was not seen. `outcome` says that a call with an error
    did not fail, but was stopped or rejected.
    """

    call_id: str
    name: str = ""
    args: Any = None
    output: str = ""
    result: JsonValue = None
    error: str | None = None
    outcome: Outcome = ""
    result_seen: bool = True
    media_type: str = ""
    size: int = 0


class ToolCall(msgspec.Struct, kw_only=True, frozen=True):
    """A tool call in an Answer. If it is `truncated`, `Client.result` returns all of it.

    `result_seen` is False if the run ended before the call had a result. `outcome` says that a call with an error did
    not fail, but was stopped or rejected.
    """

    call_id: str
    name: str = ""
    args: Any = None
    output: str = ""
    result: JsonValue = None
    error: str | None = None
    outcome: Outcome = ""
    result_seen: bool = True
    duration_ms: int | None = None
    truncated: bool = False
    size: int = 0
    result_url: str = ""


class Answer(msgspec.Struct, kw_only=True, frozen=True):
    """The result of a run. `state` is finished or cancelled.

    `content` is the answer as text; `value` is the answer as JSON, unless the answer is text.
    """

    content: str
    title: str = ""
    sources: tuple[str, ...] = ()
    source_links: tuple[SourceLink, ...] = ()
    """The title and the URL of each source, in the order of `sources`."""
    value: JsonValue = None
    run_id: str
    session_id: str
    state: str
    tools: tuple[ToolCall, ...] = ()
