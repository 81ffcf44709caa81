"""Where the server is for those who ask: below the path that a proxy or a host application gives it, or at the root.

`scope["root_path"]` says so to everything that comes behind: routes, links, the page's cookie. A host application sets
it by itself; behind a proxy `server.root_path` does. Whether the proxy takes that path off does not matter.
"""

import re
from collections.abc import Iterable

from starlette.types import ASGIApp, Receive, Scope, Send

from limelight.config import Settings
from limelight.errors import SetupError

_WORD = re.compile(r"[A-Za-z0-9._~-]+")
MAX_LENGTH = 200


def below(path: str, root: str) -> str:
    """The path as it is below the root; as it is if it is not there. "" is the root itself without its slash."""
    rest = path.removeprefix(root)
    return rest if not rest or rest.startswith("/") else path


def root_of(scope: Scope) -> str:
    """What stands before every path of this server, without a slash at its end."""
    return scope.get("root_path", "").rstrip("/")


def root_path(settings: Settings, own: Iterable[str]) -> str:
    """The setting in its one form, `/limelight`, or "". `own` are the paths of our routes, none of which may begin so:
    behind a proxy that takes the root off nobody could tell which of the two is meant."""
    words = [word for word in settings.server.root_path.strip().split("/") if word]
    root = "".join(f"/{word}" for word in words)
    place = settings.origin.place("server", "root_path")
    if len(root) > MAX_LENGTH or any(not _WORD.fullmatch(word) or word in (".", "..") for word in words):
        given = settings.server.root_path[:MAX_LENGTH]
        raise SetupError(
            f"{place}server.root_path: {given!r} is no path of A-Z a-z 0-9 . _ ~ -; write it as /limelight"
        )
    if words and (taken := next((path for path in own if _begins_with(path, words)), None)):
        raise SetupError(f"{place}server.root_path: {root} is where the server has {taken} itself; choose another")
    return root


def _begins_with(path: str, words: list[str]) -> bool:
    parts = path.strip("/").split("/")
    pairs = zip(parts, words, strict=False)
    return len(parts) >= len(words) and all(part == word or part.startswith("{") for part, word in pairs)


class Prefix:
    """ASGI middleware: what the proxy asks for, with the root or without it, becomes a path below the root.

    It changes the scope itself, so that what stands outside of all middleware sees it too: the answer to a crash.
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
