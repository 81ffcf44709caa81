"""The routes for login and logout of the page, which store an API key in a cookie that scripts cannot read."""

from typing import Annotated

import msgspec
from starlette.responses import Response

from limelight.auth.identity import Scope
from limelight.errors import Forbidden, Unauthorized
from limelight.server.auth.cookies import is_cross_site, set_key_cookie
from limelight.server.endpoint import ApiRequest, Router

MAX_KEY = 3500
"""Maximum length of a key in characters, because browsers limit a cookie to 4 kB."""
MAX_BODY = 8 * 1024
"""Size limit of the body in bytes. It is low because the route needs no key."""
router = Router("Keys")


class LoginBody(msgspec.Struct):
    """An API key, as `limelight keys create` prints it."""

    key: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_KEY)]


class MeView(msgspec.Struct, kw_only=True):
    """The user and the scopes of a caller. `open` is true on a server without keys, where all callers are one user."""

    user: str
    name: str
    scopes: list[Scope]
    open: bool


@router.route(
    "POST",
    "/auth/login",
    "Log in with a key",
    response=None,
    body=LoginBody,
    errors=(Unauthorized, Forbidden),
    public=True,
)
async def login(request: ApiRequest) -> Response:
    """Log in with a key. The browser stores the key in a cookie and sends it with each request."""
    if _is_cross_site(request):
        raise Forbidden("a page of another site cannot log in with a key")
    key = (await request.body(LoginBody, max_bytes=MAX_BODY)).key.strip()
    response = Response(status_code=204)
    authenticator = request.runtime.authenticator
    if not authenticator.is_open:
        caller = await authenticator.authenticate(key)
        if caller is None:
            raise Unauthorized("this is not a key of this server, or it was revoked")
        caller.require("use")
        set_key_cookie(request.http, response, key)
    return response


@router.route("POST", "/auth/logout", "Log out", response=None, errors=(Forbidden,), public=True)
async def logout(request: ApiRequest) -> Response:
    """Log out. This deletes the cookie with the key."""
    if _is_cross_site(request):
        raise Forbidden("a page of another site cannot log out")
    response = Response(status_code=204)
    set_key_cookie(request.http, response, "")
    return response


@router.route("GET", "/auth/me", "Read the caller", needs_scope=False)
async def me(request: ApiRequest) -> MeView:
    """Read which user you are on this server, and which scopes your key has."""
    user, scopes = request.user, sorted(request.caller.scopes)
    return MeView(user=user.user_id, name=user.name, scopes=scopes, open=request.runtime.authenticator.is_open)


def _is_cross_site(request: ApiRequest) -> bool:
    return is_cross_site("POST", dict(request.http.headers.raw), tuple(request.runtime.settings.server.origins))
