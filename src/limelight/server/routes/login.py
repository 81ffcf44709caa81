"""Login of the page: it hands in a key once, and the browser keeps it in a cookie that scripts cannot read."""

from typing import Annotated

import msgspec
from starlette.responses import Response

from limelight.auth.identity import Scope
from limelight.errors import Forbidden, Unauthorized
from limelight.server.auth import cookies
from limelight.server.endpoint import ApiRequest, Endpoint

MAX_KEY = 3500
"""Browsers keep cookies of 4 kB."""
MAX_BODY = 8 * 1024
"""This route needs no key, so larger bodies are not read."""


class LoginBody(msgspec.Struct):
    """A key as `limelight keys create` shows it."""

    key: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_KEY)]


class MeView(msgspec.Struct, kw_only=True):
    """The caller. `open` is true on a server without keys, where all callers are the same user."""

    user: str
    name: str
    scopes: list[Scope]
    open: bool


async def login(request: ApiRequest) -> Response:
    """Hand in a key. The browser keeps it in a cookie and sends it with each request."""
    if not _is_same_site(request):
        raise Forbidden("a page of another site cannot hand in a key")
    key = (await request.body(LoginBody, max_bytes=MAX_BODY)).key.strip()
    response = Response(status_code=204)
    authenticator = request.runtime.authenticator
    if not authenticator.is_open:
        caller = await authenticator.authenticate(key)
        if caller is None:
            raise Unauthorized("this is not a key of this server, or it was revoked")
        caller.require("use")
        cookies.set_key_cookie(
            response, _cookie_name(request), key, path=_cookie_path(request), secure=_is_secure(request)
        )
    return response


async def logout(request: ApiRequest) -> Response:
    """Delete the key that the browser keeps."""
    if not _is_same_site(request):
        raise Forbidden("a page of another site cannot take a key away")
    response = Response(status_code=204)
    cookies.delete_key_cookie(response, _cookie_name(request), path=_cookie_path(request), secure=_is_secure(request))
    return response


async def me(request: ApiRequest) -> MeView:
    """Who you are to this server, and what your key allows."""
    user, scopes = request.user, sorted(request.caller.scopes)
    return MeView(user=user.user_id, name=user.name, scopes=scopes, open=request.runtime.authenticator.is_open)


def _headers(request: ApiRequest) -> dict[bytes, bytes]:
    return dict(request.http.headers.raw)


def _is_same_site(request: ApiRequest) -> bool:
    return not cookies.is_cross_site("POST", _headers(request), tuple(request.runtime.settings.server.origins))


def _cookie_name(request: ApiRequest) -> str:
    return cookies.cookie_name(_headers(request), request.root)


def _cookie_path(request: ApiRequest) -> str:
    """The root path of this server, so that its cookie is not sent to other servers on the same host."""
    return f"{request.root}/"


def _is_secure(request: ApiRequest) -> bool:
    return request.http.url.scheme == "https"


ENDPOINTS = (
    Endpoint(
        method="POST",
        path="/auth/login",
        summary="Hand in a key",
        handler=login,
        response=None,
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
        handler=logout,
        response=None,
        errors=(Forbidden,),
        status=204,
        public=True,
        tag="Keys",
    ),
    Endpoint(method="GET", path="/auth/me", summary="Who am I", handler=me, response=MeView, scope=None, tag="Keys"),
)
