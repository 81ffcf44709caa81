"""The load (`python -m benchmarks.soak.load`): sessions that are asked again and again, and viewers that come and go.

It says every second what came; when its standard input ends it lets the runs end, waits until everybody has everything,
and says the last.
"""

import asyncio
import os
import random
import sys

import msgspec
import uvloop

from benchmarks.soak.fd_limit import raise_file_limit
from benchmarks.soak.protocol import Order, Second
from benchmarks.soak.viewer import Clock, Connection, Sequence
from benchmarks.stream import request

AWAY_SECONDS = 1.0
LAST_SECONDS = 60
"""For the last numbers to arrive."""
NUMBERS = 150, 250
"""In one run, from and to; then its session has the next one, which goes on counting. They do not all end at once."""
OPENING = 200
"""Connections that are opened at once."""


class Load:
    """All streams of one order."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._rng = random.Random(order.seed)
        self._opening = asyncio.Semaphore(OPENING)
        self.clock = Clock()
        self.ending = asyncio.Event()
        self.open = 0
        self.sequences: list[list[Sequence]] = []
        """Of each session: first that of the one who asks, then those of its viewers."""

    async def all(self) -> None:
        """Until they are told to end, and have."""
        async with asyncio.TaskGroup() as tasks:
            for number in range(self._order.sessions):
                sequences = [Sequence() for _ in range(1 + self._order.viewers)]
                self.sequences.append(sequences)
                tasks.create_task(self._session(f"soak-{number}", sequences))

    async def _session(self, session_id: str, sequences: list[Sequence]) -> None:
        asker, *viewers = sequences
        began = asyncio.Event()
        watching = [asyncio.create_task(self._view(session_id, viewer, began)) for viewer in viewers]
        try:
            await asyncio.sleep(self._rng.random() * 2)
            while not self.ending.is_set():
                count = self._rng.randint(*NUMBERS)
                asked = f"{asker.next} {count}"
                body = {"session_id": session_id, "messages": [{"role": "user", "content": asked}]}
                wanted = asker.next + count
                connection = await self._connect("POST", "/chat/stream", asker, msgspec.json.encode(body), began)
                await self._until_over(connection)
                if asker.next != wanted and not self.ending.is_set():  # cut or refused
                    self.clock.second.broken += 1
                    await asyncio.sleep(AWAY_SECONDS)
            await self._until_all_there(asker, viewers)
        finally:
            for task in watching:
                task.cancel()

    async def _view(self, session_id: str, sequence: Sequence, began: asyncio.Event) -> None:
        """Watch, leave, and come back behind the last frame, again and again."""
        await began.wait()
        while True:
            connection = await self._connect("GET", f"/sessions/{session_id}/stream", sequence)
            stays = self._rng.uniform(0.5, 1.5) * self._order.stay_seconds
            try:
                await asyncio.wait_for(self._until_over(connection), stays)
                self.clock.second.broken += 1
            except TimeoutError:
                pass
            finally:
                connection.transport.abort()
            await asyncio.sleep(self._rng.random() * AWAY_SECONDS)
            self.clock.second.resumes += 1

    async def _connect(
        self, method: str, path: str, sequence: Sequence, content: bytes = b"", began: asyncio.Event | None = None
    ) -> Connection:
        headers = "connection: close\r\n" + ("" if content else f"last-event-id: {sequence.last_id}\r\n")
        asked = request(self._order.port, method, path, content, headers=headers)
        loop = asyncio.get_running_loop()
        async with self._opening:
            _, connection = await loop.create_connection(
                lambda: Connection(asked, sequence, self.clock), "127.0.0.1", self._order.port
            )
            await asyncio.wait({connection.answered, connection.over}, return_when=asyncio.FIRST_COMPLETED)
        if began is not None:
            began.set()
        return connection

    async def _until_over(self, connection: Connection) -> None:
        self.open += 1
        try:
            await asyncio.shield(connection.over)
        finally:
            self.open -= 1

    async def _until_all_there(self, asker: Sequence, viewers: list[Sequence]) -> None:
        deadline = asyncio.get_running_loop().time() + LAST_SECONDS
        while any(viewer.next != asker.next for viewer in viewers):
            if asyncio.get_running_loop().time() > deadline:
                self.clock.second.lost += sum(asker.next - viewer.next for viewer in viewers)
                return
            await asyncio.sleep(0.1)


def say(second: Second) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(second) + b"\n")
    sys.stdout.buffer.flush()


async def main() -> None:
    raise_file_limit()
    load = Load(msgspec.json.decode(sys.stdin.buffer.readline(), type=Order))
    asyncio.get_running_loop().add_reader(sys.stdin, load.ending.set)
    work = asyncio.create_task(load.all())
    while not work.done():
        await asyncio.wait({work}, timeout=1)
        second = load.clock.turn()
        second.streams = load.open
        second.last = work.done()
        say(second)
        if load.ending.is_set():
            asyncio.get_running_loop().remove_reader(sys.stdin)
    work.result()
    os._exit(0)  # what is still open is cut, as by clients that are gone


if __name__ == "__main__":
    uvloop.run(main())
