"""The root path: the path prefix of all URLs of the server, behind a proxy or inside a host application.

Routes, links and the page's cookie read it from `scope["root_path"]`. A host application sets that value itself. Behind
a proxy the middleware sets it from the setting `server.root_path`, whether or not the proxy strips the prefix.
"""

import re
from collections.abc import Iterable

from starlette.types import ASGIApp, Receive, Scope, Send

from limelight.config import Settings
from limelight.errors import SetupError

_SEGMENT = re.compile(r"[A-Za-z0-9._~-]+")
MAX_LENGTH = 200


def strip_root(path: str, root: str) -> str:
    """Remove the root path from the beginning of a path. A path that does not begin with it is returned unchanged."""
    rest = path.removeprefix(root)
    return rest if not rest or rest.startswith("/") else path


def root_of(scope: Scope) -> str:
    """Return the root path of a request, without a trailing slash."""
    return scope.get("root_path", "").rstrip("/")


def root_path(settings: Settings, own_paths: Iterable[str]) -> str:
    """Return the setting `server.root_path` in normal form, such as `/limelight` or "".

    Raises SetupError if it is not a valid path, or if one of the server's own paths begins with it. Behind a proxy that
    strips the root path, such a path would be ambiguous.
    """
    segments = [segment for segment in settings.server.root_path.strip().split("/") if segment]
    root = "".join(f"/{segment}" for segment in segments)
    place = settings.origin.place("server", "root_path")
    if len(root) > MAX_LENGTH or any(not _SEGMENT.fullmatch(s) or s in (".", "..") for s in segments):
        given = settings.server.root_path[:MAX_LENGTH]
        raise SetupError(
            f"{place}server.root_path: {given!r} is not a path of A-Z a-z 0-9 . _ ~ -; write it as /limelight"
        )
    if segments and (taken := next((path for path in own_paths if _begins_with(path, segments)), None)):
        raise SetupError(f"{place}server.root_path: {root} is where the server has {taken} itself; choose another")
    return root


def _begins_with(path: str, segments: list[str]) -> bool:
    own = path.strip("/").split("/")
    pairs = zip(own, segments, strict=False)
    return len(own) >= len(segments) and all(mine == other or mine.startswith("{") for mine, other in pairs)


class RootPathMiddleware:
    """Sets the root path of each request, and adds it to the request path if a proxy has stripped it.

    It changes the scope in place, because the handler of unexpected errors runs outside of all middleware and needs the
    root path too.
    """

    def __init__(self, app: ASGIApp, root: str) -> None:
        self._app = app
        self._root = root

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket"):
            path = strip_root(scope["path"], root_of(scope))
            scope["path"] = self._root + strip_root(path, self._root)
            scope["root_path"] = self._root
        await self._app(scope, receive, send)
