"""The routes of administration: list users and their sessions, delete sessions, and read the metrics.

They do not give access to the content of sessions.
"""

import msgspec
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4
from starlette.responses import Response

from limelight.errors import BadCursor, BadRequest, SessionNotFound
from limelight.models import SessionRef
from limelight.server.endpoint import ApiRequest, Param, Router
from limelight.server.routes.sessions import PAGE_PARAMS, session_page
from limelight.server.schemas import SessionsView

USER = Param("user", "Whose sessions")
router = Router("Administration", scope="admin")


class UserView(msgspec.Struct, kw_only=True):
    """A user who has sessions. `active_at` is the time of the last activity in any of these sessions."""

    user: str
    sessions: int
    active_at: int


class UsersView(msgspec.Struct, kw_only=True):
    """A page of users. `next` is the value of `after` for the next page, null on the last one."""

    users: list[UserView]
    next: str | None


@router.route(
    "GET",
    "/admin/users",
    "List users",
    query=(
        Param("after", "The `next` of the page before"),
        Param("limit", "Users per page", {"type": "integer", "minimum": 1, "maximum": 200, "default": 50}),
    ),
    errors=(BadRequest,),
)
async def list_users(request: ApiRequest) -> UsersView:
    """List all users who have sessions, ordered by name."""
    limit = request.query_int("limit", 50, low=1, high=200)
    owners = await request.runtime.store.owners(after=request.query("after") or "", limit=limit + 1)
    users = [UserView(user=o.owner, sessions=o.sessions, active_at=o.active_at) for o in owners[:limit]]
    return UsersView(users=users, next=users[-1].user if len(owners) > limit else None)


@router.route(
    "GET", "/admin/sessions", "List the sessions of a user", query=(USER, *PAGE_PARAMS), errors=(BadRequest, BadCursor)
)
async def list_sessions(request: ApiRequest) -> SessionsView:
    """List the sessions of a user, last active first."""
    return await session_page(request, _user(request))


@router.route(
    "DELETE",
    "/admin/sessions/{session_id}",
    "Delete a session of a user",
    query=(USER,),
    errors=(BadRequest, SessionNotFound),
)
async def delete_session(request: ApiRequest) -> None:
    """Delete a session of a user, with everything that belongs to it. A live run is stopped first."""
    ref = SessionRef(_user(request), request.path("session_id"))
    if await request.runtime.store.session(ref) is None:
        raise SessionNotFound(f"{ref.owner[:100]!r} has no session {ref.session_id[:100]!r}")
    await request.runtime.sessions.delete(ref)


@router.route("GET", "/metrics", "Metrics for Prometheus", response="text/plain")
async def metrics(request: ApiRequest) -> Response:
    """Read the metrics of the server, in the text format of Prometheus. They identify no user."""
    return Response(request.runtime.metrics.render(), headers={"content-type": CONTENT_TYPE_PLAIN_0_0_4})


def _user(request: ApiRequest) -> str:
    user = request.query("user")
    if not user:
        raise BadRequest("name the user whose sessions are meant", path="user")
    return user
