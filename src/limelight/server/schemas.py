"""The JSON bodies of requests and responses. Times are milliseconds since 1970, as in the log.

Unknown keys of a request are ignored, because Open WebUI sends more keys than the server uses.
"""

from typing import Any, Literal

import msgspec

from limelight.events import Decision, JsonValue, Outcome, RequestedDecision, SourceLink
from limelight.messages import Role
from limelight.models import Run, RunFault, RunState, Session
from limelight.runs.queue import IfBusy

MAX_REQUEST_ID = 200
MAX_REASON = 500
"""Length to which the reason of a Stop or a decision is cut, in characters."""
SessionState = Literal["idle", "processing", "completed", "error", "expired"]
STATE_AFTER_RUN: dict[RunState, SessionState] = {
    "queued": "processing",
    "running": "processing",
    "waiting": "processing",
    "finished": "completed",
    "failed": "error",
    "cancelled": "idle",
}
"""The state of a session, by the state of its newest run."""


class MessageBody(msgspec.Struct, kw_only=True):
    """A message in OpenAI's format. Further keys (`tool_calls`, `name`, …) are passed to the agent."""

    role: Role
    content: str | list[dict[str, Any] | str] | None = None


class ChatBody(msgspec.Struct, kw_only=True):
    """A request for one turn: the conversation, and where and how to run it."""

    messages: list[MessageBody] | msgspec.UnsetType = msgspec.UNSET
    """May be left out if there is an `input`."""
    input: dict[str, Any] | None = None
    context: dict[str, Any] | None = None
    agent: str | None = None
    model: Any = None
    session_id: str | None = None
    chat_id: str | None = None
    user_id: str | None = None
    if_busy: IfBusy = "error"
    request_id: str | None = None
    stream: bool | None = None


class TitleBody(msgspec.Struct, kw_only=True):
    """A new title of a session."""

    title: str


class CancelBody(msgspec.Struct, kw_only=True):
    """The reason why a run is stopped."""

    reason: str = ""


class DecisionBody(msgspec.Struct, kw_only=True):
    """The decision on an approval: with the edited `args` if it is `edit`, with the `answer` if it is `respond`."""

    decision: RequestedDecision
    args: dict[str, Any] | None = None
    reason: str = ""
    answer: JsonValue | msgspec.UnsetType = msgspec.UNSET


class AgentView(msgspec.Struct, kw_only=True):
    """An agent, and what it takes besides a question, as JSON Schemas."""

    name: str
    title: str
    description: str
    framework: str
    model: str
    default: bool
    sandbox: str = ""
    """How code of the agent's model is confined: `bubblewrap`, `landlock` or `none`; "" if it runs no code."""
    sandbox_reason: str = ""
    """Why the strongest level, `bubblewrap`, is not used; "" if it is, or if the agent runs no code."""
    input_schema: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    """The schema of `input`, if the agent takes more than a question."""
    question_key: str | msgspec.UnsetType = msgspec.UNSET
    """The key of the input that takes the question; "" if a question alone does not fit the agent."""
    context_schema: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    configurable_schema: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    """The schema of further context values, such as the model of a part of the agent."""
    context_from_request: bool | tuple[str, ...] = False
    """Whether requests may set `context`: all values, none, or those with these names."""


class AgentsView(msgspec.Struct):
    version: str
    agents: list[AgentView]


class SessionView(msgspec.Struct, kw_only=True):
    session_id: str
    title: str
    agent: str
    state: SessionState
    created_at: int
    active_at: int
    turns: int
    last_seq: int
    run_id: str | None
    run_state: RunState | None


class SessionsView(msgspec.Struct, kw_only=True):
    sessions: list[SessionView]
    next: str | None


class ApprovalView(msgspec.Struct, kw_only=True):
    approval_id: str
    call_id: str
    name: str
    args: Any
    decisions: tuple[Decision, ...]
    question: str
    answer_schema: dict[str, Any] | None
    expires_at: int | None
    truncated: bool
    size: int
    result_url: str


class DecidedView(msgspec.Struct, kw_only=True):
    """An approval with its decision and its complete arguments: of the agent (`args`) and of the user (`edited_args`).

    If `answered` is true, `edited_args` is `{"value": answer}` and `state` is `edit`.
    Of arguments that exceed `limits.result_bytes`, only the beginning is given, as text; `truncated` is then true.
    """

    approval_id: str
    call_id: str
    name: str
    args: Any
    edited_args: Any
    truncated: bool
    decisions: tuple[Decision, ...]
    question: str
    answer_schema: dict[str, Any] | None
    expires_at: int | None
    state: Literal["requested", "approve", "edit", "reject"]
    reason: str
    by: str
    answered: bool
    decided_at: int | None


class RunView(msgspec.Struct, kw_only=True):
    run_id: str
    session_id: str
    agent: str
    request_id: str
    state: RunState
    started_at: int | None
    ended_at: int | None
    error: RunFault | None
    approvals: list[ApprovalView]


class StateView(msgspec.Struct, kw_only=True):
    run_id: str
    state: RunState


class DecisionView(msgspec.Struct, kw_only=True):
    state: RequestedDecision


class ToolCall(msgspec.Struct, kw_only=True):
    """The common fields of `ToolView` and `ToolSummary`."""

    call_id: str
    name: str
    args: Any
    output: str
    result: JsonValue
    error: str | None
    outcome: Outcome
    """`stopped` or `rejected` if the call has an error but did not fail, else ""."""
    result_seen: bool
    """False if the call has ended, but the server has not seen its result."""


class ToolView(ToolCall, kw_only=True):
    media_type: str
    size: int


class AnswerMessage(msgspec.Struct):
    role: str
    content: str


class AnswerView(msgspec.Struct, kw_only=True):
    """A structured answer. `data` is the agent's complete object, if it has more than title, content and sources."""

    title: str
    content: JsonValue
    sources: tuple[str, ...]
    source_links: tuple[SourceLink, ...]
    data: dict[str, Any] | None = None


class ToolSummary(ToolCall, kw_only=True):
    duration_ms: int | None
    truncated: bool
    size: int
    result_url: str


class ChatView(msgspec.Struct, kw_only=True):
    message: AnswerMessage
    answer: AnswerView | None
    run_id: str
    session_id: str
    state: RunState
    tools: list[ToolSummary]


class HealthView(msgspec.Struct):
    status: str


class ReadyView(msgspec.Struct):
    status: str
    checks: dict[str, str]


def session_state(session: Session, now: int, expiry_seconds: float) -> SessionState:
    """Return the state of a session that clients see, from its newest run and the time of its last activity."""
    state = "idle" if session.run_state is None else STATE_AFTER_RUN[session.run_state]
    return "expired" if state != "processing" and now - session.active_at > expiry_seconds * 1000 else state


def session_view(session: Session, now: int, expiry_seconds: float) -> SessionView:
    return SessionView(
        session_id=session.ref.session_id,
        title=session.title,
        agent=session.agent,
        state=session_state(session, now, expiry_seconds),
        created_at=session.created_at,
        active_at=session.active_at,
        turns=session.turns,
        last_seq=session.last_seq,
        run_id=session.run_id,
        run_state=session.run_state,
    )


def run_view(run: Run, approvals: list[ApprovalView]) -> RunView:
    return RunView(
        run_id=run.run_id,
        session_id=run.ref.session_id,
        agent=run.agent,
        request_id=run.request_id,
        state=run.state,
        started_at=run.started_at,
        ended_at=run.ended_at,
        error=run.error,
        approvals=approvals,
    )
