"""Security headers, which are added to every response. Headers that a route sets itself are not changed."""

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
"""Content security policy of HTML documents with inline style. It allows neither scripts nor other resources."""
_RESPONSE_STARTS = ("http.response.start", "websocket.http.response.start")


class SecurityHeadersMiddleware:
    """Adds each of `HEADERS` to responses that do not have it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] in _RESPONSE_STARTS:
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_with_headers if scope["type"] in ("http", "websocket") else send)
