"""Administration: lists users and their sessions, and deletes sessions. Their contents stay private to the owner."""

import msgspec

from limelight.errors import BadCursor, BadRequest, SessionNotFound
from limelight.models import SessionRef
from limelight.server.endpoint import ApiRequest, Endpoint, Param
from limelight.server.routes.sessions import PAGE_PARAMS, session_page
from limelight.server.schemas import SessionsView


class UserView(msgspec.Struct, kw_only=True):
    """A user who has sessions. `active_at` is when one of them was last active."""

    user: str
    sessions: int
    active_at: int


class UsersView(msgspec.Struct, kw_only=True):
    """A page of users. `next` is the `after` of the next one."""

    users: list[UserView]
    next: str | None


async def list_users(request: ApiRequest) -> UsersView:
    """All users who have sessions, by name."""
    limit = request.query_int("limit", 50, low=1, high=200)
    owners = await request.runtime.store.owners(after=request.query("after") or "", limit=limit + 1)
    users = [UserView(user=o.owner, sessions=o.sessions, active_at=o.active_at) for o in owners[:limit]]
    return UsersView(users=users, next=users[-1].user if len(owners) > limit else None)


async def list_sessions(request: ApiRequest) -> SessionsView:
    """The sessions of a user, last active first."""
    return await session_page(request, _user(request))


async def delete_session(request: ApiRequest) -> None:
    """Delete a session of a user, with everything that belongs to it. A live run is stopped first."""
    ref = SessionRef(_user(request), request.path("session_id"))
    if await request.runtime.store.session(ref) is None:
        raise SessionNotFound(f"{ref.owner[:100]!r} has no session {ref.session_id[:100]!r}")
    await request.runtime.sessions.delete(ref)


def _user(request: ApiRequest) -> str:
    user = request.query("user")
    if not user:
        raise BadRequest("name the user whose sessions are meant", path="user")
    return user


USER = Param("user", "Whose sessions")
ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/admin/users",
        summary="List users",
        handler=list_users,
        response=UsersView,
        query=(
            Param("after", "The `next` of the page before"),
            Param("limit", "Users per page", {"type": "integer", "minimum": 1, "maximum": 200, "default": 50}),
        ),
        errors=(BadRequest,),
        scope="admin",
        tag="Administration",
    ),
    Endpoint(
        method="GET",
        path="/admin/sessions",
        summary="List the sessions of a user",
        handler=list_sessions,
        response=SessionsView,
        query=(USER, *PAGE_PARAMS),
        errors=(BadRequest, BadCursor),
        scope="admin",
        tag="Administration",
    ),
    Endpoint(
        method="DELETE",
        path="/admin/sessions/{session_id}",
        summary="Delete a session of a user",
        handler=delete_session,
        response=None,
        query=(USER,),
        errors=(BadRequest, SessionNotFound),
        status=204,
        scope="admin",
        tag="Administration",
    ),
)
