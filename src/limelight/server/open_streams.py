"""Heartbeats of open SSE streams, and authorization checks of all open streams and sockets.

One timer sends a heartbeat to each stream that has sent nothing for the heartbeat interval. Sockets opt out by a
`last_sent` of infinity: uvicorn pings and closes them (`PING_SECONDS` in `process/uvicorn_server.py`). Another timer
ends streams and sockets whose key was revoked or whose token has expired.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Literal, Protocol

CHECKS_PER_INTERVAL = 20
"""Checks of the heartbeat timer per heartbeat interval. A heartbeat is sent up to two checks early, so that a stream is
never silent for longer than the interval."""
CONCURRENT_CHECKS = 8
"""Number of authorization checks that run at once, so that one that waits for a token issuer does not delay the
others."""
log = logging.getLogger(__name__)

Kind = Literal["stream", "socket"]


class OpenStream(Protocol):
    """The interface of an open SSE stream or WebSocket that `OpenStreams` uses."""

    last_sent: float
    """Time of the last send, by the clock of the event loop. Infinity disables heartbeats; sockets use it."""

    @property
    def kind(self) -> Kind: ...

    @property
    def format(self) -> str: ...

    @property
    def is_still_authorized(self) -> Callable[[], Awaitable[bool]]: ...

    def ping(self) -> None:
        """Send a heartbeat to the client, because nothing else was sent for some time."""
        ...

    def revoke(self) -> None:
        """End the stream without sending further frames, because its client is no longer authorized."""
        ...

    def close(self) -> None:
        """End the stream after sending the frames that are available now."""
        ...


class OpenStreams:
    """The registry of open streams and sockets: sends heartbeats, ends unauthorized ones, closes all at shutdown."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._streams: set[OpenStream] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self._all_closed = asyncio.Event()
        self._all_closed.set()
        self._errors_of_round = 0
        self._logged_error = ""
        """The last logged error of an authorization check; "" after a round of checks without an error."""
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
        """Close all open streams and sockets at shutdown. One that is added later has to check `is_closing` itself."""
        self.is_closing = True
        for stream in list(self._streams):
            stream.close()

    async def wait_closed(self, seconds: float) -> None:
        """Wait until all streams and sockets have ended, but at most `seconds`, because some clients do not read."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._all_closed.wait(), seconds)

    @property
    def count(self) -> int:
        return len(self._streams)

    def count_by_kind(self) -> Counter[tuple[Kind, str]]:
        """Return the number of open streams and sockets by kind and format, for metrics."""
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
        """End the streams and sockets whose clients are no longer authorized, once per heartbeat interval.

        This is a separate task because a check may send a request to a token issuer, which must not delay heartbeats.
        """
        while True:
            await asyncio.sleep(self._seconds)
            self._errors_of_round = 0
            streams = iter(list(self._streams))
            await asyncio.gather(*(self._check_streams(streams) for _ in range(CONCURRENT_CHECKS)))
            if not self._errors_of_round:
                self._logged_error = ""

    async def _check_streams(self, streams: Iterator[OpenStream]) -> None:
        """Revoke each stream of an iterator whose client is no longer authorized.

        Several calls share one iterator, so that a slow check does not delay the checks of other streams.
        """
        for stream in streams:
            if not await self._is_authorized(stream) and stream in self._streams:
                stream.revoke()
            await asyncio.sleep(0)

    async def _is_authorized(self, stream: OpenStream) -> bool:
        """Whether the client of a stream is still authorized. False if the check failed with an unexpected error."""
        try:
            return await stream.is_still_authorized()
        except Exception as error:  # the task must continue, because it checks all streams
            self._errors_of_round += 1
            if repr(error) != self._logged_error:  # log once, not with each stream
                log.error("the authorization of an open stream could not be checked, so it ends", exc_info=error)
            self._logged_error = repr(error)
            return False
