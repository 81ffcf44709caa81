"""Sessions of Web API v2: creation, choice of the agent, and the description that clients get."""

import logging

import msgspec
from msgspec import UNSET, UnsetType

from limelight.errors import AgentMismatch, InvalidBody, LimelightError, SessionNotFound
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
    """The description of a session. `cursor` is the end of its log, and `run_id` is its newest run.

    `message_count` is the number of complete v2 messages. It is missing from states on a socket with `format=records`,
    and if the messages cannot be counted.
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
    """Return the description of a session that clients get.

    With `counted`, it has the number of messages. The first call then reads and encodes the complete log.
    """
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
    """Return the number of messages of a session; UNSET if its log cannot be encoded, so that a list does not fail."""
    try:
        return await runtime.message_counts.of_session(session.ref)
    except LimelightError:
        raise
    except Exception:
        log.exception("the messages of session %s cannot be counted", session.ref.session_id)
        return UNSET


def max_steps_of(runtime: Runtime, session: Session) -> int:
    """Return the step limit for runs of a session: the session's own, else the agent's, else DEFAULT_STEPS."""
    agent = runtime.agents.get(session.agent) if session.agent in runtime.agents else None
    return session.max_steps or (agent.max_steps if agent else None) or DEFAULT_STEPS


def choose_agent(agents: Agents, agent_type: str | None) -> Agent:
    """Return the named agent. Without a name, return codact, or the server's default agent if it does not have codact.

    Raises InvalidBody for an unknown name.
    """
    default = DEFAULT_AGENT if DEFAULT_AGENT in agents else agents.default.name
    name = default if agent_type is None else agent_type
    if name not in agents:
        raise unknown_agent(agents, name)
    return agents.get(name)


def unknown_agent(agents: Agents, agent_type: object) -> InvalidBody:
    """Return the error for an `agent_type` that is not the name of an agent of this server."""
    names = ", ".join(agent.name for agent in agents)
    return InvalidBody(f"there is no agent_type {repr(agent_type)[:100]}; this server has: {names}", path="agent_type")


async def get_session(runtime: Runtime, ref: SessionRef) -> Session:
    """Return a session. Raises SessionNotFound."""
    session = await runtime.store.session(ref)
    if session is None:
        raise SessionNotFound("Session not found")
    return session


async def get_or_create_session(
    runtime: Runtime, ref: SessionRef, agent_type: str | None = None, max_steps: int | None = None
) -> Session:
    """Return the session, and create it if it does not exist.

    Raises AgentMismatch if it exists with another agent, and InvalidBody for invalid arguments.
    """
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
