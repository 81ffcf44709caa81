"""Heartbeats of open streams and sockets: one timer for all of them, which writes to those that were silent too long.

At the same interval it checks that each client is still authorized: a key may be revoked, and a token expires.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Literal, Protocol

CHECKS_PER_INTERVAL = 20
"""How often the timer looks at the streams per heartbeat interval. A stream gets its heartbeat up to two checks before
it is due, so no silence is longer than the interval."""

Kind = Literal["stream", "socket"]


class OpenStream(Protocol):
    """A stream or socket as the heartbeat sees it."""

    last_sent: float
    """When something was last sent, by the clock of the loop."""

    @property
    def kind(self) -> Kind: ...

    @property
    def format(self) -> str: ...

    @property
    def is_still_authorized(self) -> Callable[[], Awaitable[bool]]: ...

    def ping(self) -> None:
        """Send a heartbeat."""
        ...

    def revoke(self) -> None:
        """End now, without another frame, because the client is no longer authorized."""
        ...

    def close(self) -> None:
        """End after the frames that are there."""
        ...


class Heartbeat:
    """Knows all open streams. It pings them, revokes them, counts them, and closes them when the server stops."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._streams: set[OpenStream] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self._all_closed = asyncio.Event()
        self._all_closed.set()
        self.is_closing = False

    def start(self) -> None:
        self._tasks = [
            asyncio.create_task(self._ping_streams(), name="limelight-heartbeat"),
            asyncio.create_task(self._check_authorization(), name="limelight-authorization"),
        ]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def add(self, stream: OpenStream) -> None:
        self._streams.add(stream)
        self._all_closed.clear()

    def remove(self, stream: OpenStream) -> None:
        self._streams.discard(stream)
        if not self._streams:
            self._all_closed.set()

    def close(self) -> None:
        """Close all open streams. Streams that are added later have to check `is_closing`."""
        self.is_closing = True
        for stream in list(self._streams):
            stream.close()

    async def wait_closed(self, seconds: float) -> None:
        """Wait until all streams have ended, at most for `seconds`: some clients do not read."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._all_closed.wait(), seconds)

    @property
    def streams(self) -> int:
        return len(self._streams)

    def count_by_kind(self) -> Counter[tuple[Kind, str]]:
        """The open streams of each kind and format."""
        return Counter((stream.kind, stream.format) for stream in self._streams)

    async def _ping_streams(self) -> None:
        loop = asyncio.get_running_loop()
        step = self._seconds / CHECKS_PER_INTERVAL
        while True:
            await asyncio.sleep(step)
            due = loop.time() - self._seconds + 2 * step
            for stream in list(self._streams):
                if stream.last_sent <= due:
                    stream.ping()

    async def _check_authorization(self) -> None:
        """Runs as its own task: a check may ask the issuer of a token, and heartbeats must not wait for that."""
        while True:
            await asyncio.sleep(self._seconds)
            for stream in list(self._streams):
                if not await stream.is_still_authorized() and stream in self._streams:
                    stream.revoke()
                await asyncio.sleep(0)
