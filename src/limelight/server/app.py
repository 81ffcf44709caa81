"""Creates the ASGI application from its settings: store, dialects, agents, routes and middleware.

`create_app` returns an application for any ASGI server; it can also be mounted into another application. Apart from the
entry points of the package, this is the only module that chooses concrete components.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import lru_cache, partial
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
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
from limelight.runs.agent_registry import Agent, Agents
from limelight.server.api_docs_page import docs_page
from limelight.server.auth.authenticator import ANONYMOUS, Caller
from limelight.server.auth.middleware import AuthMiddleware
from limelight.server.endpoint import ApiRequest, Endpoint, to_response
from limelight.server.middleware.cors import cors
from limelight.server.middleware.root_path import RootPathMiddleware, root_of, root_path
from limelight.server.middleware.security_headers import DOCUMENT_POLICY, SecurityHeadersMiddleware
from limelight.server.openapi import openapi
from limelight.server.problem_details import (
    on_http_exception,
    on_limelight_error,
    on_unexpected_error,
    path_ids,
    send_problem,
)
from limelight.server.routes import ENDPOINTS
from limelight.server.runtime import Runtime
from limelight.server.v2.asyncapi import PATH as SOCKET_PATH
from limelight.server.v2.asyncapi import SUMMARY as SOCKET_SUMMARY
from limelight.server.v2.asyncapi import asyncapi
from limelight.server.v2.socket import SessionSocket
from limelight.server.web_page import Page
from limelight.stores.base import Store


def create_app(settings: Settings | None = None, agents: Iterable[Agent] | None = None) -> Starlette:
    """Return a new application.

    By default, the settings come from the environment and config.toml, and the agents from the settings.
    """
    settings = settings or load_settings()
    on_offer = Agents(agents if agents is not None else resolve_agents(settings).agents)
    dialects = plugins.find("dialects")
    _check_format(settings, dialects)
    runtime = Runtime(settings, on_offer, make_store(settings), dialects)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        await runtime.start()
        yield
        await runtime.stop()

    endpoints = [_route(endpoint, runtime) for endpoint in ENDPOINTS]
    page, documents = Page().routes(), _document_routes()
    root = root_path(settings, [SOCKET_PATH, *(route.path for route in (*endpoints, *documents, *page))])
    app = Starlette(
        routes=[*endpoints, *_socket_routes(runtime), *page, *documents],
        lifespan=lifespan,
        middleware=_middleware(runtime, root),
        exception_handlers={
            LimelightError: on_limelight_error,
            HTTPException: on_http_exception,
            Exception: on_unexpected_error,
        },
    )
    app.state.runtime = runtime
    app.state.root = root
    return app


def _middleware(runtime: Runtime, root: str) -> list[Middleware]:
    """Return the middleware in the order in which requests pass it. Raises SetupError if an origin is invalid."""
    return [
        *([Middleware(RootPathMiddleware, root=root)] if root else ()),
        Middleware(SecurityHeadersMiddleware),
        *cors(runtime.settings, runtime.throttle),
        Middleware(AuthMiddleware, runtime=runtime, is_proxied=bool(root)),
        Middleware(StartupMiddleware, runtime=runtime),
    ]


def _check_format(settings: Settings, dialects: Mapping[str, object]) -> None:
    name = settings.server.default_format
    if name not in dialects:
        place = settings.origin.place("server", "default_format")
        raise SetupError(f"{place}there is no format {name!r} for server.default_format{suggestion(name, dialects)}")


def make_store(settings: Settings) -> Store:
    scheme = settings.store.url.partition(":")[0].partition("?")[0]
    store: type[Store] = plugins.get("stores", scheme)
    return store.from_url(settings.store.url, Path(settings.store.data))


class StartupMiddleware:
    """Starts the runtime with the first request, because a mounted application gets no lifespan events."""

    def __init__(self, app: ASGIApp, runtime: Runtime) -> None:
        self._app = app
        self._runtime = runtime

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket") and not self._runtime.started:
            try:
                await self._runtime.start()
            except LimelightError as error:
                self._runtime.metrics.count_refusal(error)
                is_anonymous = scope["state"]["caller"] is ANONYMOUS
                # A client without a key gets only the title of the error.
                await send_problem(type(error)() if is_anonymous else error, scope, receive, send)
                return
        await self._app(scope, receive, send)


def _route(endpoint: Endpoint, runtime: Runtime) -> Route:
    async def respond(http: Request) -> Response:
        request = ApiRequest(http, runtime)
        if endpoint.scope is not None and not endpoint.public:
            request.caller.require(endpoint.scope)
        try:
            with bind_log_fields(path_ids(http.scope)):
                return await _response(endpoint, request)  # pyright: ignore[reportReturnType]
        except LimelightError:
            await request.count(request.user.user_id)  # for a handler that failed before it counted
            raise
        finally:
            request.reservation.release()

    return Route(endpoint.path, respond, methods=[endpoint.method], name=endpoint.summary)


async def _response(endpoint: Endpoint, request: ApiRequest) -> ASGIApp:
    if not endpoint.is_large:
        return to_response(await endpoint.handler(request), endpoint.status)
    budget, owner = request.runtime.response_budget, request.user.user_id
    async with budget.one_at_a_time(owner):
        response = to_response(await endpoint.handler(request), endpoint.status)
    return budget.count_if_large(owner, response) if isinstance(response, Response) else response


def _socket_routes(runtime: Runtime) -> list[WebSocketRoute]:
    async def serve(websocket: WebSocket) -> None:
        caller: Caller = websocket.state.caller
        try:
            caller.require("use")
        except LimelightError as error:
            await send_problem(error, websocket.scope, websocket.receive, websocket.send)
        else:
            with bind_log_fields(path_ids(websocket.scope)):
                await SessionSocket(websocket, runtime).serve()

    async def refuse(websocket: WebSocket) -> None:
        error = NotFound(f"there is no socket at {websocket.url.path}")
        await send_problem(error, websocket.scope, websocket.receive, websocket.send)

    return [WebSocketRoute(SOCKET_PATH, serve, name=SOCKET_SUMMARY), WebSocketRoute("/{path:path}", refuse)]


def _document_routes() -> list[Route]:
    """Return the routes of the API documentation: an HTML page, OpenAPI and AsyncAPI."""
    csp = {"content-security-policy": DOCUMENT_POLICY}
    return [
        Route("/docs", _document_handler(partial(docs_page, ENDPOINTS), "text/html", csp)),
        Route("/openapi.json", _document_handler(partial(openapi, ENDPOINTS), "application/json")),
        Route("/api/v2/asyncapi.json", _document_handler(asyncapi, "application/json")),
    ]


def _document_handler(
    make_document: Callable[[str], bytes | str], media_type: str, headers: Mapping[str, str] | None = None
) -> Callable[[Request], Awaitable[Response]]:
    """Return a handler that serves a document. The document contains paths, so it is cached per root path."""
    cached = lru_cache(maxsize=2)(make_document)

    async def respond(request: Request) -> Response:
        return Response(cached(root_of(request.scope)), media_type=media_type, headers=headers)

    return respond
