"""Sessions of Web API v2: how they are created, which agent they have, and how they are described."""

import logging

import msgspec
from msgspec import UNSET, UnsetType

from limelight.dialects.base import Cursor
from limelight.errors import AgentMismatch, BadCursor, InvalidBody, LimelightError, SessionNotFound
from limelight.ids import now_ms
from limelight.models import NewSession, Session, SessionRef
from limelight.runs.agent_registry import Agent, Agents
from limelight.server.endpoint import check_session_id
from limelight.server.runtime import Runtime
from limelight.server.schemas import SessionState, session_state
from limelight.timestamps import iso

DEFAULT_AGENT = "codact"
DEFAULT_STEPS = 25
MAX_STEPS = 100
INVALID_STEPS = f"max_steps is a whole number from 1 to {MAX_STEPS}"
log = logging.getLogger(__name__)


class SessionInfo(msgspec.Struct, kw_only=True):
    """A session. `cursor` is the end of its log, `run_id` its newest run.

    `message_count` counts v2's complete messages; it is left out of the states on a socket with format=records, and of
    a session whose messages cannot be counted.
    """

    session_id: str
    agent_type: str
    state: SessionState
    created_at: str
    last_activity: str
    message_count: int | UnsetType = UNSET
    max_steps: int
    title: str
    run_id: str | None
    cursor: str


async def session_info(runtime: Runtime, session: Session, *, counted: bool = True) -> SessionInfo:
    """The description of a session. The first count of its messages takes as long as reading them all."""
    return SessionInfo(
        session_id=session.ref.session_id,
        agent_type=session.agent,
        state=_state(runtime, session),
        created_at=iso(session.created_at),
        last_activity=iso(session.active_at),
        message_count=await _message_count(runtime, session) if counted else UNSET,
        max_steps=max_steps_of(runtime, session),
        title=session.title,
        run_id=session.run_id,
        cursor=str(session.last_seq),
    )


def has_expired(runtime: Runtime, session: Session) -> bool:
    return _state(runtime, session) == "expired"


def _state(runtime: Runtime, session: Session) -> SessionState:
    return session_state(session, now_ms(), runtime.settings.store.expiry_seconds)


async def _message_count(runtime: Runtime, session: Session) -> int | UnsetType:
    """The count, which encodes the whole log. A log that cannot be encoded must not hide its session, or others."""
    try:
        return await runtime.message_counts.of_session(session.ref)
    except LimelightError:
        raise
    except Exception:
        log.exception("the messages of session %s cannot be counted", session.ref.session_id)
        return UNSET


def max_steps_of(runtime: Runtime, session: Session) -> int:
    """The step limit of the session's runs: that of its creation, or that of its agent."""
    agent = runtime.agents.get(session.agent) if session.agent in runtime.agents else None
    return session.max_steps or (agent.max_steps if agent else None) or DEFAULT_STEPS


def choose_agent(agents: Agents, agent_type: str | None) -> Agent:
    """The named agent; without a name codact, or the server's default if codact is not served."""
    default = DEFAULT_AGENT if DEFAULT_AGENT in agents else agents.default.name
    name = default if agent_type is None else agent_type
    if name not in agents:
        raise unknown_agent(agents, name)
    return agents.get(name)


def unknown_agent(agents: Agents, agent_type: object) -> InvalidBody:
    """The error for an `agent_type` that is not served, or is not a name at all."""
    names = ", ".join(agent.name for agent in agents)
    return InvalidBody(f"there is no agent_type {repr(agent_type)[:100]}; this server has: {names}", path="agent_type")


def check_cursor(after: Cursor, last_seq: int) -> None:
    """Raise BadCursor for a cursor beyond the end of the log: it is from an earlier session of this name."""
    if after.seq > last_seq:
        raise BadCursor(f"the session's log ends at {last_seq}: after is from another one", path="after")


async def get_session(runtime: Runtime, ref: SessionRef) -> Session:
    """The session. Raises SessionNotFound."""
    session = await runtime.store.session(ref)
    if session is None:
        raise SessionNotFound("Session not found")
    return session


async def get_or_create_session(
    runtime: Runtime, ref: SessionRef, agent_type: str | None = None, max_steps: int | None = None
) -> Session:
    """The session of this name, created if there is none. Raises AgentMismatch if it has another agent."""
    check_session_id(ref.session_id, "session_id")
    if max_steps is not None and not 1 <= max_steps <= MAX_STEPS:
        raise InvalidBody(INVALID_STEPS, path="max_steps")
    if agent_type is not None:
        choose_agent(runtime.agents, agent_type)
    while (session := await runtime.store.session(ref)) is None:
        agent = choose_agent(runtime.agents, agent_type)
        new = NewSession(
            ref=ref,
            agent=agent.name,
            at=now_ms(),
            max_steps=max_steps,
            max_sessions=runtime.quota.sessions_max(ref.owner),
        )
        await runtime.store.create(new)
    if agent_type and agent_type != session.agent:
        raise AgentMismatch(
            f"session {ref.session_id!r} has the agent {session.agent!r}, not {agent_type!r}: leave agent_type out, "
            "or choose another session id"
        )
    return session
