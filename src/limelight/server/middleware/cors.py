"""CORS: pages of the origins in `server.origins` may use the server.

A preflight request needs no key, so the throttle for requests without a user limits the rate of preflights.
"""

import re
from typing import Any

from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from limelight.config import Settings
from limelight.errors import SetupError
from limelight.server.rate_limit import Throttle, client_of, is_gone

ORIGIN = re.compile(r"https?://[A-Za-z0-9.\-\[\]:]+")
METHODS = ("GET", "POST", "PATCH", "DELETE")
REQUEST_HEADERS = (
    "authorization",
    "content-type",
    "last-event-id",
    "traceparent",
    "x-limelight-user-id",
    "x-limelight-user-name",
)
RESPONSE_HEADERS = ("x-run-id", "x-session-id")


class ThrottledCORSMiddleware(CORSMiddleware):
    """CORS middleware that answers preflight requests at a limited rate, as all requests without a user."""

    def __init__(self, app: ASGIApp, throttle: Throttle, **options: Any) -> None:
        super().__init__(app, **options)
        self._throttle = throttle

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if _is_preflight(scope) and not await self._throttle.wait(client_of(scope), is_gone=lambda: is_gone(scope)):
            return
        await super().__call__(scope, receive, send)


def _is_preflight(scope: Scope) -> bool:
    names = (b"origin", b"access-control-request-method")
    if scope["type"] != "http" or scope["method"] != "OPTIONS":
        return False
    return all(name in dict[bytes, bytes](scope["headers"]) for name in names)


def cors(settings: Settings, throttle: Throttle) -> list[Middleware]:
    """Return the middleware, if the settings name origins. Raises SetupError if an origin is invalid."""
    origins = settings.server.origins
    for origin in origins:
        if not ORIGIN.fullmatch(origin):
            place = settings.origin.place("server", "origins")
            raise SetupError(
                f"{place}server.origins: {origin!r} is not an origin; write it as https://app.example:8443"
            )
    middleware = Middleware(
        ThrottledCORSMiddleware,
        throttle=throttle,
        allow_origins=origins,
        allow_methods=METHODS,
        allow_headers=REQUEST_HEADERS,
        expose_headers=RESPONSE_HEADERS,
    )
    return [middleware] if origins else []
