"""Authentication middleware. It runs before routing and validation, so that a client without a key learns nothing.

If the server has a key or a token issuer, every request needs a key or token, as a bearer token or in the page's
cookie. Exceptions are the probes, the files of the page, which contain no secrets, and the routes for login and logout.
A server without keys and issuer answers only requests from its own machine, unless `auth.insecure_no_auth` is set.
"""

import ipaddress
from urllib.parse import unquote

from starlette.types import ASGIApp, Receive, Scope, Send

from limelight.auth.identity import MAX_USER_ID, user_id_error
from limelight.errors import BadRequest, Forbidden, LimelightError, TooManyConnections, Unauthorized
from limelight.models import LOCAL_OWNER, User
from limelight.runs.limits import RETRY_AFTER_SECONDS
from limelight.server.auth.authenticator import ANONYMOUS, LOCAL, Caller
from limelight.server.auth.cookies import is_cross_site, is_same_site, key_from_cookie
from limelight.server.middleware.root_path import root_of, strip_root
from limelight.server.problem_details import send_problem
from limelight.server.process.connection_table import Connection
from limelight.server.rate_limit import client_of, is_gone
from limelight.server.runtime import Runtime
from limelight.server.signal_requests import SIGNAL_PATH
from limelight.server.web_page import is_page_file

