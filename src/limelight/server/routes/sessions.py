"""Conversations: list, read, rename, delete, follow."""

import base64
import binascii

from limelight.errors import BadCursor, BadRequest, InvalidBody, SessionNotFound, TooManyStreams, UnknownFormat
from limelight.ids import now_ms
from limelight.models import Session
from limelight.server.endpoint import Call, Endpoint, Param
from limelight.server.request_schemas import TitleBody
from limelight.server.routes.params import AFTER, FORMAT
from limelight.server.sse import EventStream
from limelight.server.views import SessionsView, SessionView, session_view

STATES = ("idle", "processing", "completed", "error", "expired")
MAX_TITLE = 200
LOOKED_THROUGH = 200
"""So many sessions are read at once to find those in a state."""


async def list_sessions(call: Call) -> SessionsView:
    """Your sessions, last active first. `next` is the `after` of the next page, null on the last one."""
    return await sessions_of(call, call.user.user_id)


async def sessions_of(call: Call, owner: str) -> SessionsView:
    """A page of somebody's sessions, as the query wants it."""
    wanted = call.query("state")
    if wanted is not None and wanted not in STATES:
        raise BadRequest(f"state is one of {', '.join(STATES)}", path="state")
    limit = call.number("limit", 50, low=1, high=200)
    before = _parse_page(call.query("after"))
    found: list[SessionView] = []
    size = limit + 1 if wanted is None else LOOKED_THROUGH
    while len(found) <= limit:
        page = await call.parts.store.sessions(owner, q=call.query("q") or "", before=before, limit=size)
        if not page:
            break
        found += [view for s in page if wanted in (None, (view := _view(call, s)).state)]
        before = (page[-1].active_at, page[-1].ref.session_id)
    more = len(found) > limit
    last = found[limit - 1] if more else None
    return SessionsView(
        sessions=found[:limit], next=None if last is None else _page_after(last.active_at, last.session_id)
    )


async def get_session(call: Call) -> SessionView:
    """One session."""
    return _view(call, await call.session())


async def rename_session(call: Call) -> SessionView:
    """Give a session another title."""
    session = await call.session()
    title = " ".join((await call.body(TitleBody)).title.split())
    if not 1 <= len(title) <= MAX_TITLE:
        raise InvalidBody(f"a title has 1 to {MAX_TITLE} characters", path="title")
    if not await call.parts.store.rename(session.ref, title):
        raise SessionNotFound()
    return _view(call, await call.session())


async def delete_session(call: Call) -> None:
    """Remove a session with its log, results, artifacts and workspace. A live run is stopped first."""
    await call.parts.sessions.delete((await call.session()).ref)


async def stream_session(call: Call) -> EventStream:
    """Follow a session through all its runs, from the cursor on. The stream stays open between runs."""
    cursor = call.cursor()
    format_ = call.format()
    session = await call.session()
    if cursor.seq > session.last_seq:
        raise BadCursor(f"the session's log ends at {session.last_seq}: this cursor is from another one", path="after")
    viewer = call.parts.stream_viewer(session.ref, format_).__enter__()
    viewer.start(cursor)
    return EventStream(viewer, call.parts.pulse, {"x-session-id": session.ref.session_id}, call.still_holds)


def _view(call: Call, session: Session) -> SessionView:
    return session_view(session, now_ms(), call.parts.settings.store.expiry_seconds)


def _page_after(active_at: int, session_id: str) -> str:
    return base64.urlsafe_b64encode(f"{active_at} {session_id}".encode()).decode().rstrip("=")


def _parse_page(text: str | None) -> tuple[int, str] | None:
    if not text:
        return None
    try:
        decoded = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
        active_at, session_id = decoded.split(" ")
        number = int(active_at)
        if not 0 <= number < 2**62:
            raise ValueError
        return number, session_id
    except (ValueError, binascii.Error) as error:
        raise BadCursor("`after` is the `next` of the page before", path="after") from error


PAGE = (
    Param("q", "Only titles that contain this"),
    Param("state", "Only sessions in this state", {"type": "string", "enum": list(STATES)}),
    Param("after", "The `next` of the page before"),
    Param("limit", "Sessions per page", {"type": "integer", "minimum": 1, "maximum": 200, "default": 50}),
)
"""What a list of sessions can be asked."""
ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/sessions",
        summary="List sessions",
        call=list_sessions,
        reply=SessionsView,
        query=PAGE,
        errors=(BadRequest, BadCursor),
        tag="Sessions",
    ),
    Endpoint(
        method="GET",
        path="/sessions/{session_id}",
        summary="Read a session",
        call=get_session,
        reply=SessionView,
        errors=(SessionNotFound,),
        tag="Sessions",
    ),
    Endpoint(
        method="PATCH",
        path="/sessions/{session_id}",
        summary="Rename a session",
        call=rename_session,
        reply=SessionView,
        body=TitleBody,
        errors=(SessionNotFound,),
        tag="Sessions",
    ),
    Endpoint(
        method="DELETE",
        path="/sessions/{session_id}",
        summary="Delete a session",
        call=delete_session,
        reply=None,
        errors=(SessionNotFound,),
        status=204,
        tag="Sessions",
    ),
    Endpoint(
        method="GET",
        path="/sessions/{session_id}/stream",
        summary="Follow a session",
        call=stream_session,
        reply="text/event-stream",
        query=(FORMAT, AFTER),
        errors=(SessionNotFound, BadCursor, UnknownFormat, TooManyStreams),
        tag="Sessions",
    ),
)
