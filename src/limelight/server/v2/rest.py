"""Web API v2 over HTTP: sessions, their messages, health."""

import uuid

import msgspec

from limelight.dialects.v2.schema import RunMessage
from limelight.errors import BadCursor, BadRequest, InvalidBody, SessionNotFound, StoreUnavailable, TooManySessions
from limelight.ids import now_ms
from limelight.models import Session
from limelight.server.endpoint import Call, Endpoint, Param, shaped
from limelight.server.v2.framing import addressed
from limelight.server.v2.history import DEFAULT_LIMIT, History, Wanted
from limelight.server.v2.open_session import STEPS, agent_of, known_session, no_agent, open_session
from limelight.server.v2.session_info import SessionInfo, has_expired, session_info, steps_of
from limelight.server.v2.spec import TAG
from limelight.timestamps import iso

VERSION = "2.0.0"
PREFIX = "/api/v2"
MAX_SESSIONS = 1000
"""What one answer lists, also if nobody asks for so many: an old client does not know that there are pages."""


class NewSessionBody(msgspec.Struct, kw_only=True):
    """A new session. `agent_type` is one of `GET /agents`; without it codact, or the server's default."""

    agent_type: str | None = None
    max_steps: int | None = None


class SessionCreated(msgspec.Struct, kw_only=True):
    session_id: str
    agent_type: str
    websocket_url: str
    max_steps: int


class SessionDeleted(msgspec.Struct, kw_only=True):
    message: str


class MessagesView(msgspec.Struct, kw_only=True):
    """A page of whole messages, oldest first. `total` counts all of the session."""

    session_id: str
    messages: list[RunMessage]
    total: int
    more: bool


class _EncodedMessages(msgspec.Struct, kw_only=True):
    """The same, with messages that are JSON already."""

    session_id: str
    messages: list[msgspec.Raw]
    total: int
    more: bool


class HealthV2(msgspec.Struct, kw_only=True):
    status: str
    timestamp: str
    active_sessions: int
    version: str


async def create_session(call: Call) -> SessionCreated:
    """Make a session; then connect to its `websocket_url`."""
    body = await _new_session(call) if call.has_body else NewSessionBody()
    agent = agent_of(call.parts.agents, body.agent_type)
    session = await open_session(call.parts, call.ref(str(uuid.uuid4())), agent.name, body.max_steps)
    session_id = session.ref.session_id
    return SessionCreated(
        session_id=session_id,
        agent_type=session.agent,
        websocket_url=f"{call.root}{PREFIX}/ws/{session_id}",
        max_steps=steps_of(call.parts, session),
    )


async def _new_session(call: Call) -> NewSessionBody:
    """What is asked for. A value of another type is as wrong as another value, and is told what there is."""
    value = await call.raw_json()
    try:
        return shaped(value, NewSessionBody)
    except InvalidBody as error:
        match error.errors:
            case [("max_steps", _), *_]:
                raise InvalidBody(STEPS, path="max_steps") from error
            case [("agent_type", _), *_]:
                raise no_agent(call.parts.agents, value["agent_type"]) from error
            case _:
                raise


async def list_sessions_v2(call: Call) -> list[SessionInfo]:
    """Your sessions, last active first, without those that have expired. `GET /sessions` has all, in pages."""
    limit = call.number("limit", MAX_SESSIONS, low=1, high=MAX_SESSIONS)
    sessions = await call.parts.store.sessions(call.user.user_id, limit=limit)
    return [await session_info(call.parts, session) for session in sessions if not has_expired(call.parts, session)]


async def get_session_v2(call: Call) -> SessionInfo:
    """One session, also if it has expired."""
    return await session_info(call.parts, await _session(call))


async def delete_session_v2(call: Call) -> SessionDeleted:
    """Remove a session with all that belongs to it. A live run is stopped first."""
    await call.parts.sessions.delete((await _session(call)).ref)
    return SessionDeleted(message="Session deleted")


async def get_messages(call: Call) -> _EncodedMessages:
    """Whole messages: the newest, or those right before or after a message's `cursor`."""
    session = await _session(call)
    high = call.parts.settings.limits.session_messages
    limit = call.number("limit", min(DEFAULT_LIMIT, high), low=1, high=high)
    history = History(call.parts.store, session.ref, call.parts.format("v2", call.root))
    page = await history.page(Wanted(limit, call.query("after"), call.query("before")), high)
    session_id = session.ref.session_id
    return _EncodedMessages(
        session_id=session_id,
        messages=[msgspec.Raw(addressed(frame, session_id)) for frame in page.messages],
        total=await call.parts.message_counts.of_session(session.ref),
        more=page.more,
    )


async def health_v2(call: Call) -> HealthV2:
    """The API answers. `active_sessions` are those of the whole server that have not expired."""
    active = await call.parts.probing.active_sessions()
    if active is None:
        raise StoreUnavailable("the store of this server fails; its log says why")
    return HealthV2(status="healthy", timestamp=iso(now_ms()), active_sessions=active, version=VERSION)


async def _session(call: Call) -> Session:
    return await known_session(call.parts, call.ref(call.path("session_id")))


_CURSOR = "The `cursor` of a message"
ENDPOINTS = (
    Endpoint(
        method="POST",
        path=f"{PREFIX}/sessions",
        summary="Make a session (v2)",
        call=create_session,
        reply=SessionCreated,
        body=NewSessionBody,
        body_required=False,
        errors=(TooManySessions,),
        tag=TAG,
    ),
    Endpoint(
        method="GET",
        path=f"{PREFIX}/sessions",
        summary="List sessions (v2)",
        call=list_sessions_v2,
        reply=list[SessionInfo],
        query=(
            Param("limit", "Sessions at most", {"type": "integer", "minimum": 1, "maximum": 1000, "default": 1000}),
        ),
        errors=(BadRequest,),
        tag=TAG,
    ),
    Endpoint(
        method="GET",
        path=f"{PREFIX}/sessions/{{session_id}}",
        summary="Read a session (v2)",
        call=get_session_v2,
        reply=SessionInfo,
        errors=(SessionNotFound,),
        tag=TAG,
    ),
    Endpoint(
        method="DELETE",
        path=f"{PREFIX}/sessions/{{session_id}}",
        summary="Delete a session (v2)",
        call=delete_session_v2,
        reply=SessionDeleted,
        errors=(SessionNotFound,),
        tag=TAG,
    ),
    Endpoint(
        method="GET",
        path=f"{PREFIX}/sessions/{{session_id}}/messages",
        summary="Read messages (v2)",
        call=get_messages,
        reply=MessagesView,
        query=(
            Param("limit", "Messages at most", {"type": "integer", "minimum": 1, "maximum": 10000, "default": 100}),
            Param("after", f"{_CURSOR}: the next ones behind it"),
            Param("before", f"{_CURSOR}: the last ones before it"),
        ),
        errors=(SessionNotFound, BadRequest, BadCursor),
        tag=TAG,
    ),
    Endpoint(
        method="GET",
        path=f"{PREFIX}/health",
        summary="Is the API there (v2)",
        call=health_v2,
        reply=HealthV2,
        public=True,
        tag=TAG,
    ),
)
