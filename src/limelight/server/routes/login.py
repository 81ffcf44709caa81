"""The page's key: handed in once, kept by the browser in a cookie that scripts cannot read."""

from typing import Annotated

import msgspec
from starlette.responses import Response

from limelight.auth.identity import Scope
from limelight.errors import Forbidden, Unauthorized
from limelight.server.auth import cookies
from limelight.server.endpoint import Call, Endpoint

MAX_KEY = 3500
"""Browsers keep cookies of 4 kB."""
MAX_BODY = 8 * 1024
"""Nobody needs a key to send one, so nothing larger is taken in."""


class LoginBody(msgspec.Struct):
    """A key as `limelight keys create` has shown it."""

    key: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_KEY)]


class MeView(msgspec.Struct, kw_only=True):
    """Who asks. `open` is true on a server without keys, where everybody is the same user."""

    user: str
    name: str
    scopes: list[Scope]
    open: bool


async def login(call: Call) -> Response:
    """Hand in a key. The browser keeps it in a cookie and sends it along from then on."""
    if not _from_own_page(call):
        raise Forbidden("a page of another site cannot hand in a key")
    key = (await call.body(LoginBody, at_most=MAX_BODY)).key.strip()
    response = Response(status_code=204)
    gate = call.parts.gate
    if not gate.is_open:
        caller = await gate.caller(key)
        if caller is None:
            raise Unauthorized("this is no key of this server, or it was revoked")
        caller.needs("use")
        cookies.keep(response, _name(call), key, path=_path(call), secure=_is_secure(call))
    return response


async def logout(call: Call) -> Response:
    """Forget the key that the browser keeps."""
    if not _from_own_page(call):
        raise Forbidden("a page of another site cannot take a key away")
    response = Response(status_code=204)
    cookies.forget(response, _name(call), path=_path(call), secure=_is_secure(call))
    return response


async def me(call: Call) -> MeView:
    """Who you are to this server, and what your key allows."""
    user, scopes = call.user, sorted(call.caller.scopes)
    return MeView(user=user.user_id, name=user.name, scopes=scopes, open=call.parts.gate.is_open)


def _headers(call: Call) -> dict[bytes, bytes]:
    return dict(call.request.headers.raw)


def _from_own_page(call: Call) -> bool:
    return not cookies.is_foreign_page("POST", _headers(call), tuple(call.parts.settings.server.origins))


def _name(call: Call) -> str:
    return cookies.cookie_name(_headers(call), call.root)


def _path(call: Call) -> str:
    """Where this server is, so that its cookie is not sent to its neighbours."""
    return f"{call.root}/"


def _is_secure(call: Call) -> bool:
    return call.request.url.scheme == "https"


ENDPOINTS = (
    Endpoint(
        method="POST",
        path="/auth/login",
        summary="Hand in a key",
        call=login,
        reply=None,
        body=LoginBody,
        errors=(Unauthorized, Forbidden),
        status=204,
        public=True,
        tag="Keys",
    ),
    Endpoint(
        method="POST",
        path="/auth/logout",
        summary="Forget the key",
        call=logout,
        reply=None,
        errors=(Forbidden,),
        status=204,
        public=True,
        tag="Keys",
    ),
    Endpoint(method="GET", path="/auth/me", summary="Who am I", call=me, reply=MeView, scope=None, tag="Keys"),
)
