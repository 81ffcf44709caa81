"""Reads an HTTP stream for the load generator: counts frames in its raw bytes, and detects missing events."""

import asyncio
import time
from typing import cast

import msgspec

from benchmarks.workload import AGENTS, TOKEN, TOOLS

STREAM_SECONDS = 60
"""Time limit of a stream."""
FRAME = b"\ndata: "


class IncompleteStream(Exception):
    """The error for a stream that ended before all its events had arrived."""


class Stream(asyncio.Protocol):
    """One HTTP response, stored as raw bytes. HTTP chunks never split a frame, so frames are counted in these bytes."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self._awaited = b""
        self._found = asyncio.get_running_loop().create_future()
        self.body = bytearray()
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.sent_at = 0.0
        self.first_frame_at = 0.0
        self.closed_at = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.sent_at = time.perf_counter()
        self.transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self.body += data
        if not self.first_frame_at and FRAME in self.body:
            self.first_frame_at = time.perf_counter()
        if self._awaited and self._awaited in self.body and not self._found.done():
            self._found.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed_at = time.perf_counter()
        for future in (self.closed, self._found):
            if not future.done():
                future.set_result(None)

    async def wait_for(self, text: bytes) -> None:
        """Wait until the response contains this text."""
        self._awaited = text
        if text not in self.body:
            await asyncio.wait_for(self._found, STREAM_SECONDS)
        if text not in self.body:
            raise IncompleteStream(f"the stream ended without {text!r}: {bytes(self.body[:500])!r}")

    async def read_workload(self, tokens: int) -> int:
        """Wait for the end, check that all events of the workload have arrived, and return the number of frames."""
        await self.read_tokens(tokens)
        found = (self.body.count(b"tool_end"), self.body.count(b"agent_end"))
        if found != (TOOLS, AGENTS):
            raise IncompleteStream(f"{found} tools, agents instead of {(TOOLS, AGENTS)}")
        if b"done" not in self.body[self.body.rfind(FRAME) :]:
            raise IncompleteStream(f"the last frame is {bytes(self.body[-100:])!r}")
        return self.body.count(FRAME)

    async def read_tokens(self, tokens: int) -> None:
        """Wait for the end, and check that all tokens have arrived."""
        await asyncio.wait_for(self.closed, STREAM_SECONDS)
        if (found := self.body.count(TOKEN.encode())) != tokens:
            raise IncompleteStream(f"{found} tokens instead of {tokens}: {bytes(self.body[-300:])!r}")


async def open_stream(port: int, method: str, path: str, body: object = None, key: str = "") -> Stream:
    """Connect and send a request. The server closes the connection at the end of the response."""
    content = b"" if body is None else msgspec.json.encode(body)
    request = request_bytes(port, method, path, content, key, "connection: close\r\n")
    loop = asyncio.get_running_loop()
    _, stream = await loop.create_connection(lambda: Stream(request), "127.0.0.1", port)
    return stream


def request_bytes(port: int, method: str, path: str, content: bytes = b"", key: str = "", headers: str = "") -> bytes:
    """Return an HTTP request as bytes."""
    head = f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n{headers}"
    head += f"authorization: Bearer {key}\r\n" if key else ""
    head += f"content-type: application/json\r\ncontent-length: {len(content)}\r\n\r\n"
    return head.encode() + content


def chat_body(agent: str, text: str, session_id: str = "") -> dict[str, object]:
    """Return the JSON body of a request that starts a run."""
    session = {"session_id": session_id} if session_id else {}
    return {"agent": agent, **session, "messages": [{"role": "user", "content": text}]}
