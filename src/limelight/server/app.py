"""Puts a server together. The only place, beside the entry points, that knows which parts there are.

`create_app` gives an ASGI application for any ASGI server; it can be mounted into another application too.
"""

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import lru_cache, partial
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from limelight import plugins
from limelight.agents.resolve import resolve_agents
from limelight.config import Settings, load_settings
from limelight.config.validation import suggestion
from limelight.errors import LimelightError, NotFound, SetupError
from limelight.log_context import bind_log_fields
from limelight.runs.agents import Agent, Agents
from limelight.server.auth.authenticator import NOBODY, Caller
from limelight.server.auth.middleware import Guard
from limelight.server.docs_page import docs_page
from limelight.server.endpoint import Call, Endpoint, reply_with
from limelight.server.middleware.root_path import Prefix, root_of, root_path
from limelight.server.middleware.security_headers import DOCUMENT_POLICY, Safety
from limelight.server.openapi import openapi
from limelight.server.page import Page
from limelight.server.problems import named_in, on_crash, on_http_exception, on_limelight_error, refuse
from limelight.server.routes import ENDPOINTS
from limelight.server.runtime import Parts
from limelight.server.v2.asyncapi import asyncapi
from limelight.server.v2.socket import SessionSocket
from limelight.server.v2.spec import PATH as SOCKET_PATH
from limelight.server.v2.spec import SUMMARY as SOCKET_SUMMARY
from limelight.stores.base import Store

ORIGIN = re.compile(r"https?://[A-Za-z0-9.\-\[\]:]+")
METHODS = ("GET", "POST", "PATCH", "DELETE")
SENT = ("authorization", "content-type", "last-event-id", "traceparent", "x-limelight-user-id", "x-limelight-user-name")
TOLD = ("x-run-id", "x-session-id")
"""What pages of other sites may send and read, besides what all may."""


def create_app(settings: Settings | None = None, agents: Iterable[Agent] | None = None) -> Starlette:
    """The application. Without arguments: settings from environment and config.toml, agents as these say."""
    settings = settings or load_settings()
    on_offer = Agents(agents if agents is not None else resolve_agents(settings).agents)
    dialects = plugins.find("dialects")
    _check_format(settings, dialects)
    parts = Parts(settings, on_offer, make_store(settings), dialects)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        await parts.start()
        yield
        await parts.stop()

    endpoints = [_route(endpoint, parts) for endpoint in ENDPOINTS]
    page, documents = Page().routes(), _documents()
    root = root_path(settings, [SOCKET_PATH, *(route.path for route in (*endpoints, *documents, *page))])
    app = Starlette(
        routes=[*endpoints, *_sockets(parts), *page, *documents],
        lifespan=lifespan,
        middleware=[*([Middleware(Prefix, root=root)] if root else ()), *_middleware(settings, parts, root)],
        exception_handlers={
            LimelightError: on_limelight_error,
            HTTPException: on_http_exception,
            Exception: on_crash,
        },
    )
    app.state.parts = parts
    app.state.root = root
    return app


def _middleware(settings: Settings, parts: Parts, root: str) -> list[Middleware]:
    """From the outside in. Other sites' pages are let in only if the settings name them."""
    origins = settings.server.origins
    for origin in origins:
        if not ORIGIN.fullmatch(origin):
            place = settings.origin.place("server", "origins")
            raise SetupError(f"{place}server.origins: {origin!r} is no origin; write it as https://app.example:8443")
    guard = Middleware(
        Guard,
        gate=parts.gate,
        rates=parts.rates,
        refused=parts.metrics.refused,
        insecure=settings.auth.insecure_no_auth,
        proxied=bool(root),
        origins=tuple(origins),
    )
    sharing = Middleware(
        CORSMiddleware, allow_origins=origins, allow_methods=METHODS, allow_headers=SENT, expose_headers=TOLD
    )
    return [Middleware(Safety), *([sharing] if origins else ()), guard, Middleware(Started, parts=parts)]


def _check_format(settings: Settings, dialects: Mapping[str, object]) -> None:
    wanted = settings.server.default_format
    if wanted not in dialects:
        place = settings.origin.place("server", "default_format")
        raise SetupError(
            f"{place}there is no format {wanted!r} for server.default_format{suggestion(wanted, dialects)}"
        )


def make_store(settings: Settings) -> Store:
    scheme = settings.store.url.partition(":")[0].partition("?")[0]
    store: type[Store] = plugins.get("stores", scheme)
    return store.from_url(settings.store.url, Path(settings.store.data))


class Started:
    """Starts the parts with the first request if nobody did before: a mounted application gets no lifespan events."""

    def __init__(self, app: ASGIApp, parts: Parts) -> None:
        self._app = app
        self._parts = parts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket") and not self._parts.started:
            try:
                await self._parts.start()
            except LimelightError as error:
                self._parts.metrics.refused(error)
                is_known = scope["state"]["caller"] is not NOBODY
                await refuse(error if is_known else type(error)(), scope, receive, send)  # strangers get its title only
                return
        await self._app(scope, receive, send)


def _route(endpoint: Endpoint, parts: Parts) -> Route:
    async def respond(request: Request) -> Response:
        call = Call(request, parts)
        if endpoint.scope is not None and not endpoint.public:
            call.caller.needs(endpoint.scope)
        try:
            with bind_log_fields(named_in(request.scope)):
                value = await endpoint.call(call)
        except LimelightError:
            await call.count(call.user.user_id)  # it could not even be seen whose request it is
            raise
        finally:
            call.load.release()
        return reply_with(value, endpoint.status)  # pyright: ignore[reportReturnType]

    return Route(endpoint.path, respond, methods=[endpoint.method], name=endpoint.summary)


def _sockets(parts: Parts) -> list[WebSocketRoute]:
    async def serve(websocket: WebSocket) -> None:
        caller: Caller = websocket.state.caller
        try:
            caller.needs("use")
        except LimelightError as error:
            await refuse(error, websocket.scope, websocket.receive, websocket.send)
        else:
            with bind_log_fields(named_in(websocket.scope)):
                await SessionSocket(websocket, parts).serve()

    async def refuse_others(websocket: WebSocket) -> None:
        error = NotFound(f"there is no socket at {websocket.url.path}")
        await refuse(error, websocket.scope, websocket.receive, websocket.send)

    return [WebSocketRoute(SOCKET_PATH, serve, name=SOCKET_SUMMARY), WebSocketRoute("/{path:path}", refuse_others)]


def _documents() -> list[Route]:
    """The description of the interface, for machines and for people. All work without the internet."""
    return [
        Route(
            "/docs", _shown(partial(docs_page, ENDPOINTS), "text/html", {"content-security-policy": DOCUMENT_POLICY})
        ),
        Route("/openapi.json", _shown(partial(openapi, ENDPOINTS), "application/json")),
        Route("/api/v2/asyncapi.json", _shown(asyncapi, "application/json")),
    ]


def _shown(
    document: Callable[[str], bytes | str], media_type: str, headers: Mapping[str, str] | None = None
) -> Callable[[Request], Awaitable[Response]]:
    """A document that names paths: made once for the root below which somebody asks for it."""
    made = lru_cache(maxsize=2)(document)

    async def show(request: Request) -> Response:
        return Response(made(root_of(request.scope)), media_type=media_type, headers=headers)

    return show
