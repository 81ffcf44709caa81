"""A server that plays typed frames as a Limelight server would send them, over real HTTP, with faults on demand."""

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

RUN_ID = "run_0"
METHODS = ["GET", "POST"]


class Asked(NamedTuple):
    """A request that came in."""

    line: str
    headers: dict[str, str]
    body: Any


class Stage:
    """What is played and what was asked for. A test changes it before it talks, or in between."""

    def __init__(self) -> None:
        self.url = ""
        self.clear()

    def clear(self) -> None:
        self.frames: list[bytes] = []
        self.faults: list[int | Response] = []
        """For each stream in turn: after how many bytes it breaks, or the answer in its place."""
        self.bodies: dict[str, bytes] = {}
        """What there is to fetch, by path."""
        self.one_by_one = False
        self.cancels: list[Response] = []
        """For each Stop in turn: the answer in place of the right one."""
        self.hold = False
        """Whether requests stay without an answer."""
        self.asked: list[Asked] = []

    def play(self, sent: bytes) -> None:
        self.frames = [block + b"\n\n" for block in sent.split(b"\n\n") if block]

    @property
    def streams(self) -> list[Asked]:
        return [asked for asked in self.asked if asked.line.split()[1].endswith("/stream")]

    async def answer(self, request: Request) -> Response:
        body = await request.json() if await request.body() else None
        path = request.url.path
        self.asked.append(Asked(f"{request.method} {path}", dict(request.headers), body))
        while self.hold and (await request.receive())["type"] != "http.disconnect":
            pass
        if path in ("/chat/stream", f"/runs/{RUN_ID}/stream"):
            return self._stream(request.headers.get("last-event-id", ""))
        if path in self.bodies:
            return Response(self.bodies[path])
        if path == f"/runs/{RUN_ID}/cancel":
            return self.cancels.pop(0) if self.cancels else JSONResponse({"state": "cancelled"})
        return JSONResponse({"status": 404, "title": "Not Found", "code": "not_found"}, 404)

    def _stream(self, cursor: str) -> Response:
        fault = self.faults.pop(0) if self.faults else None
        if isinstance(fault, Response):
            return fault
        frames = self._behind(cursor)
        if not frames:
            return Response(status_code=204)
        headers = {"x-run-id": RUN_ID, "x-session-id": "s"}
        return StreamingResponse(self._bytes(frames, fault), headers=headers, media_type="text/event-stream")

    def _behind(self, cursor: str) -> list[bytes]:
        if not cursor:
            return self.frames
        ids = [re.search(rb"^id: (.*)$", frame, re.MULTILINE) for frame in self.frames]
        return self.frames[[found and found[1].decode() for found in ids].index(cursor) + 1 :]

    async def _bytes(self, frames: Sequence[bytes], most: int | None) -> AsyncIterator[bytes]:
        if most is not None:
            yield b"".join(frames)[:most]
            raise ConnectionError("cut on purpose")
        for piece in frames if self.one_by_one else [b"".join(frames)]:
            yield piece
            await asyncio.sleep(0)  # so that it arrives before the next one is sent


@asynccontextmanager
async def serving_app(app: Any) -> AsyncGenerator[str]:
    """An ASGI app on a free port of this machine: its address."""
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
        await asyncio.wait_for(task, 30)


@asynccontextmanager
async def playing(sent: bytes = b"") -> AsyncGenerator[Stage]:
    stage = Stage()
    stage.play(sent)
    app = Starlette(routes=[Route("/{path:path}", stage.answer, methods=METHODS)])
    async with serving_app(app) as stage.url:
        yield stage
