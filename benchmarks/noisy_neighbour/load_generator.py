"""The load generator of the noisy neighbour. It reaches one kind of limit until its standard input ends.

Run as `python -m benchmarks.noisy_neighbour.load_generator`. `streams` opens as many runs and streams as the limits
allow, and does not read every second stream. `requests` sends bodies of the largest size, reads results of the largest
size, and lists sessions. `flood` sends requests as fast as possible, most of which are refused.
"""

import asyncio
import os
import sys
from typing import cast

import msgspec
import uvloop

from benchmarks.http_stream import chat_body, request_bytes
from benchmarks.noisy_neighbour.server import LoadOrder, LoadReport

LISTING_INTERVAL_SECONDS = 0.1
FLOOD_CONNECTIONS = 4
OTHER_RUNS = 2
"""Number of runs that stream no text: one that produces large results, and one that receives large bodies."""
NICENESS = 10
"""Scheduling priority below that of the measured client on the same core, so that only the server delays it."""


class StreamConnection(asyncio.Protocol):
    """A stream whose data is discarded, or not read after the status line."""

    def __init__(self, request: bytes, *, is_read: bool) -> None:
        self._request = request
        self._is_read = is_read
        self.status: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        if not self.status.done():
            self.status.set_result(int(data.split(b" ", 2)[1]))
            if not self._is_read:
                self._transport.pause_reading()

    def close(self) -> None:
        self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.status.done():
            self.status.set_exception(exc or ConnectionError("closed without a response"))


class RequestConnection:
    """A connection that sends requests one after another."""

    def __init__(self, order: LoadOrder, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._order = order
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, order: LoadOrder) -> "RequestConnection":
        return cls(order, *await asyncio.open_connection("127.0.0.1", order.port))

    async def request(self, method: str, path: str, content: bytes = b"") -> tuple[int, bytes]:
        """Send a request. Returns status and body of the response."""
        self._writer.write(request_bytes(self._order.port, method, path, content, self._order.key))
        head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        size = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
        return int(head.split(b" ", 2)[1]), await self._reader.readexactly(size)


class Neighbour:
    """The noisy neighbour: sends the requests of one order, and counts the responses."""

    def __init__(self, order: LoadOrder) -> None:
        self._order = order
        self._streams: list[StreamConnection] = []
        """Open streams; without a reference they would be collected and closed."""
        self.report = LoadReport()

    async def open_streams(self) -> None:
        """Open all runs and streams that the limits allow, and one stream more.

        One stream is closed again, because a request that waits for a complete answer counts as a stream.
        """
        talkers = [f"talk-{number}" for number in range(self._order.runs - OTHER_RUNS)]
        for session_id in ("maker", *talkers):
            agent = "maker" if session_id == "maker" else "talker"
            await self._open_stream("run", "POST", "/chat/stream", _chat_content(agent, "go", session_id))
        for number in range(self._order.runs - 1, self._order.streams + 1):
            await self._open_stream("stream", "GET", f"/sessions/{talkers[number % len(talkers)]}/stream")
        self._streams[-2].close()

    async def _open_stream(self, what: str, method: str, path: str, content: bytes = b"") -> None:
        request = request_bytes(self._order.port, method, path, content, self._order.key)
        is_read = len(self._streams) % 2 == 0
        _, stream = await asyncio.get_running_loop().create_connection(
            lambda: StreamConnection(request, is_read=is_read), "127.0.0.1", self._order.port
        )
        self._streams.append(stream)
        self.report.count(f"{what} {await stream.status}")

    async def send_requests(self) -> None:
        """Send bodies, read results and list sessions, until this task is cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._send_bodies())
            tasks.create_task(self._read_results())
            tasks.create_task(self._repeat("list", "GET", "/sessions?limit=200", pause=LISTING_INTERVAL_SECONDS))

    async def _send_bodies(self) -> None:
        room = self._order.body_bytes - len(_chat_content("short", "", "body"))
        await self._repeat("body", "POST", "/chat", _chat_content("short", "x" * room, "body"))

    async def _read_results(self) -> None:
        connection = await RequestConnection.open(self._order)
        _, body = await connection.request("GET", "/sessions/maker")
        path = f"/runs/{msgspec.json.decode(body)['run_id']}/tools/call-0?raw=1"
        await self._repeat("result", "GET", path, pause=LISTING_INTERVAL_SECONDS)

    async def flood(self) -> None:
        """Send requests without a pause, until this task is cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for _ in range(FLOOD_CONNECTIONS):
                tasks.create_task(self._repeat("flood", "GET", "/sessions?limit=200"))

    async def _repeat(self, what: str, method: str, path: str, content: bytes = b"", pause: float = 0) -> None:
        connection = await RequestConnection.open(self._order)
        while True:
            try:
                status, _ = await connection.request(method, path, content)
            except (OSError, asyncio.IncompleteReadError):  # refused before the server had read the body
                connection = await RequestConnection.open(self._order)
                self.report.count(f"{what} closed")
                continue
            self.report.count(f"{what} {status}")
            await asyncio.sleep(pause)


def _chat_content(agent: str, text: str, session_id: str) -> bytes:
    return msgspec.json.encode(chat_body(agent, text, session_id))


async def main() -> None:
    """Execute one order, and write the report when standard input ends."""
    os.nice(NICENESS)
    loop = asyncio.get_running_loop()
    order = msgspec.json.decode(sys.stdin.buffer.readline(), type=LoadOrder)
    neighbour = Neighbour(order)
    ended = asyncio.Event()
    loop.add_reader(sys.stdin, ended.set)
    if order.kind == "streams":
        await neighbour.open_streams()
        print(flush=True)
        await ended.wait()
    else:
        work = asyncio.create_task(neighbour.send_requests() if order.kind == "requests" else neighbour.flood())
        print(flush=True)
        await asyncio.wait({work, asyncio.create_task(ended.wait())}, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            work.result()
    sys.stdout.buffer.write(msgspec.json.encode(neighbour.report) + b"\n")
    sys.stdout.buffer.flush()
    os._exit(0)  # drops open connections without closing them


if __name__ == "__main__":
    uvloop.run(main())
