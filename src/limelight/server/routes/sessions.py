"""The routes of sessions: list, read, rename, delete and follow."""

import base64
import binascii
from typing import get_args

from limelight.errors import BadCursor, BadRequest, InvalidBody, SessionNotFound, TooManyStreams, UnknownFormat
from limelight.ids import now_ms
from limelight.models import Session
from limelight.server.endpoint import AFTER, FORMAT, ApiRequest, Param, Router, check_cursor
from limelight.server.schemas import SessionState, SessionsView, SessionView, TitleBody, session_view
from limelight.server.sse import EventStream

STATES: tuple[SessionState, ...] = get_args(SessionState)
MAX_TITLE = 200
BATCH = 200
"""Number of sessions that one read of the store returns when a list is filtered by state."""
PAGE_PARAMS = (
    Param("q", "Only titles that contain this"),
    Param("state", "Only sessions in this state", {"type": "string", "enum": list(STATES)}),
    Param("after", "The `next` of the page before"),
    Param("limit", "Sessions per page", {"type": "integer", "minimum": 1, "maximum": 200, "default": 50}),
)
"""Query parameters of the routes that list sessions."""
router = Router("Sessions")


@router.route("GET", "/sessions", "List sessions", query=PAGE_PARAMS, errors=(BadRequest, BadCursor))
async def list_sessions(request: ApiRequest) -> SessionsView:
    """List your sessions, last active first. `next` is the value of `after` for the next page, null on the last one."""
    return await session_page(request, request.user.user_id)


async def session_page(request: ApiRequest, owner: str) -> SessionsView:
    """Return a page of the sessions of an owner. The query parameters of the request select the page."""
    state = request.query("state")
    if state is not None and state not in STATES:
        raise BadRequest(f"state is one of {', '.join(STATES)}", path="state")
    limit = request.query_int("limit", 50, low=1, high=200)
    before = _parse_page_token(request.query("after"))
    found: list[SessionView] = []
    size = limit + 1 if state is None else BATCH
    while len(found) <= limit:
        page = await request.runtime.store.sessions(owner, q=request.query("q") or "", before=before, limit=size)
        if not page:
            break
        found += [view for s in page if state in (None, (view := _view(request, s)).state)]
        before = (page[-1].active_at, page[-1].ref.session_id)
    more = len(found) > limit
    last = found[limit - 1] if more else None
    return SessionsView(
        sessions=found[:limit], next=None if last is None else _page_token(last.active_at, last.session_id)
    )


@router.route("GET", "/sessions/{session_id}", "Read a session", errors=(SessionNotFound,))
async def get_session(request: ApiRequest) -> SessionView:
    """Read a session."""
    return _view(request, await request.session())


@router.route("PATCH", "/sessions/{session_id}", "Rename a session", body=TitleBody, errors=(SessionNotFound,))
async def rename_session(request: ApiRequest) -> SessionView:
    """Change the title of a session."""
    session = await request.session()
    title = " ".join((await request.body(TitleBody)).title.split())
    if not 1 <= len(title) <= MAX_TITLE:
        raise InvalidBody(f"a title has 1 to {MAX_TITLE} characters", path="title")
    if not await request.runtime.store.rename(session.ref, title):
        raise SessionNotFound()
    return _view(request, await request.session())


@router.route("DELETE", "/sessions/{session_id}", "Delete a session", errors=(SessionNotFound,))
async def delete_session(request: ApiRequest) -> None:
    """Delete a session with its log, results, artifacts and workspace. A live run is stopped first."""
    await request.runtime.sessions.delete((await request.session()).ref)


@router.route(
    "GET",
    "/sessions/{session_id}/stream",
    "Follow a session",
    response="text/event-stream",
    query=(FORMAT, AFTER),
    errors=(SessionNotFound, BadCursor, UnknownFormat, TooManyStreams),
)
async def stream_session(request: ApiRequest) -> EventStream:
    """Follow all runs of a session, from the cursor on. The stream stays open between runs."""
    cursor = request.cursor()
    format_ = request.format()
    session = await request.session()
    check_cursor(cursor, session.last_seq)
    viewer = request.runtime.stream_viewer(session.ref, format_).__enter__()
    viewer.start(cursor)
    return EventStream(request, viewer, {"x-session-id": session.ref.session_id})


def _view(request: ApiRequest, session: Session) -> SessionView:
    return session_view(session, now_ms(), request.runtime.settings.store.expiry_seconds)


def _page_token(active_at: int, session_id: str) -> str:
    return base64.urlsafe_b64encode(f"{active_at} {session_id}".encode()).decode().rstrip("=")


def _parse_page_token(text: str | None) -> tuple[int, str] | None:
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
