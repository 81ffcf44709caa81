"""An HTTP server that sends given typed frames as a Limelight server would, with faults on request."""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from limelight.server.process.uvicorn_server import bind
from tests.support.wait import DEADLINE

RUN_ID = "run_0"
METHODS = ["GET", "POST"]


class RecordedRequest(NamedTuple):
    """A request that the server has received; `route` is method and path."""

    route: str
    headers: dict[str, str]
    body: Any


class FrameServer:
    """Sends `frames` to each stream and records all requests. A test sets the attributes before or during a run."""

    def __init__(self) -> None:
        self.url = ""
        self.clear()

    def clear(self) -> None:
        self.frames: list[bytes] = []
        self.faults: list[int | Response] = []
        """For each stream in turn: the number of bytes after which it breaks, or the response in its place."""
        self.bodies: dict[str, bytes] = {}
        """Bodies of GET responses by path."""
        self.frame_by_frame = False
        self.cancel_responses: list[Response] = []
        """For each cancel request in turn: the response in place of success."""
        self.hangs = False
        """Whether requests get no response."""
        self.requests: list[RecordedRequest] = []

    def set_stream(self, data: bytes) -> None:
        self.frames = [block + b"\n\n" for block in data.split(b"\n\n") if block]

    def set_payloads(self, *payloads: str) -> None:
        """Set frames with these JSON payloads and the ids 1, 2, 3 …"""
        self.frames = [f"id: {number}\ndata: {each}\n\n".encode() for number, each in enumerate(payloads, 1)]

    @property
    def stream_requests(self) -> list[RecordedRequest]:
        return [request for request in self.requests if request.route.split()[1].endswith("/stream")]

    async def answer(self, request: Request) -> Response:
        body = await request.json() if await request.body() else None
        path = request.url.path
        self.requests.append(RecordedRequest(f"{request.method} {path}", dict(request.headers), body))
        while self.hangs and (await request.receive())["type"] != "http.disconnect":
            pass
        if path in ("/chat/stream", f"/runs/{RUN_ID}/stream"):
            return self._stream(request.headers.get("last-event-id", ""))
        if path in self.bodies:
            return Response(self.bodies[path])
        if path == f"/runs/{RUN_ID}/cancel":
            return self.cancel_responses.pop(0) if self.cancel_responses else JSONResponse({"state": "cancelled"})
        return JSONResponse({"status": 404, "title": "Not Found", "code": "not_found"}, 404)

    def _stream(self, cursor: str) -> Response:
        fault = self.faults.pop(0) if self.faults else None
        if isinstance(fault, Response):
            return fault
        frames = self._frames_after(cursor)
        if not frames:
            return Response(status_code=204)
        headers = {"x-run-id": RUN_ID, "x-session-id": "s"}
        return StreamingResponse(self._send(frames, fault), headers=headers, media_type="text/event-stream")

    def _frames_after(self, cursor: str) -> list[bytes]:
        if not cursor:
            return self.frames
        ids = [re.search(rb"^id: (.*)$", frame, re.MULTILINE) for frame in self.frames]
        return self.frames[[match and match[1].decode() for match in ids].index(cursor) + 1 :]

    async def _send(self, frames: Sequence[bytes], break_after: int | None) -> AsyncIterator[bytes]:
        if break_after is not None:
            yield b"".join(frames)[:break_after]
            raise ConnectionError("cut on purpose")
        for chunk in frames if self.frame_by_frame else [b"".join(frames)]:
            yield chunk
            await asyncio.sleep(0)  # lets it arrive before the next chunk is sent


@asynccontextmanager
async def running_app(app: Any) -> AsyncGenerator[str]:
    """Run an ASGI app on a free port and yield its URL."""
    listener = bind("127.0.0.1", 0)
    config = uvicorn.Config(app, log_config=None, log_level="critical", lifespan="off", ws="none", access_log=False)
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve([listener]))
    try:
        while not server.started:
            assert not task.done(), task.exception()
            await asyncio.sleep(0.005)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        await asyncio.wait_for(task, DEADLINE)


@asynccontextmanager
async def running_frame_server() -> AsyncGenerator[FrameServer]:
    server = FrameServer()
    app = Starlette(routes=[Route("/{path:path}", server.answer, methods=METHODS)])
    async with running_app(app) as server.url:
        yield server
