"""What the API tells about a session."""

import msgspec

from limelight.instants import iso
from limelight.runs.ids import now_ms
from limelight.server.parts import Parts
from limelight.server.views import SessionState, session_state
from limelight.stores.base import Session

DEFAULT_STEPS = 25


class SessionInfo(msgspec.Struct, kw_only=True):
    """A session. `cursor` is the end of its log, `run_id` its newest run."""

    session_id: str
    agent_type: str
    state: SessionState
    created_at: str
    last_activity: str
    message_count: int
    max_steps: int
    title: str
    run_id: str | None
    cursor: str


async def session_info(parts: Parts, session: Session) -> SessionInfo:
    """A session as it is now."""
    return SessionInfo(
        session_id=session.ref.session_id,
        agent_type=session.agent,
        state=session_state(session, now_ms(), parts.settings.store.expiry_seconds * 1000),
        created_at=iso(session.created_at),
        last_activity=iso(session.active_at),
        message_count=await parts.message_counts.of_session(session.ref),
        max_steps=steps_of(parts, session),
        title=session.title,
        run_id=session.run_id,
        cursor=str(session.last_seq),
    )


def steps_of(parts: Parts, session: Session) -> int:
    """How many steps a run of the session may take: as its maker said, or the settings of its agent."""
    agent = parts.agents.get(session.agent) if session.agent in parts.agents else None
    return session.max_steps or (agent.max_steps if agent else None) or DEFAULT_STEPS
