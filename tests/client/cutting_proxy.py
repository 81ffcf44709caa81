"""A proxy that cuts connections, and a server that sends scripted responses byte by byte."""

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from limelight.client import Gap
from limelight.events import Record


class CuttingProxy:
    """Forwards bytes to a server; cuts each of the first `cuts` connections after a random number of bytes."""

    def __init__(self, upstream: str, cuts: int, seed: object, max_bytes: int = 3000) -> None:
        self._upstream = urlsplit(upstream)
        self._rng = random.Random(str(seed))
        self._max_bytes = max_bytes
        self._tasks: set[asyncio.Task[None]] = set()
        self.cuts_left = cuts
        self.url = ""

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        upstream_reader, upstream_writer = await asyncio.open_connection(self._upstream.hostname, self._upstream.port)
        request = asyncio.create_task(_forward(reader, upstream_writer, None))
        try:
            budget = self._rng.randint(0, self._max_bytes) if self.cuts_left else None
            if await _forward(upstream_reader, writer, budget):
                self.cuts_left = max(0, self.cuts_left - 1)  # several may be cut at once
        finally:
            request.cancel()
            for each in (writer, upstream_writer):
                each.transport.abort()

    async def aclose(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)


async def _forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, budget: int | None) -> bool:
    """Forward bytes. True if the budget is used up, which cuts the connection."""
    with suppress(OSError, asyncio.CancelledError):
        while budget is None or budget > 0:
            data = await reader.read(16 * 1024 if budget is None else budget)
            if not data:
                return False
            writer.write(data)
            await writer.drain()
            budget = None if budget is None else budget - len(data)
        return True
    return False


@asynccontextmanager
async def cutting_proxy(upstream: str, cuts: int, seed: object) -> AsyncGenerator[CuttingProxy]:
    proxy = CuttingProxy(upstream, cuts, seed)
    server = await asyncio.start_server(proxy.handle, "127.0.0.1", 0)
    proxy.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield proxy
    finally:
        server.close()
        await proxy.aclose()


class ScriptedResponses(NamedTuple):
    """A server that sends one response for each request and records the requests."""

    url: str
    requests: list[str]


@asynccontextmanager
async def scripted_responses(
    *responses: bytes | Callable[[asyncio.StreamWriter], Any],
) -> AsyncGenerator[ScriptedResponses]:
    """Bytes are sent, then the connection is closed; a function gets the connection, which stays open."""
    requests: list[str] = []
    stopped = asyncio.Event()
    tasks: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        content = responses[min(len(requests), len(responses) - 1)]
        requests.append(head)
        if isinstance(content, bytes):
            writer.write(content)
        else:
            content(writer)
            await stopped.wait()
        with suppress(OSError):
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield ScriptedResponses(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", requests)
    finally:
        stopped.set()
        server.close()
        if tasks:
            await asyncio.wait(tasks)


def response(body: str, status: str = "200 OK", content_type: str = "text/event-stream") -> bytes:
    """A response that ends with its connection."""
    return f"HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\nconnection: close\r\n\r\n{body}".encode()


def frame(record: Record) -> str:
    return f"id: {record.seq}\ndata: {msgspec.json.encode(record).decode()}\n\n"


async def collect_records(items: AsyncIterator[Record | Gap]) -> list[Record]:
    """All Records of a stream, which must not have a gap."""
    found = [item async for item in items]
    assert not [item for item in found if isinstance(item, Gap)]
    return [item for item in found if isinstance(item, Record)]


def assert_complete(received: list[Record], expected: list[Record]) -> None:
    """Assert that each Record was received once and in order."""
    assert [record.seq for record in received] == list(range(expected[0].seq, expected[-1].seq + 1))
    assert received == expected
