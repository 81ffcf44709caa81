"""A load process of the noisy neighbour: reaches one kind of limit until it is stopped.

Run as `python -m benchmarks.noisy_neighbour.load`.

`streams` has all runs and streams that she may have, and does not read every second one. `requests` sends bodies of the
largest size, reads results of the largest size, and lists sessions. `flood` asks as fast as it can, mostly in vain.
"""

import asyncio
import os
import sys
from typing import cast

import msgspec
import uvloop

from benchmarks.noisy_neighbour.protocol import Order, Report
from benchmarks.stream import request

LISTING_SECONDS = 0.1
FLOODERS = 4
ALONE = 2
"""Her runs beside the talkers: the one that makes results, and the one that takes bodies."""
NICENESS = 10
"""So that what she does on the client's core does not count as the server's slowness."""


class Watching(asyncio.Protocol):
    """A stream of hers, thrown away as it comes; or not read at all, once it has begun."""

    def __init__(self, asked: bytes, *, reads: bool) -> None:
        self._asked = asked
        self._reads = reads
        self.status: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(self._asked)

    def data_received(self, data: bytes) -> None:
        if not self.status.done():
            self.status.set_result(int(data.split(b" ", 2)[1]))
            if not self._reads:
                self._transport.pause_reading()

    def close(self) -> None:
        self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.status.done():
            self.status.set_exception(exc or ConnectionError("closed without an answer"))


class Neighbour:
    """What she does, with the answers that she got."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._open: list[Watching] = []
        """What is not read would be collected as garbage, and closed."""
        self.report = Report()

    async def streams(self) -> None:
        """Open everything; it stays open, but for one: who waits for a whole answer takes the place of a stream."""
        talkers = [f"talk-{number}" for number in range(self._order.runs - ALONE)]
        for number, session_id in enumerate(["maker", *talkers]):
            await self._watch(_asking("talker" if number else "maker", "go", session_id), number)
        for number in range(self._order.runs - 1, self._order.streams + 1):  # one more than she may
            await self._watch(talkers[number % len(talkers)], number)
        *_, last, _ = self._open
        last.close()

    async def _watch(self, what: "str | bytes", number: int) -> None:
        is_run = isinstance(what, bytes)
        method, path = ("POST", "/chat/stream") if is_run else ("GET", f"/sessions/{what}/stream")
        asked = request(self._order.port, method, path, what if isinstance(what, bytes) else b"", self._order.key)
        loop = asyncio.get_running_loop()
        connect = loop.create_connection(lambda: Watching(asked, reads=number % 2 == 0), "127.0.0.1", self._order.port)
        _, watching = await connect
        self._open.append(watching)
        self.report.count(f"{'run' if is_run else 'stream'} {await watching.status}")

    async def requests(self) -> None:
        """Until it is cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._bodies())
            tasks.create_task(self._results())
            tasks.create_task(self._listings())

    async def _bodies(self) -> None:
        room = self._order.body_bytes - len(_asking("short", "", "body"))
        content = _asking("short", "x" * room, "body")
        await self._over_and_over("body", "POST", "/chat", content)

    async def _results(self) -> None:
        line = await Line.to(self._order)
        _, body = await line.ask("GET", "/sessions/maker")
        run_id = msgspec.json.decode(body)["run_id"]
        await self._over_and_over("result", "GET", f"/runs/{run_id}/tools/call-0?raw=1", pause=LISTING_SECONDS)

    async def _listings(self) -> None:
        await self._over_and_over("list", "GET", "/sessions?limit=200", pause=LISTING_SECONDS)

    async def flood(self) -> None:
        """Until it is cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for _ in range(FLOODERS):
                tasks.create_task(self._over_and_over("flood", "GET", "/sessions?limit=200"))

    async def _over_and_over(self, what: str, method: str, path: str, content: bytes = b"", pause: float = 0) -> None:
        line = await Line.to(self._order)
        while True:
            try:
                status, _ = await line.ask(method, path, content)
            except (OSError, asyncio.IncompleteReadError):  # refused and closed before the body was read
                line = await Line.to(self._order)
                self.report.count(f"{what} closed")
                continue
            self.report.count(f"{what} {status}")
            await asyncio.sleep(pause)


class Line:
    """A connection that is kept for the next request."""

    def __init__(self, order: Order, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._order = order
        self._reader = reader
        self._writer = writer

    @classmethod
    async def to(cls, order: Order) -> "Line":
        return cls(order, *await asyncio.open_connection("127.0.0.1", order.port))

    async def ask(self, method: str, path: str, content: bytes = b"") -> tuple[int, bytes]:
        """The status and the body of the answer."""
        self._writer.write(request(self._order.port, method, path, content, self._order.key))
        head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        size = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
        return int(head.split(b" ", 2)[1]), await self._reader.readexactly(size)


def _asking(agent: str, text: str, session_id: str) -> bytes:
    body = {"agent": agent, "session_id": session_id, "messages": [{"role": "user", "content": text}]}
    return msgspec.json.encode(body)


async def main() -> None:
    """One order; what came of it is told when standard input ends."""
    os.nice(NICENESS)
    loop = asyncio.get_running_loop()
    order = msgspec.json.decode(sys.stdin.buffer.readline(), type=Order)
    neighbour = Neighbour(order)
    ended = asyncio.Event()
    loop.add_reader(sys.stdin, ended.set)
    if order.kind == "streams":
        await neighbour.streams()
        print(flush=True)
        await ended.wait()
    else:
        work = asyncio.create_task(neighbour.requests() if order.kind == "requests" else neighbour.flood())
        print(flush=True)
        await asyncio.wait({work, asyncio.create_task(ended.wait())}, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            work.result()
    sys.stdout.buffer.write(msgspec.json.encode(neighbour.report) + b"\n")
    sys.stdout.buffer.flush()
    os._exit(0)  # what she has open is cut, as by a client that is gone


if __name__ == "__main__":
    uvloop.run(main())
