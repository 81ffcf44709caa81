"""One stream as the load reads it: raw bytes from a socket, a few counts, and the check that nothing is missing."""

import asyncio
import time
from typing import cast

import msgspec

from benchmarks.workload import AGENTS, TOKEN, TOOLS

STREAM_SECONDS = 60
"""No stream may take longer."""
FRAME = b"\ndata: "


class Incomplete(Exception):
    """A stream did not carry what it should."""


class Stream(asyncio.Protocol):
    """One response, kept as it came: chunks never cut a frame, so frames can be counted in the raw bytes."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self._until = b""
        self._seen = asyncio.get_running_loop().create_future()
        self.body = bytearray()
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.sent_at = 0.0
        self.first_at = 0.0
        self.over_at = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.sent_at = time.perf_counter()
        self.transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self.body += data
        if not self.first_at and FRAME in self.body:
            self.first_at = time.perf_counter()
        if self._until and self._until in self.body and not self._seen.done():
            self._seen.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self.over_at = time.perf_counter()
        for future in (self.over, self._seen):
            if not future.done():
                future.set_result(None)

    async def until(self, text: bytes) -> None:
        """Wait until this has come."""
        self._until = text
        if text not in self.body:
            await asyncio.wait_for(self._seen, STREAM_SECONDS)
        if text not in self.body:
            raise Incomplete(f"the stream ended without {text!r}: {bytes(self.body[:500])!r}")

    async def whole(self, tokens: int) -> int:
        """Wait for the end, check that everything was there; returns the number of frames."""
        await asyncio.wait_for(self.over, STREAM_SECONDS)
        found = (self.body.count(TOKEN.encode()), self.body.count(b"tool_end"), self.body.count(b"agent_end"))
        if found != (tokens, TOOLS, AGENTS):
            raise Incomplete(f"{found} tokens, tools, agents instead of {(tokens, TOOLS, AGENTS)}")
        if b"done" not in self.body[self.body.rfind(FRAME) :]:
            raise Incomplete(f"the last frame is {bytes(self.body[-100:])!r}")
        return self.body.count(FRAME)

    async def said(self, tokens: int) -> None:
        """Wait for the end, check that all tokens were there."""
        await asyncio.wait_for(self.over, STREAM_SECONDS)
        if (found := self.body.count(TOKEN.encode())) != tokens:
            raise Incomplete(f"{found} tokens instead of {tokens}: {bytes(self.body[-300:])!r}")


async def open_stream(port: int, method: str, path: str, body: object = None, key: str = "") -> Stream:
    """Connect and ask; the server closes at the end."""
    content = b"" if body is None else msgspec.json.encode(body)
    asked = request(port, method, path, content, key, "connection: close\r\n")
    loop = asyncio.get_running_loop()
    _, stream = await loop.create_connection(lambda: Stream(asked), "127.0.0.1", port)
    return stream


def request(port: int, method: str, path: str, content: bytes = b"", key: str = "", headers: str = "") -> bytes:
    """A request as it goes over the wire."""
    head = f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n{headers}"
    head += f"authorization: Bearer {key}\r\n" if key else ""
    head += f"content-type: application/json\r\ncontent-length: {len(content)}\r\n\r\n"
    return head.encode() + content
