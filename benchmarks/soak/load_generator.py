"""The load generator (`python -m benchmarks.soak.load_generator`): clients that start runs, and viewers that reconnect.

It writes a report every second. When its standard input ends, it starts no more runs, waits until all clients have
received everything, and writes the last report.
"""

import asyncio
import os
import random
import sys

import msgspec
import uvloop

from benchmarks.http_stream import request_bytes
from benchmarks.server_process import raise_fd_limit
from benchmarks.soak.server import LoadOrder, LoadReport
from benchmarks.soak.viewer import Connection, Reporter, Sequence

AWAY_SECONDS = 1.0
"""The longest time until a viewer reconnects."""
LAST_SECONDS = 60
"""Time limit for the arrival of the last numbers."""
NUMBERS_PER_RUN = 150, 250
"""Range of the count of numbers in a run, random so that runs end at different times. Sessions continue to count."""
MAX_OPENING = 200
"""Maximum number of connections that are being opened at the same time."""


class Load:
    """All clients of one soak test: those that start runs, and the viewers of their sessions."""

    def __init__(self, order: LoadOrder) -> None:
        self._order = order
        self._rng = random.Random(order.seed)
        self._opening = asyncio.Semaphore(MAX_OPENING)
        self.reporter = Reporter()
        self.ending = asyncio.Event()
        self.open_streams = 0

    async def run(self) -> None:
        """Keep all sessions busy until `ending` is set and everything has arrived."""
        async with asyncio.TaskGroup() as tasks:
            for number in range(self._order.sessions):
                tasks.create_task(self._run_session(f"soak-{number}"))

    async def _run_session(self, session_id: str) -> None:
        owner, viewers = Sequence(), [Sequence() for _ in range(self._order.viewers)]
        started = asyncio.Event()
        watching = [asyncio.create_task(self._watch(session_id, viewer, started)) for viewer in viewers]
        try:
            await asyncio.sleep(self._rng.random() * 2)
            while not self.ending.is_set():
                count = self._rng.randint(*NUMBERS_PER_RUN)
                body = {"session_id": session_id, "messages": [{"role": "user", "content": f"{owner.next} {count}"}]}
                expected = owner.next + count
                connection = await self._connect("POST", "/chat/stream", owner, msgspec.json.encode(body))
                started.set()
                await self._wait_closed(connection)
                if owner.next != expected and not self.ending.is_set():  # ended early or refused
                    self.reporter.report.broken += 1
                    await asyncio.sleep(AWAY_SECONDS)
            await self._wait_for_viewers(owner, viewers)
        finally:
            for task in watching:
                task.cancel()

    async def _watch(self, session_id: str, sequence: Sequence, started: asyncio.Event) -> None:
        """Watch a session as a viewer that disconnects and resumes after its last frame, again and again."""
        await started.wait()
        while True:
            connection = await self._connect("GET", f"/sessions/{session_id}/stream", sequence)
            stay_seconds = self._rng.uniform(0.5, 1.5) * self._order.stay_seconds
            try:
                await asyncio.wait_for(self._wait_closed(connection), stay_seconds)
                self.reporter.report.broken += 1
            except TimeoutError:
                pass
            finally:
                connection.transport.abort()
            await asyncio.sleep(self._rng.random() * AWAY_SECONDS)
            self.reporter.report.resumes += 1

    async def _connect(self, method: str, path: str, sequence: Sequence, content: bytes = b"") -> Connection:
        headers = "connection: close\r\n" + ("" if content else f"last-event-id: {sequence.last_id}\r\n")
        request = request_bytes(self._order.port, method, path, content, headers=headers)
        loop = asyncio.get_running_loop()
        async with self._opening:
            _, connection = await loop.create_connection(
                lambda: Connection(request, sequence, self.reporter), "127.0.0.1", self._order.port
            )
            await asyncio.wait({connection.answered, connection.closed}, return_when=asyncio.FIRST_COMPLETED)
        return connection

    async def _wait_closed(self, connection: Connection) -> None:
        self.open_streams += 1
        try:
            await asyncio.shield(connection.closed)
        finally:
            self.open_streams -= 1

    async def _wait_for_viewers(self, owner: Sequence, viewers: list[Sequence]) -> None:
        """Wait until all viewers have the owner's numbers. After the time limit, missing numbers count as lost."""
        deadline = asyncio.get_running_loop().time() + LAST_SECONDS
        while any(viewer.next != owner.next for viewer in viewers):
            if asyncio.get_running_loop().time() > deadline:
                self.reporter.report.lost += sum(owner.next - viewer.next for viewer in viewers)
                return
            await asyncio.sleep(0.1)


def write_report(report: LoadReport) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(report) + b"\n")
    sys.stdout.buffer.flush()


async def main() -> None:
    raise_fd_limit()
    load = Load(msgspec.json.decode(sys.stdin.buffer.readline(), type=LoadOrder))
    asyncio.get_running_loop().add_reader(sys.stdin, load.ending.set)
    work = asyncio.create_task(load.run())
    while not work.done():
        await asyncio.wait({work}, timeout=1)
        report = load.reporter.take()
        report.streams = load.open_streams
        report.last = work.done()
        write_report(report)
        if load.ending.is_set():
            asyncio.get_running_loop().remove_reader(sys.stdin)
    work.result()
    os._exit(0)  # drops open connections without closing them


if __name__ == "__main__":
    uvloop.run(main())
