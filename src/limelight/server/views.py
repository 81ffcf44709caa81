"""What answers look like. Times are milliseconds since 1970, as in the log."""

from typing import Any, Literal

import msgspec

from limelight.events import Decision, JsonValue
from limelight.models import Run, RunFault, RunState, Session

SessionState = Literal["idle", "processing", "completed", "error", "expired"]
AFTER_RUN: dict[RunState, SessionState] = {
    "queued": "processing",
    "running": "processing",
    "waiting": "processing",
    "finished": "completed",
    "failed": "error",
    "cancelled": "idle",
}
"""What a run makes of its session."""


class AgentView(msgspec.Struct, kw_only=True):
    name: str
    title: str
    description: str
    framework: str
    model: str
    default: bool


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
    expires_at: int | None
    truncated: bool
    size: int
    result_url: str


class DecidedView(msgspec.Struct, kw_only=True):
    """One approval with its whole arguments: as they were asked for, and as somebody edited them."""

    approval_id: str
    call_id: str
    name: str
    args: Any
    edited_args: Any
    decisions: tuple[Decision, ...]
    expires_at: int | None
    state: Literal["requested", "approve", "edit", "reject"]
    reason: str
    by: str
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
    state: Decision


class ToolView(msgspec.Struct, kw_only=True):
    call_id: str
    name: str
    args: Any
    output: str
    result: JsonValue
    error: str | None
    result_seen: bool
    """False if the call is over and its result was not seen."""
    media_type: str
    size: int


class AnswerMessage(msgspec.Struct):
    role: str
    content: str


class AnswerView(msgspec.Struct, kw_only=True):
    """An answer that is more than text, as the agent made it."""

    title: str
    content: JsonValue
    sources: tuple[str, ...]


class ToolSummary(msgspec.Struct, kw_only=True):
    call_id: str
    name: str
    args: Any
    output: str
    result: JsonValue
    error: str | None
    result_seen: bool
    """False if the call is over and its result was not seen."""
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


def session_state(session: Session, now: int, expiry_ms: float) -> SessionState:
    """A session's state, from its newest run and its age."""
    state = "idle" if session.run_state is None else AFTER_RUN[session.run_state]
    return "expired" if state != "processing" and now - session.active_at > expiry_ms else state


def session_view(session: Session, now: int, expiry_seconds: float) -> SessionView:
    return SessionView(
        session_id=session.ref.session_id,
        title=session.title,
        agent=session.agent,
        state=session_state(session, now, expiry_seconds * 1000),
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
