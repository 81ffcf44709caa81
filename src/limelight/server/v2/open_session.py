"""Sessions are made by their first request or by connecting to them: with which agent, and for how many steps."""

from limelight.dialects.base import Cursor
from limelight.errors import AgentMismatch, BadCursor, InvalidBody, SessionNotFound
from limelight.ids import now_ms
from limelight.models import NewSession, Session, SessionRef
from limelight.runs.agents import Agent, Agents
from limelight.server.endpoint import check_session_id
from limelight.server.runtime import Parts

DEFAULT_AGENT = "codact"
MAX_STEPS = 100
STEPS = f"max_steps is a whole number from 1 to {MAX_STEPS}"


def agent_of(agents: Agents, agent_type: str | None) -> Agent:
    """The named agent; without a name codact, or the server's own default if that is not served."""
    default = DEFAULT_AGENT if DEFAULT_AGENT in agents else agents.default.name
    wanted = default if agent_type is None else agent_type
    if wanted not in agents:
        raise no_agent(agents, wanted)
    return agents.get(wanted)


def no_agent(agents: Agents, wanted: object) -> InvalidBody:
    """What is said to whoever asks for one that there is not, or for what cannot be one."""
    known = ", ".join(agent.name for agent in agents)
    return InvalidBody(f"there is no agent_type {repr(wanted)[:100]}; this server has: {known}", path="agent_type")


def check_after(after: Cursor, last_seq: int) -> None:
    """A cursor beyond the end of the log is one of another session that had this name."""
    if after.seq > last_seq:
        raise BadCursor(f"the session's log ends at {last_seq}: after is from another one", path="after")


def check_steps(max_steps: int | None) -> None:
    if max_steps is not None and not 1 <= max_steps <= MAX_STEPS:
        raise InvalidBody(STEPS, path="max_steps")


async def known_session(parts: Parts, ref: SessionRef) -> Session:
    """The session, which has to be there."""
    session = await parts.store.session(ref)
    if session is None:
        raise SessionNotFound("Session not found")
    return session


async def open_session(
    parts: Parts, ref: SessionRef, agent_type: str | None = None, max_steps: int | None = None
) -> Session:
    """The session of this name, made if it is new. One that is there keeps its agent."""
    check_session_id(ref.session_id, "session_id")
    check_steps(max_steps)
    if agent_type is not None:
        agent_of(parts.agents, agent_type)
    while (session := await parts.store.session(ref)) is None:
        agent = agent_of(parts.agents, agent_type)
        new = NewSession(
            ref=ref,
            agent=agent.name,
            at=now_ms(),
            max_steps=max_steps,
            max_sessions=parts.quota.sessions_max(ref.owner),
        )
        await parts.store.create(new)
    if agent_type and agent_type != session.agent:
        raise AgentMismatch(
            f"session {ref.session_id!r} has the agent {session.agent!r}, not {agent_type!r}: leave agent_type out, "
            "or choose another session id"
        )
    return session
