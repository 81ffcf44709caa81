"""What the API tells about a session."""

import msgspec
from msgspec import UNSET, UnsetType

from limelight.instants import iso
from limelight.runs.ids import now_ms
from limelight.server.parts import Parts
from limelight.server.views import SessionState, session_state
from limelight.stores.base import Session

DEFAULT_STEPS = 25


class SessionInfo(msgspec.Struct, kw_only=True):
    """A session. `cursor` is the end of its log, `run_id` its newest run.

    `message_count` counts v2's whole messages; the states that a socket in format=records is told go without it.
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


async def session_info(parts: Parts, session: Session, *, counted: bool = True) -> SessionInfo:
    """A session as it is now. Counting its messages for the first time takes as long as reading them all."""
    return SessionInfo(
        session_id=session.ref.session_id,
        agent_type=session.agent,
        state=session_state(session, now_ms(), parts.settings.store.expiry_seconds * 1000),
        created_at=iso(session.created_at),
        last_activity=iso(session.active_at),
        message_count=await parts.message_counts.of_session(session.ref) if counted else UNSET,
        max_steps=steps_of(parts, session),
        title=session.title,
        run_id=session.run_id,
        cursor=str(session.last_seq),
    )


def steps_of(parts: Parts, session: Session) -> int:
    """How many steps a run of the session may take: as its maker said, or the settings of its agent."""
    agent = parts.agents.get(session.agent) if session.agent in parts.agents else None
    return session.max_steps or (agent.max_steps if agent else None) or DEFAULT_STEPS
