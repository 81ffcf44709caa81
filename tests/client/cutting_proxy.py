"""Between client and server: a forwarder that cuts connections, and a stage that plays answers byte by byte."""

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from limelight.client import Gap
from limelight.events import Record


class Cutter:
    """Forwards bytes to a server; each of the first `cuts` connections is cut after a random number of them."""

    def __init__(self, upstream: str, cuts: int, seed: object, most: int = 3000) -> None:
        self._upstream = urlsplit(upstream)
        self._rng = random.Random(str(seed))
        self._most = most
        self._tasks: set[asyncio.Task[None]] = set()
        self.left = cuts
        self.url = ""

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        there, back = await asyncio.open_connection(self._upstream.hostname, self._upstream.port)
        request = asyncio.create_task(_pump(reader, back, None))
        try:
            budget = self._rng.randint(0, self._most) if self.left else None
            if await _pump(there, writer, budget):
                self.left = max(0, self.left - 1)  # several may be cut at once
        finally:
            request.cancel()
            for end in (writer, back):
                end.transport.abort()

    async def aclose(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, budget: int | None) -> bool:
    """True if it was cut because the budget is used up."""
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
async def cutting(upstream: str, cuts: int, seed: object) -> AsyncGenerator[Cutter]:
    cutter = Cutter(upstream, cuts, seed)
    server = await asyncio.start_server(cutter.connected, "127.0.0.1", 0)
    cutter.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield cutter
    finally:
        server.close()
        await cutter.aclose()


class Stage(NamedTuple):
    """Plays one answer for each request; remembers the requests."""

    url: str
    requests: list[str]


@asynccontextmanager
async def playing(*answers: bytes | Callable[[asyncio.StreamWriter], Any]) -> AsyncGenerator[Stage]:
    """Bytes are sent and the connection is closed; a function gets the connection, which then stays open."""
    requests: list[str] = []
    over = asyncio.Event()
    tasks: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        answer = answers[min(len(requests), len(answers) - 1)]
        requests.append(head)
        if isinstance(answer, bytes):
            writer.write(answer)
        else:
            answer(writer)
            await over.wait()
        with suppress(OSError):
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        yield Stage(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", requests)
    finally:
        over.set()
        server.close()
        if tasks:
            await asyncio.wait(tasks)


def answer(body: str, status: str = "200 OK", content_type: str = "text/event-stream") -> bytes:
    """An answer that ends with its connection."""
    return f"HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\nconnection: close\r\n\r\n{body}".encode()


def frame(record: Record) -> str:
    return f"id: {record.seq}\ndata: {msgspec.json.encode(record).decode()}\n\n"


async def records(items: AsyncIterator[Record | Gap]) -> list[Record]:
    """All of a stream, which must have no gap."""
    found = [item async for item in items]
    assert not [item for item in found if isinstance(item, Gap)]
    return [item for item in found if isinstance(item, Record)]


def same(received: list[Record], whole: list[Record]) -> bool:
    """Each Record once, in order, none left out."""
    assert [record.seq for record in received] == list(range(whole[0].seq, whole[-1].seq + 1))
    return received == whole
