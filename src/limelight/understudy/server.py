"""The understudy's own web server: `/v1/chat/completions` and `/v1/models` on a loopback port, behind a key.

It knows the wire and nothing about what is said: replies come from the player or the improviser. `limelight understudy`
runs it alone; agents that have no real model, and tests, start it in their own event loop.
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
from limelight.understudy.chunks import CREATED, chunk_of, closing, completion, error_body, opening
from limelight.understudy.conversation import Request, read_request
from limelight.understudy.improviser import improvise
from limelight.understudy.reply import CutPiece, FaultPiece, Reply, paced
from limelight.understudy.script_player import play
from limelight.understudy.scripts import Script

HOST = "127.0.0.1"
MODEL = "understudy"
GRACE_SECONDS = 1
LARGE_BODY = 64 * 1024
"""Bytes of a request that is answered in a thread: the understudy may share its event loop with a server."""
CUT = "limelight.cut"
"""The key under which a request's scope holds the function that closes its connection."""


def create_app(scripts: Sequence[Script], key: str, pace: float = 0) -> Starlette:
    """The application. Without scripts it improvises, with `pace` seconds between two words."""

    def answer(request: Request) -> Reply:
        return play(scripts, request) if scripts else paced(improvise(request), pace)

    async def models(http: HttpRequest) -> Response:
        _check_key(http, key)
        model = {"id": MODEL, "object": "model", "created": CREATED, "owned_by": "limelight"}
        return JSONResponse({"object": "list", "data": [model]})

    async def completions(http: HttpRequest) -> Response:
        _check_key(http, key)
        body = await http.body()
        if len(body) < LARGE_BODY:
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


def respond(reply: Reply, request: Request) -> Response:
    """The response of a reply, in the form that the request asks for."""
    fault = reply.fault
    if fault is None and not request.stream:
        fault = next((piece for piece in reply.pieces if isinstance(piece, FaultPiece)), None)
    if fault is not None:
        return JSONResponse(error_body(fault.message, fault.type, fault.code), fault.status)
    return Streamed(reply, request) if request.stream else Whole(reply, request)


class Streamed(Response):
    """Server-sent events, each as soon as its delay is over; a cut ends them with the connection."""

    media_type = "text/event-stream"

    def __init__(self, reply: Reply, request: Request) -> None:
        self._reply = reply
        self._request = request
        self.status_code = 200
        self.background = None
        self.init_headers({"cache-control": "no-cache"})
        del self.headers["content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        async with leaving(receive) as left:
            async for payload in self._payloads(left):
                if payload is None:
                    await cut(scope, left)
                    return
                await send({"type": "http.response.body", "body": b"data: " + payload + b"\n\n", "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _payloads(self, left: "asyncio.Task[None]") -> AsyncIterator[bytes | None]:
        """What stands in the events; none means a cut. Nothing more is said to a client that has left."""
        yield _json(opening(self._request))
        for piece in self._reply.pieces:
            if piece.delay:
                await asyncio.wait({left}, timeout=piece.delay)
            if left.done():
                return
            chunk = chunk_of(piece, self._request)
            yield None if chunk is None else _json(chunk)
            if isinstance(piece, FaultPiece):
                return
        for chunk in closing(self._reply, self._request):
            yield _json(chunk)
        yield b"[DONE]"


class Whole(Response):
    """One JSON object, after all delays; a cut comes after the first half of it."""

    media_type = "application/json"

    def __init__(self, reply: Reply, request: Request) -> None:
        super().__init__(_json(completion(reply, request)))
        self._reply = reply

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with leaving(receive) as left:
            if wait := sum(piece.delay for piece in self._reply.pieces):
                await asyncio.wait({left}, timeout=wait)
            if any(isinstance(piece, CutPiece) for piece in self._reply.pieces):
                await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
                half = bytes(self.body[: len(self.body) // 2])
                await send({"type": "http.response.body", "body": half, "more_body": True})
                await cut(scope, left)
                return
        await super().__call__(scope, receive, send)


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


@asynccontextmanager
async def leaving(receive: Receive) -> AsyncGenerator["asyncio.Task[None]"]:
    """A task that is done as soon as the connection is closed, by either side."""

    async def closed() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    task = asyncio.create_task(closed())
    try:
        yield task
    finally:
        task.cancel()


async def cut(scope: Scope, left: "asyncio.Task[None]") -> None:
    """Close the connection and wait until the server has noticed, so that it does not take this for a mistake."""
    close: Callable[[], None] = scope[CUT]
    close()
    await left


class Cuttable(HttpToolsProtocol):
    """uvicorn's protocol, which lets the application close the connection in the middle of a response."""

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope[CUT] = self.transport.close  # pyright: ignore[reportGeneralTypeIssues]


class _Server(uvicorn.Server):
    """Leaves the signals to the process that it is a part of."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


class Understudy:
    """The endpoint as an async context manager: it serves in this event loop until the block is left."""

    def __init__(self, scripts: Sequence[Script] = (), *, port: int = 0, key: str = "", pace: float = 0) -> None:
        self.key = key or f"understudy-{secrets.token_hex(16)}"
        self.port = port
        self._scripts = scripts
        self._pace = pace

    @property
    def base_url(self) -> str:
        """What `OPENAI_BASE_URL` must be. The port is known once it serves."""
        return f"http://{HOST}:{self.port}/v1"

    async def __aenter__(self) -> Self:
        listener = _bind(self.port)
        self.port = listener.getsockname()[1]
        config = uvicorn.Config(
            create_app(self._scripts, self.key, self._pace),
            http=Cuttable,
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
    # With the protocol named, asyncio sends each piece at once.
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
