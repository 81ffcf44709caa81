"""The pulse: one timer for all streams. Whoever has been silent for too long gets a sign of life.

As often it is asked of each whether what has opened it still holds: a key may be revoked, and a token expires.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Literal, Protocol

LOOKS = 20
"""How often the timer looks at the streams in the time of one heartbeat. A stream gets its heartbeat up to two looks
before it is due, so no silence is longer than that time."""


Kind = Literal["stream", "socket"]


class Beating(Protocol):
    """A stream as the pulse sees it."""

    last_sent: float

    @property
    def kind(self) -> Kind: ...

    @property
    def format(self) -> str: ...

    still_holds: Callable[[], Awaitable[bool]]

    def beat(self) -> None:
        """Send a sign of life."""
        ...

    def expel(self) -> None:
        """Come to an end now, without another frame: who watches may not any more."""
        ...

    def close(self) -> None:
        """Come to an end."""
        ...


class Pulse:
    """Knows all open streams."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._streams: set[Beating] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self.closing = False
        self._quiet = asyncio.Event()
        self._quiet.set()

    def start(self) -> None:
        self._tasks = [
            asyncio.create_task(self._run(), name="limelight-pulse"),
            asyncio.create_task(self._check(), name="limelight-checks"),
        ]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def add(self, stream: Beating) -> None:
        self._streams.add(stream)
        self._quiet.clear()

    def remove(self, stream: Beating) -> None:
        self._streams.discard(stream)
        if not self._streams:
            self._quiet.set()

    def close(self) -> None:
        """No new streams; those that are open end."""
        self.closing = True
        for stream in list(self._streams):
            stream.close()

    async def closed(self, seconds: float) -> None:
        """Wait until all of them have said their last, but not for those who do not listen."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._quiet.wait(), seconds)

    @property
    def streams(self) -> int:
        return len(self._streams)

    def by_kind(self) -> Counter[tuple[Kind, str]]:
        """How many there are of each kind, in each format."""
        return Counter((stream.kind, stream.format) for stream in self._streams)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        step = self._seconds / LOOKS
        while True:
            await asyncio.sleep(step)
            due = loop.time() - self._seconds + 2 * step
            for stream in list(self._streams):
                if stream.last_sent <= due:
                    stream.beat()

    async def _check(self) -> None:
        """In a task of its own: to check a token may mean to ask its issuer, and no heart stands still for that."""
        while True:
            await asyncio.sleep(self._seconds)
            for stream in list(self._streams):
                if not await stream.still_holds() and stream in self._streams:
                    stream.expel()
                await asyncio.sleep(0)
