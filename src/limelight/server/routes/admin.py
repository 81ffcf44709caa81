"""For keys with the scope `admin`: whose sessions there are, and away with them. What is in them stays the owner's."""

import msgspec

from limelight.errors import BadCursor, BadRequest, SessionNotFound
from limelight.models import SessionRef
from limelight.server.endpoint import Call, Endpoint, Param
from limelight.server.routes.sessions import PAGE, sessions_of
from limelight.server.views import SessionsView


class UserView(msgspec.Struct, kw_only=True):
    """Somebody who has sessions. `active_at` is when one of them was active last."""

    user: str
    sessions: int
    active_at: int


class UsersView(msgspec.Struct, kw_only=True):
    """A page of users. `next` is the `after` of the next one."""

    users: list[UserView]
    next: str | None


async def list_users(call: Call) -> UsersView:
    """Everybody who has sessions, by name."""
    limit = call.number("limit", 50, low=1, high=200)
    found = await call.parts.store.owners(after=call.query("after") or "", limit=limit + 1)
    users = [UserView(user=one.owner, sessions=one.sessions, active_at=one.active_at) for one in found[:limit]]
    return UsersView(users=users, next=users[-1].user if len(found) > limit else None)


async def list_sessions(call: Call) -> SessionsView:
    """The sessions of a user, last active first."""
    return await sessions_of(call, _user(call))


async def delete_session(call: Call) -> None:
    """Remove a session of a user, with all that belongs to it. A live run is stopped first."""
    ref = SessionRef(_user(call), call.path("session_id"))
    if await call.parts.store.session(ref) is None:
        raise SessionNotFound(f"{ref.owner[:100]!r} has no session {ref.session_id[:100]!r}")
    await call.parts.sessions.delete(ref)


def _user(call: Call) -> str:
    user = call.query("user")
    if not user:
        raise BadRequest("name the user whose sessions are meant", path="user")
    return user


USER = Param("user", "Whose sessions")
ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/admin/users",
        summary="List users",
        call=list_users,
        reply=UsersView,
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
        call=list_sessions,
        reply=SessionsView,
        query=(USER, *PAGE),
        errors=(BadRequest, BadCursor),
        scope="admin",
        tag="Administration",
    ),
    Endpoint(
        method="DELETE",
        path="/admin/sessions/{session_id}",
        summary="Delete a session of a user",
        call=delete_session,
        reply=None,
        query=(USER,),
        errors=(BadRequest, SessionNotFound),
        status=204,
        scope="admin",
        tag="Administration",
    ),
)
