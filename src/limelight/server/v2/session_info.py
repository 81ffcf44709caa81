"""What the API tells about a session."""

import logging

import msgspec
from msgspec import UNSET, UnsetType

from limelight.errors import LimelightError
from limelight.ids import now_ms
from limelight.models import Session
from limelight.server.runtime import Parts
from limelight.server.views import SessionState, session_state
from limelight.timestamps import iso

DEFAULT_STEPS = 25
log = logging.getLogger(__name__)


class SessionInfo(msgspec.Struct, kw_only=True):
    """A session. `cursor` is the end of its log, `run_id` its newest run.

    `message_count` counts v2's whole messages; the states that a socket in format=records is told go without it, and so
    does a session whose messages cannot be counted.
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
        state=_state(parts, session),
        created_at=iso(session.created_at),
        last_activity=iso(session.active_at),
        message_count=await _count(parts, session) if counted else UNSET,
        max_steps=steps_of(parts, session),
        title=session.title,
        run_id=session.run_id,
        cursor=str(session.last_seq),
    )


def has_expired(parts: Parts, session: Session) -> bool:
    return _state(parts, session) == "expired"


def _state(parts: Parts, session: Session) -> SessionState:
    return session_state(session, now_ms(), parts.settings.store.expiry_seconds * 1000)


async def _count(parts: Parts, session: Session) -> int | UnsetType:
    """Counting tells the whole log anew. If one cannot be told, that is no reason to hide its session, and others."""
    try:
        return await parts.message_counts.of_session(session.ref)
    except LimelightError:
        raise
    except Exception:
        log.exception("the messages of session %s cannot be counted", session.ref.session_id)
        return UNSET


def steps_of(parts: Parts, session: Session) -> int:
    """How many steps a run of the session may take: as its maker said, or the settings of its agent."""
    agent = parts.agents.get(session.agent) if session.agent in parts.agents else None
    return session.max_steps or (agent.max_steps if agent else None) or DEFAULT_STEPS
