"""The root path: the path below which the server is reached, as a proxy or a host application sets it.

`scope["root_path"]` passes it on to routes, links and the page's cookie. A host application sets it; behind a proxy the
setting `server.root_path` does, whether or not the proxy strips the path.
"""

import re
from collections.abc import Iterable

from starlette.types import ASGIApp, Receive, Scope, Send

from limelight.config import Settings
from limelight.errors import SetupError

_SEGMENT = re.compile(r"[A-Za-z0-9._~-]+")
MAX_LENGTH = 200


def below(path: str, root: str) -> str:
    """The path relative to the root, or the path itself if it is not below it. "" is the root without its slash."""
    rest = path.removeprefix(root)
    return rest if not rest or rest.startswith("/") else path


def root_of(scope: Scope) -> str:
    """The prefix of every path of this server, without a slash at its end."""
    return scope.get("root_path", "").rstrip("/")


def root_path(settings: Settings, own_paths: Iterable[str]) -> str:
    """The setting in its normal form, `/limelight` or "".

    Raises SetupError if it is not a path, or if one of the server's own paths begins with it: behind a proxy that
    strips the root, the two would be ambiguous.
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
    """Turns request paths with or without the root into paths below the root.

    It changes the scope in place, so that the handler of unexpected errors, which is outside of all middleware, sees
    the root too.
    """

    def __init__(self, app: ASGIApp, root: str) -> None:
        self._app = app
        self._root = root

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket"):
            path = below(scope["path"], root_of(scope))
            scope["path"] = self._root + below(path, self._root)
            scope["root_path"] = self._root
        await self._app(scope, receive, send)
