"""Headers that make a browser careful with every answer: what it shows, keeps and lets other pages do with it.

A route that knows better, as the page does, says so itself, and that stands.
"""

from collections.abc import Mapping

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS: Mapping[str, str] = {
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-site",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
DOCUMENT_POLICY = HEADERS["content-security-policy"].replace(";", "; style-src 'unsafe-inline';", 1)
"""For pages that are one file: they bring their style along, and load and run nothing."""
_STARTS = ("http.response.start", "websocket.http.response.start")


class Safety:
    """ASGI middleware: adds what an answer does not say itself."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_safely(message: Message) -> None:
            if message["type"] in _STARTS:
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_safely if scope["type"] in ("http", "websocket") else send)
