"""The understudy's HTTP server: `/v1/chat/completions` and `/v1/models` on a loopback port, protected by a key.

Replies come from scripts or from the improviser. `limelight understudy` runs the server in a process; servers whose
agents have no real model, and tests, run it in their own event loop.
"""

import asyncio
import errno
import json
import secrets
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Self

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from limelight.errors import BadRequest, SetupError
from limelight.understudy.improviser import improvise
from limelight.understudy.openai_chunks import CREATED, completion, error_body, first_chunk, last_chunks, piece_chunk
from limelight.understudy.replies import DisconnectPiece, ErrorPiece, Reply, with_pace
from limelight.understudy.requests import ChatRequest, read_request
from limelight.understudy.scripts import Script, play

HOST = "127.0.0.1"
MODEL = "understudy"
GRACE_SECONDS = 1
LARGE_BODY_BYTES = 64 * 1024
"""Larger requests are answered in a thread, as the event loop may be that of a Limelight server."""
CLOSE_CONNECTION = "limelight.close_connection"
"""Key of the scope entry that holds the function which closes the connection of a request."""


def create_app(scripts: Sequence[Script], key: str, pace: float = 0) -> Starlette:
    """The ASGI application. Without scripts it improvises, with `pace` seconds between two words."""

    def answer(request: ChatRequest) -> Reply:
        return play(scripts, request) if scripts else with_pace(improvise(request), pace)

    async def models(http: HttpRequest) -> Response:
        _check_key(http, key)
        model = {"id": MODEL, "object": "model", "created": CREATED, "owned_by": "limelight"}
        return JSONResponse({"object": "list", "data": [model]})

    async def completions(http: HttpRequest) -> Response:
        _check_key(http, key)
        body = await http.body()
        if len(body) < LARGE_BODY_BYTES:
            request = read_request(body)
            return respond(answer(request), request)
        request = await asyncio.to_thread(read_request, body)
        return respond(await asyncio.to_thread(answer, request), request)

    async def refuse(_: HttpRequest, error: Exception) -> Response:
        if isinstance(error, BadRequest):
            return JSONResponse(error_body(error.detail, "invalid_request_error"), 400)
        assert isinstance(error, HTTPException)
        type_ = "authentication_error" if error.status_code == 401 else "invalid_request_error"
        code = "invalid_api_key" if error.status_code == 401 else None
        return JSONResponse(error_body(error.detail, type_, code), error.status_code)

    return Starlette(
        routes=[Route("/v1/models", models), Route("/v1/chat/completions", completions, methods=["POST"])],
        exception_handlers={BadRequest: refuse, HTTPException: refuse},
    )


def _check_key(http: HttpRequest, key: str) -> None:
    scheme, _, given = http.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not secrets.compare_digest(given.strip().encode(), key.encode()):
        raise HTTPException(401, "the understudy does not know this API key: use the one that it said when it started")


def respond(reply: Reply, request: ChatRequest) -> Response:
    """The HTTP response of a reply: an error, a stream or one JSON object."""
    error = reply.leading_error
    if error is None and not request.stream:
        error = next((piece for piece in reply.pieces if isinstance(piece, ErrorPiece)), None)
    if error is not None:
        return JSONResponse(error_body(error.message, error.type, error.code), error.status)
    return EventStreamResponse(reply, request) if request.stream else CompletionResponse(reply, request)


