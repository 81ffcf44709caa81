"""The offline model's HTTP server: `/v1/chat/completions` and `/v1/models` on a loopback port, protected by a key.

Replies come from scripts or from the improviser. `limelight understudy` runs the server in a process; servers whose
agents have no real model, and tests, run it in their own event loop.
"""

import asyncio
import errno
import json
import secrets
import socket
from collections.abc import AsyncIterator, Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, Self

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from limelight.errors import BadRequest, SetupError
from limelight.understudy.chat_requests import ChatRequest, read_request
from limelight.understudy.improviser import improvise
from limelight.understudy.openai_chunks import CREATED, completion, error_body, first_chunk, last_chunks, piece_chunk
from limelight.understudy.replies import DisconnectPiece, ErrorPiece, Reply, with_pace
from limelight.understudy.scripts import Script, play

HOST = "127.0.0.1"
MODEL = "understudy"
GRACE_SECONDS = 1
LARGE_BODY_BYTES = 64 * 1024
"""Size of a request from which a thread processes it, so that it does not block the event loop of a Limelight server.
"""
CLOSE_CONNECTION = "limelight.close_connection"
"""Key in the ASGI scope under which the application finds the function that closes the request's connection."""
CloseConnection = Callable[[], None]


def create_app(scripts: Sequence[Script], key: str, pace: float = 0) -> Starlette:
    """Create the offline model's ASGI application. Without scripts it improvises, with `pace` seconds between words."""

    def answer(body: bytes) -> tuple[ChatRequest, Reply]:
        request = read_request(body)
        return request, play(scripts, request) if scripts else with_pace(improvise(request), pace)

    async def models(http: HttpRequest) -> Response:
        _check_key(http, key)
        model = {"id": MODEL, "object": "model", "created": CREATED, "owned_by": "limelight"}
        return JSONResponse({"object": "list", "data": [model]})

    async def completions(http: HttpRequest) -> Response:
        _check_key(http, key)
        body = await http.body()
        request, reply = answer(body) if len(body) < LARGE_BODY_BYTES else await asyncio.to_thread(answer, body)
        return respond(reply, request, http.scope[CLOSE_CONNECTION])

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
        raise HTTPException(401, "the understudy does not know this API key: use the key that it printed at its start")


def respond(reply: Reply, request: ChatRequest, close_connection: CloseConnection) -> Response:
    """Return the HTTP response for a reply: an error, a stream or one JSON object."""
    pieces = reply.pieces[:1] if request.stream else reply.pieces  # a stream sends later errors as events
    error = next((piece for piece in pieces if isinstance(piece, ErrorPiece)), None)
    if error is not None:
        return JSONResponse(error_body(error.message, error.type, error.code), error.status)
    if request.stream:
        events = _events(reply, request, close_connection)
        return StreamingResponse(events, headers={"cache-control": "no-cache"}, media_type="text/event-stream")
    body = _json(completion(reply, request))
    headers = {"content-length": str(len(body))}
    return StreamingResponse(_delayed(body, reply, close_connection), headers=headers, media_type="application/json")


async def _events(reply: Reply, request: ChatRequest, close_connection: CloseConnection) -> AsyncIterator[bytes]:
    """Yield a reply as server-sent events, with its delays. Starlette cancels this when the client disconnects."""
    yield _event(first_chunk(request))
    for piece in reply.pieces:
        if piece.delay:
            await asyncio.sleep(piece.delay)
        chunk = piece_chunk(piece, request)
        if chunk is None:
            await _disconnect(close_connection)
        yield _event(chunk)
        if isinstance(piece, ErrorPiece):
            return
    for chunk in last_chunks(reply, request):
        yield _event(chunk)
    yield b"data: [DONE]\n\n"


async def _delayed(body: bytes, reply: Reply, close_connection: CloseConnection) -> AsyncIterator[bytes]:
    """Yield the body of a non-streamed reply after the sum of its delays; half of it for a simulated disconnect."""
    await asyncio.sleep(sum(piece.delay for piece in reply.pieces))
    if any(isinstance(piece, DisconnectPiece) for piece in reply.pieces):
        yield body[: len(body) // 2]
        await _disconnect(close_connection)
    yield body


async def _disconnect(close_connection: CloseConnection) -> None:
    """Close the connection and wait until Starlette cancels the response, so that uvicorn logs no error."""
    close_connection()
    await asyncio.Event().wait()


def _event(value: Any) -> bytes:
    return b"data: " + _json(value) + b"\n\n"


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


class ClosableProtocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol, extended so that the application can close the connection during a response."""

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope[CLOSE_CONNECTION] = self.transport.close  # pyright: ignore[reportGeneralTypeIssues]


class _Server(uvicorn.Server):
    """uvicorn's server without signal handlers, because the process around it handles signals."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


class Understudy:
    """Async context manager that runs the offline model's server in this event loop until the block ends."""

    def __init__(self, scripts: Sequence[Script] = (), *, port: int = 0, key: str = "", pace: float = 0) -> None:
        self.key = key or f"understudy-{secrets.token_hex(16)}"
        self.port = port
        self._scripts = scripts
        self._pace = pace

    @property
    def base_url(self) -> str:
        """The server's URL, for `OPENAI_BASE_URL`. A free port is chosen when the server starts."""
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
