"""The HTTP routes of Web API v2: sessions, their messages, and a health probe."""

import uuid

import msgspec

from limelight.dialects.v2.message_schema import RunMessage
from limelight.errors import BadCursor, BadRequest, InvalidBody, SessionNotFound, StoreUnavailable, TooManySessions
from limelight.ids import now_ms
from limelight.models import Session
from limelight.server.endpoint import ApiRequest, Param, Router, validate
from limelight.server.v2.asyncapi import TAG
from limelight.server.v2.message_history import DEFAULT_LIMIT, History
from limelight.server.v2.sender import message_json
from limelight.server.v2.sessions import (
    INVALID_STEPS,
    SessionInfo,
    choose_agent,
    get_or_create_session,
    get_session,
    has_expired,
    max_steps_of,
    session_info,
    unknown_agent,
)
from limelight.timestamps import iso

VERSION = "2.0.0"
PREFIX = "/api/v2"
MAX_SESSIONS = 1000
"""Default and maximum number of sessions in a list. The list has no pages, which old clients do not support."""
_CURSOR = "The `cursor` of a message"
router = Router(TAG)


class NewSessionBody(msgspec.Struct, kw_only=True):
    """The agent and the step limit of a new session.

    `agent_type` is a name from `GET /agents`; the default is codact or, without codact, the server's default agent.
    """

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
    """A page of complete messages, oldest first. `total` is the number of all messages of the session."""

    session_id: str
    messages: list[RunMessage]
    total: int
    more: bool


class _EncodedMessages(msgspec.Struct, kw_only=True):
    """`MessagesView` with messages that are already encoded as JSON."""

    session_id: str
    messages: list[msgspec.Raw]
    total: int
    more: bool


class HealthV2(msgspec.Struct, kw_only=True):
    status: str
    timestamp: str
    active_sessions: int
    version: str


@router.route(
    "POST",
    f"{PREFIX}/sessions",
    "Create a session (v2)",
    body=NewSessionBody,
    body_required=False,
    errors=(TooManySessions,),
)
async def create_session(request: ApiRequest) -> SessionCreated:
    """Create a session. Connect to its `websocket_url` to use it."""
    body = await _new_session_body(request) if request.has_body else NewSessionBody()
    agent = choose_agent(request.runtime.agents, body.agent_type)
    session = await get_or_create_session(request.runtime, request.ref(str(uuid.uuid4())), agent.name, body.max_steps)
    session_id = session.ref.session_id
    return SessionCreated(
        session_id=session_id,
        agent_type=session.agent,
        websocket_url=f"{request.root}{PREFIX}/ws/{session_id}",
        max_steps=max_steps_of(request.runtime, session),
    )


async def _new_session_body(request: ApiRequest) -> NewSessionBody:
    """Return the body of `create_session`. A field of the wrong type raises the same error as an invalid value."""
    value = await request.json()
    try:
        return validate(value, NewSessionBody)
    except InvalidBody as error:
        match error.errors:
            case [("max_steps", _), *_]:
                raise InvalidBody(INVALID_STEPS, path="max_steps") from error
            case [("agent_type", _), *_]:
                raise unknown_agent(request.runtime.agents, value["agent_type"]) from error
            case _:
                raise


@router.route(
    "GET",
    f"{PREFIX}/sessions",
    "List sessions (v2)",
    query=(Param("limit", "Sessions at most", {"type": "integer", "minimum": 1, "maximum": 1000, "default": 1000}),),
    errors=(BadRequest,),
)
async def list_sessions_v2(request: ApiRequest) -> list[SessionInfo]:
    """List your sessions that have not expired, last active first. `GET /sessions` lists all sessions, in pages."""
    limit = request.query_int("limit", MAX_SESSIONS, low=1, high=MAX_SESSIONS)
    sessions = await request.runtime.store.sessions(request.user.user_id, limit=limit)
    return [
        await session_info(request.runtime, session)
        for session in sessions
        if not has_expired(request.runtime, session)
    ]


@router.route("GET", f"{PREFIX}/sessions/{{session_id}}", "Read a session (v2)", errors=(SessionNotFound,))
async def get_session_v2(request: ApiRequest) -> SessionInfo:
    """Read a session. Expired sessions can be read too."""
    return await session_info(request.runtime, await _session(request))


@router.route("DELETE", f"{PREFIX}/sessions/{{session_id}}", "Delete a session (v2)", errors=(SessionNotFound,))
async def delete_session_v2(request: ApiRequest) -> SessionDeleted:
    """Delete a session with everything that belongs to it. A live run is stopped first."""
    await request.runtime.sessions.delete((await _session(request)).ref)
    return SessionDeleted(message="Session deleted")


@router.route(
    "GET",
    f"{PREFIX}/sessions/{{session_id}}/messages",
    "Read messages (v2)",
    response=MessagesView,
    query=(
        Param("limit", "Messages at most", {"type": "integer", "minimum": 1, "maximum": 10000, "default": 100}),
        Param("after", f"{_CURSOR}: the messages right after it"),
        Param("before", f"{_CURSOR}: the messages right before it"),
    ),
    errors=(SessionNotFound, BadRequest, BadCursor),
    is_large=True,
)
async def get_messages(request: ApiRequest) -> _EncodedMessages:
    """Read complete messages: the newest, or those directly before or after the `cursor` of a message."""
    session = await _session(request)
    max_limit = request.runtime.settings.limits.session_messages
    limit = request.query_int("limit", min(DEFAULT_LIMIT, max_limit), low=1, high=max_limit)
    history = History(request.runtime.store, session.ref, request.runtime.format("v2", request.root))
    page = await history.page(max_limit, limit=limit, after=request.query("after"), before=request.query("before"))
    session_id = session.ref.session_id
    return _EncodedMessages(
        session_id=session_id,
        messages=[msgspec.Raw(message_json(frame, session_id)) for frame in page.messages],
        total=await request.runtime.message_counts.of_session(session.ref),
        more=page.more,
    )


@router.route("GET", f"{PREFIX}/health", "Liveness probe (v2)", public=True)
async def health_v2(request: ApiRequest) -> HealthV2:
    """Check that the API and the store work. `active_sessions` counts the unexpired sessions of all users."""
    active = await request.runtime.readiness.active_sessions()
    if active is None:
        raise StoreUnavailable("the store of this server fails; its log says why")
    return HealthV2(status="healthy", timestamp=iso(now_ms()), active_sessions=active, version=VERSION)


async def _session(request: ApiRequest) -> Session:
    return await get_session(request.runtime, request.ref(request.path("session_id")))