PROBE_PATHS = frozenset({"/health", "/ready", "/api/v2/health"})
LOGIN_PATHS = frozenset({"/auth/login", "/auth/logout"})
CHAT_PATHS = frozenset({"/chat", "/chat/stream"})
"""Paths of the routes whose request body may name the user of the run."""
PROXY_HEADERS = (b"forwarded", b"via", b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-proto", b"x-real-ip")
"""Headers that proxies add. A server without keys refuses them, unless `auth.insecure_no_auth` is set."""
HOW_TO_MAKE_ONE = "make one with `limelight keys create`"


class AuthMiddleware:
    """Authenticates each request and sets `scope["state"]["caller"]`, or refuses the request.

    `is_proxied`: whether the settings of the server say that it is behind a proxy.
    """

    def __init__(self, app: ASGIApp, runtime: Runtime, *, is_proxied: bool = False) -> None:
        self._app = app
        self._authenticator = runtime.authenticator
        self._rate_limiter = runtime.rate_limiter
        self._metrics = runtime.metrics
        self._is_insecure = runtime.settings.auth.insecure_no_auth
        self._origins = tuple(runtime.settings.server.origins)
        self._is_proxied = is_proxied
        self._throttle = runtime.throttle

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket"):
            try:
                headers = dict[bytes, bytes](scope["headers"])
                caller = scope.setdefault("state", {})["caller"] = await self._authenticate(scope, headers)
                if caller is ANONYMOUS and not await self._throttled(scope, receive):
                    return
                _count_connection(caller, scope)
                await self._count(scope)
                scope["state"]["is_still_authorized"] = lambda: self._is_still_authorized(scope, headers)
            except LimelightError as error:
                self._metrics.count_refusal(error)
                if await self._throttled(scope, receive, is_refusal=True):
                    await send_problem(error, scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _throttled(self, scope: Scope, receive: Receive, *, is_refusal: bool = False) -> bool:
        """Wait until the throttle admits a request. Return False if the client has disconnected before."""
        client = client_of(scope)
        if await self._throttle.wait(client, is_refusal=is_refusal, is_gone=lambda: is_gone(scope)):
            return True
        if scope["type"] == "websocket":  # uvicorn logs an error if the handshake of an open socket is not answered
            while (await receive())["type"] != "websocket.disconnect":
                pass
        return False

    async def _count(self, scope: Scope) -> None:
        """Count a request toward the rate limit of the caller, except requests that the endpoint counts itself.

        These are Stop, decisions on approvals, and requests whose body may name another user.
        """
        caller: Caller = scope["state"]["caller"]
        scope["state"]["is_counted"] = not (_may_name_user_in_body(caller, scope) or _is_signal(scope))
        if caller is not ANONYMOUS and scope["state"]["is_counted"]:
            await self._rate_limiter.count(caller.user.user_id)

    async def _authenticate(self, scope: Scope, headers: dict[bytes, bytes]) -> Caller:
        path = strip_root(scope["path"], root_of(scope))
        if path in PROBE_PATHS:
            return ANONYMOUS
        if self._authenticator.is_open:
            self._check_open(scope, headers)
            return LOCAL
        if scope["type"] == "http" and (is_page_file(path) or path in LOGIN_PATHS):
            return ANONYMOUS
        caller = await self._authenticator.authenticate(self._token(scope, headers))
        if caller is None:
            raise Unauthorized("send an API key as `Authorization: Bearer …`")
        if scope["type"] == "websocket":  # browsers do not apply CORS to sockets
            self._check_site(scope, headers)
        return _on_behalf_of(caller, headers)

    async def _is_still_authorized(self, scope: Scope, headers: dict[bytes, bytes]) -> bool:
        """Whether the headers of an open stream still authenticate the same caller. Its key may have been revoked."""
        try:
            return await self._authenticate(scope, headers) == scope["state"]["caller"]
        except LimelightError:
            return False

    def _check_open(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        """Raise Forbidden if a request to a server without keys comes from another machine, a proxy or another site."""
        if not self._is_insecure:
            if self._is_proxied or is_proxied(scope, headers):
                raise Forbidden(f"behind a proxy this server needs an API key: {HOW_TO_MAKE_ONE}")
            if not (is_loopback(scope.get("client")) and _is_local_name(headers.get(b"host", b""))):
                raise Forbidden(f"without an API key this server answers only its own machine: {HOW_TO_MAKE_ONE}")
        self._check_site(scope, headers)

    def _check_site(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        if is_cross_site(_method(scope), headers, self._origins):
            raise Forbidden("a page of another site cannot use this server: name it in server.origins if it should")

    def _token(self, scope: Scope, headers: dict[bytes, bytes]) -> str:
        scheme, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        if scheme.lower() == "bearer":
            return token.strip()
        key = key_from_cookie(headers, root_of(scope))
        if key is None:
            return ""
        if not is_same_site(_method(scope), headers, self._origins):
            raise Forbidden("a page of another site cannot use the key of this one")
        return key


def _count_connection(caller: Caller, scope: Scope) -> None:
    """Count the connection of a request for its user. Raises TooManyConnections, but not for Stop and decisions.

    The connections of the user `local`, and of a key that may act for other users, have only the total limit.
    """
    connection: Connection | None = scope["state"].get("connection")
    if caller is ANONYMOUS or connection is None:
        return
    is_exempt = caller.has("on-behalf-of") or caller.user.user_id == LOCAL_OWNER
    owner = "" if is_exempt else caller.user.user_id
    table = connection.table
    if not table.authenticate(connection, owner, is_exempt=is_exempt) and not _is_signal(scope):
        detail = f"you have {table.limits.per_user} connections open, which is the limit: close some"
        raise TooManyConnections(detail, retry_after=RETRY_AFTER_SECONDS)


def _may_name_user_in_body(caller: Caller, scope: Scope) -> bool:
    if caller.is_named or not (caller.has("on-behalf-of") and caller.has("use")):
        return False
    return _method(scope) == "POST" and strip_root(scope["path"], root_of(scope)) in CHAT_PATHS


def _is_signal(scope: Scope) -> bool:
    """Whether a request stops a run or decides on an approval.

    The rate limit never refuses these requests for a live run, so the endpoint counts them (`ApiRequest.count_signal`).
    """
    return _method(scope) == "POST" and SIGNAL_PATH.fullmatch(strip_root(scope["path"], root_of(scope))) is not None


def _on_behalf_of(caller: Caller, headers: dict[bytes, bytes]) -> Caller:
    """Return the caller with the user that the headers name, if the scope `on-behalf-of` allows it.

    Otherwise return the caller unchanged. Raises BadRequest for an invalid user id.
    """
    user_id = _text(headers.get(b"x-limelight-user-id", b""))
    if not user_id or not caller.has("on-behalf-of"):
        return caller
    if mistake := user_id_error(user_id):
        raise BadRequest(mistake, path="X-Limelight-User-Id")
    caller.check_user(user_id, "X-Limelight-User-Id")
    name = _text(headers.get(b"x-limelight-user-name", b"")).strip()
    return Caller(User(user_id, name[:MAX_USER_ID]), caller.scopes, is_named=True)


def is_proxied(scope: Scope, headers: dict[bytes, bytes]) -> bool:
    """Whether a request comes through a proxy. The address of the connection is then the proxy's, not the client's.

    A proxy that adds no headers is not recognized, with one exception: nginx with default settings uses HTTP/1.0, which
    current browsers and clients do not.
    """
    return scope.get("http_version") == "1.0" or any(name in headers for name in PROXY_HEADERS)


def is_loopback(address: "tuple[str, int] | list[str | int] | None") -> bool:
    """Whether an address is this machine's. True without an address, as for a Unix socket or a test client."""
    if address is None or address[0] in ("", "testclient"):
        return True
    try:
        return ipaddress.ip_address(str(address[0]).partition("%")[0]).is_loopback
    except ValueError:
        return False


def _is_local_name(host: bytes) -> bool:
    """Whether a `Host` header names this machine. Other names may resolve to it too, by DNS rebinding."""
    name = host.decode("latin-1").strip().lower()
    name = name[1:].partition("]")[0] if name.startswith("[") else name.rpartition(":")[0] or name
    if name in ("", "localhost") or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _method(scope: Scope) -> str:
    """Return the HTTP method. A WebSocket handshake counts as an unsafe method, as commands on a socket change data."""
    return scope["method"] if scope["type"] == "http" else "CONNECT"


def _text(value: bytes) -> str:
    """Return the percent-decoded value of a header. Spaces around it are removed first, so encoded ones are kept."""
    return unquote(value.decode("latin-1").strip(" \t"))
