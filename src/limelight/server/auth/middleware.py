"""Who is asking. Comes before routing and validation, so that a stranger learns nothing.

Once there is a key, or somebody who issues tokens, every route needs one as a bearer token or in the page's cookie, but
for the probes, the files of the page, which hold no secret, and the route where the page hands in its key. Without a
key the server is open, and therefore answers nobody but this machine, unless somebody insisted.
"""

import ipaddress
import re
from collections.abc import Callable
from urllib.parse import unquote

from starlette.types import ASGIApp, Receive, Scope, Send

from limelight.auth.identity import MAX_USER_ID, user_id_error
from limelight.errors import BadRequest, Forbidden, LimelightError, Unauthorized
from limelight.server.auth.authenticator import LOCAL, NOBODY, Caller, Gate
from limelight.server.auth.cookies import is_foreign_page, is_own_site, key_in
from limelight.server.middleware.root_path import below, root_of
from limelight.server.page import is_of_the_page
from limelight.server.problems import refuse
from limelight.server.rate_limit import Rates
from limelight.server.throttle import Throttle, client_of, is_gone
from limelight.sources.base import User

PROBES = frozenset({"/health", "/ready", "/api/v2/health"})
DOORS = frozenset({"/auth/login", "/auth/logout"})
"""Where somebody without a key can hand one in."""
NAMING = frozenset({"/chat", "/chat/stream"})
"""Where a body may say for whom the request is."""
SIGNALS = re.compile(r"/runs/[^/]+/(cancel|approvals/[^/]+)")
"""Stop, and answers to approvals. The endpoint counts them, because those for a live run are never refused for rate."""
FORWARDED = (b"forwarded", b"via", b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-proto", b"x-real-ip")
"""What proxies add to what they pass on. Nobody gains by sending one of them."""
HOW_TO_MAKE_ONE = "make one with `limelight keys create`"


class Guard:
    """ASGI middleware: lets a request through with `scope["state"]["caller"]` set, or refuses it."""

    def __init__(
        self,
        app: ASGIApp,
        gate: Gate,
        rates: Rates,
        *,
        refused: Callable[[LimelightError], None],
        insecure: bool = False,
        proxied: bool = False,
        origins: tuple[str, ...] = (),
    ) -> None:
        """`proxied`: the settings say that a proxy is in front."""
        self._app = app
        self._gate = gate
        self._rates = rates
        self._refused = refused
        self._insecure = insecure
        self._proxied = proxied
        self._origins = origins
        self._throttle = Throttle()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket"):
            try:
                headers = dict[bytes, bytes](scope["headers"])
                caller = scope.setdefault("state", {})["caller"] = await self._caller(scope, headers)
                if caller is NOBODY and not await self._turn(scope):
                    return
                await self._count(scope)
                scope["state"]["still_holds"] = lambda: self._still_holds(scope, headers)
            except LimelightError as error:
                self._refused(error)
                if await self._turn(scope, is_refusal=True):
                    await refuse(error, scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _turn(self, scope: Scope, *, is_refusal: bool = False) -> bool:
        """Wait until this may be answered though no user pays for it. False if the client has left."""
        return await self._throttle.wait(client_of(scope), is_refusal=is_refusal, is_gone=lambda: is_gone(scope))

    async def _count(self, scope: Scope) -> None:
        """Count a request of the caller. The endpoint does so if the body may name the user, and for signals."""
        caller: Caller = scope["state"]["caller"]
        scope["state"]["is_counted"] = not (_may_be_named_in_the_body(caller, scope) or _is_signal(scope))
        if caller is not NOBODY and scope["state"]["is_counted"]:
            await self._rates.count(caller.user.user_id)

    async def _caller(self, scope: Scope, headers: dict[bytes, bytes]) -> Caller:
        path = below(scope["path"], root_of(scope))
        if path in PROBES:
            return NOBODY
        if self._gate.is_open:
            self._check_open(scope, headers)
            return LOCAL
        if scope["type"] == "http" and (is_of_the_page(path) or path in DOORS):
            return NOBODY
        caller = await self._gate.caller(self._token(scope, headers))
        if caller is None:
            raise Unauthorized("send an API key as `Authorization: Bearer …`")
        if scope["type"] == "websocket":  # there is no CORS for these: whoever has a key may still be on a strange page
            self._check_page(scope, headers)
        return _for_others(caller, headers)

    async def _still_holds(self, scope: Scope, headers: dict[bytes, bytes]) -> bool:
        """Whether what let somebody in lets them in now: a socket is open for long, and keys come and go."""
        try:
            return await self._caller(scope, headers) == scope["state"]["caller"]
        except LimelightError:
            return False

    def _check_open(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        """A server without a key: for this machine, or for all if somebody insisted, but no page of another site."""
        if not self._insecure:
            if self._proxied or came_through_a_proxy(scope, headers):
                raise Forbidden(f"behind a proxy this server needs an API key: {HOW_TO_MAKE_ONE}")
            if not (is_loopback(scope.get("client")) and _is_local_name(headers.get(b"host", b""))):
                raise Forbidden(f"without an API key this server answers only its own machine: {HOW_TO_MAKE_ONE}")
        self._check_page(scope, headers)

    def _check_page(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        if is_foreign_page(_method(scope), headers, self._origins):
            raise Forbidden("a page of another site cannot use this server: name it in server.origins if it should")

    def _token(self, scope: Scope, headers: dict[bytes, bytes]) -> str:
        scheme, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        if scheme.lower() == "bearer":
            return token.strip()
        kept = key_in(headers, root_of(scope))
        if kept is None:
            return ""
        if not is_own_site(_method(scope), headers, self._origins):
            raise Forbidden("a page of another site cannot use the key of this one")
        return kept


def _may_be_named_in_the_body(caller: Caller, scope: Scope) -> bool:
    if caller.is_named or not (caller.may("on-behalf-of") and caller.may("use")):
        return False
    return _method(scope) == "POST" and below(scope["path"], root_of(scope)) in NAMING


def _is_signal(scope: Scope) -> bool:
    return _method(scope) == "POST" and SIGNALS.fullmatch(below(scope["path"], root_of(scope))) is not None


def _for_others(caller: Caller, headers: dict[bytes, bytes]) -> Caller:
    """A key that may do so speaks for whom its request names."""
    user_id = _text(headers.get(b"x-limelight-user-id", b""))
    if not user_id or not caller.may("on-behalf-of"):
        return caller
    if wrong := user_id_error(user_id):
        raise BadRequest(wrong, path="X-Limelight-User-Id")
    caller.check_names(user_id, "X-Limelight-User-Id")
    name = _text(headers.get(b"x-limelight-user-name", b""))
    return Caller(User(user_id, name[:MAX_USER_ID]), caller.scopes, is_named=True)


def came_through_a_proxy(scope: Scope, headers: dict[bytes, bytes]) -> bool:
    """Whether somebody passed this on, for whom ever: the address of a proxy on this machine says nothing.

    A proxy that tells nothing cannot be seen, but for nginx as it is without settings: it speaks HTTP/1.0, which no
    browser and no client of today does, and names this machine in `Host`.
    """
    return scope.get("http_version") == "1.0" or any(name in headers for name in FORWARDED)


def is_loopback(address: "tuple[str, int] | list[str | int] | None") -> bool:
    """True for this machine, and for what has no address at all (a Unix socket, a test client)."""
    if address is None or address[0] in ("", "testclient"):
        return True
    try:
        return ipaddress.ip_address(str(address[0]).partition("%")[0]).is_loopback
    except ValueError:
        return False


def _is_local_name(host: bytes) -> bool:
    """A page on the web can make a browser send requests here, under the page's own name: that name is not ours."""
    name = host.decode("latin-1").strip().lower()
    name = name[1:].partition("]")[0] if name.startswith("[") else name.rpartition(":")[0] or name
    if name in ("", "localhost") or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _method(scope: Scope) -> str:
    """A handshake is a GET, but a socket is no mere reading."""
    return scope["method"] if scope["type"] == "http" else "CONNECT"


def _text(value: bytes) -> str:
    return unquote(value.decode("latin-1")).strip()
