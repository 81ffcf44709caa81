"""Who is asking. Comes before routing and validation, so that a stranger learns nothing.

With an API key set, every route needs it as a bearer token, but for the probes and the files of the page, which hold
no secret: the page asks for the key. Without a key the server is open, and therefore answers nobody but this machine.
"""

import hmac
import ipaddress
from urllib.parse import unquote

from starlette.types import ASGIApp, Receive, Scope, Send

from limelight.errors import BadRequest, Forbidden, LimelightError, Unauthorized
from limelight.server.page import is_of_the_page
from limelight.server.problems import refuse
from limelight.sources.base import User
from limelight.stores.base import LOCAL_OWNER

PROBES = frozenset({"/health", "/ready", "/api/v2/health"})
MAX_USER_ID = 256


class Guard:
    """ASGI middleware: lets a request through with `scope["state"]["user"]` set, or refuses it."""

    def __init__(self, app: ASGIApp, api_key: str) -> None:
        self._app = app
        self._key = api_key.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket"):
            headers = dict[bytes, bytes](scope["headers"])
            try:
                path = scope["path"].removeprefix(scope.get("root_path", ""))
                if path not in PROBES:
                    self._check(scope, headers, needs_key=scope["type"] == "websocket" or not is_of_the_page(path))
                scope.setdefault("state", {})["user"] = self._user(headers)
            except LimelightError as error:
                await refuse(error, scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _check(self, scope: Scope, headers: dict[bytes, bytes], *, needs_key: bool) -> None:
        if not self._key:
            if not is_loopback(scope.get("client")) or not _is_local_name(headers.get(b"host", b"")):
                raise Forbidden("without an API key this server answers only its own machine: set LIMELIGHT_API_KEY")
            if scope["type"] == "websocket" and not _is_local_origin(headers.get(b"origin")):
                raise Forbidden("without an API key a page of another site cannot open a socket here")
            return
        if not needs_key:
            return
        scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() != b"bearer" or not hmac.compare_digest(token.strip(), self._key):
            raise Unauthorized("send the API key as `Authorization: Bearer …`")

    def _user(self, headers: dict[bytes, bytes]) -> User:
        """The key may speak for others; without a key everybody is the local user."""
        user_id = _text(headers.get(b"x-limelight-user-id", b"")) if self._key else ""
        name = _text(headers.get(b"x-limelight-user-name", b"")) if user_id else ""
        if len(user_id) > MAX_USER_ID:  # cutting it could make two users one
            raise BadRequest(f"a user id has at most {MAX_USER_ID} characters", path="X-Limelight-User-Id")
        return User(user_id or LOCAL_OWNER, name[:MAX_USER_ID])


def is_loopback(address: "tuple[str, int] | list[str | int] | None") -> bool:
    """True for this machine, and for what has no address at all (a Unix socket, a test client)."""
    if address is None:
        return True
    try:
        return ipaddress.ip_address(str(address[0]).partition("%")[0]).is_loopback
    except ValueError:
        return True


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


def _is_local_origin(origin: bytes | None) -> bool:
    """Browsers let any page open a socket to any place, and say which page it is. Other clients say nothing."""
    host = (origin or b"").partition(b"://")[2]
    return origin is None or (bool(host) and _is_local_name(host))


def _text(value: bytes) -> str:
    return unquote(value.decode("latin-1")).strip()