class EventStreamResponse(Response):
    """Server-sent events, each sent after its delay; a disconnect piece closes the connection."""

    media_type = "text/event-stream"

    def __init__(self, reply: Reply, request: ChatRequest) -> None:
        self._reply = reply
        self._request = request
        self.status_code = 200
        self.background = None
        self.init_headers({"cache-control": "no-cache"})
        del self.headers["content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        async with disconnect_task(receive) as disconnected:
            async for payload in self._payloads(disconnected):
                if payload is None:
                    await close_connection(scope, disconnected)
                    return
                await send({"type": "http.response.body", "body": b"data: " + payload + b"\n\n", "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _payloads(self, disconnected: "asyncio.Task[None]") -> AsyncIterator[bytes | None]:
        """The data of the events, until the client disconnects; None means that the server has to disconnect."""
        yield _json(first_chunk(self._request))
        for piece in self._reply.pieces:
            if piece.delay:
                await asyncio.wait({disconnected}, timeout=piece.delay)
            if disconnected.done():
                return
            chunk = piece_chunk(piece, self._request)
            yield None if chunk is None else _json(chunk)
            if isinstance(piece, ErrorPiece):
                return
        for chunk in last_chunks(self._reply, self._request):
            yield _json(chunk)
        yield b"[DONE]"


class CompletionResponse(Response):
    """One JSON object, sent after the sum of all delays; a disconnect piece closes the connection half-way."""

    media_type = "application/json"

    def __init__(self, reply: Reply, request: ChatRequest) -> None:
        super().__init__(_json(completion(reply, request)))
        self._reply = reply

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with disconnect_task(receive) as disconnected:
            if delay := sum(piece.delay for piece in self._reply.pieces):
                await asyncio.wait({disconnected}, timeout=delay)
            if any(isinstance(piece, DisconnectPiece) for piece in self._reply.pieces):
                await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
                half = bytes(self.body[: len(self.body) // 2])
                await send({"type": "http.response.body", "body": half, "more_body": True})
                await close_connection(scope, disconnected)
                return
        await super().__call__(scope, receive, send)


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


@asynccontextmanager
async def disconnect_task(receive: Receive) -> AsyncGenerator["asyncio.Task[None]"]:
    """A task that ends when the connection is closed, by either side."""

    async def closed() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    task = asyncio.create_task(closed())
    try:
        yield task
    finally:
        task.cancel()


async def close_connection(scope: Scope, disconnected: "asyncio.Task[None]") -> None:
    """Close the connection and wait for uvicorn to notice; otherwise it logs an incomplete response as an error."""
    close: Callable[[], None] = scope[CLOSE_CONNECTION]
    close()
    await disconnected


class ClosableProtocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol, extended so that the application can close the connection during a response."""

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope[CLOSE_CONNECTION] = self.transport.close  # pyright: ignore[reportGeneralTypeIssues]


class _Server(uvicorn.Server):
    """uvicorn's server without signal handlers: those belong to the process around it."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


class Understudy:
    """The endpoint as an async context manager: it serves in this event loop until the block ends."""

    def __init__(self, scripts: Sequence[Script] = (), *, port: int = 0, key: str = "", pace: float = 0) -> None:
        self.key = key or f"understudy-{secrets.token_hex(16)}"
        self.port = port
        self._scripts = scripts
        self._pace = pace

    @property
    def base_url(self) -> str:
        """The value for `OPENAI_BASE_URL`. A free port is chosen when the server starts."""
        return f"http://{HOST}:{self.port}/v1"

    async def __aenter__(self) -> Self:
        listener = _bind(self.port)
        self.port = listener.getsockname()[1]
        config = uvicorn.Config(
            create_app(self._scripts, self.key, self._pace),
            http=ClosableProtocol,
            log_config=None,
            lifespan="off",
            access_log=False,
            timeout_graceful_shutdown=GRACE_SECONDS,
            server_header=False,
        )
        self._server = _Server(config)
        self._task = asyncio.create_task(self._server.serve(sockets=[listener]), name="understudy")
        while not self._server.started:
            if self._task.done():
                self._task.result()
                raise SetupError("the understudy did not start")
            await asyncio.sleep(0.005)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.should_exit = True
        await self._task


def _bind(port: int) -> socket.socket:
    # asyncio sets TCP_NODELAY only on sockets whose protocol is given.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen()
    except (OSError, OverflowError) as error:
        listener.close()
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            hint = "end the program that uses it, or choose another: limelight understudy --port"
            raise SetupError(f"port {port} is taken: {hint} {port + 1}") from error
        raise SetupError(f"{HOST}:{port} cannot be used: {error}") from error
    return listener
