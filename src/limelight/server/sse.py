"""A stream of server-sent events: the framing, and the ASGI application that sends a viewer's frames.

The stream sends the frames of its viewer, and a comment as a heartbeat when there was nothing to send for a while. It
ends when the view ends, the client leaves or the server closes. It sends once per wake-up, and queues nothing for a
client that does not read.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from starlette.types import Receive, Scope, Send

from limelight.dialects.base import Frame
from limelight.errors import StoreError
from limelight.runs.viewer import Viewer
from limelight.server.heartbeat import Kind, Pulse

RETRY = b"retry: 1000\n\n"
PING = b": ping\n\n"
HEADERS = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)


class SseFraming:
    """Frames in, bytes of server-sent events out. `sse_framing` makes one for each event name, so that bytes are
    shared."""

    def __init__(self, event_name: str) -> None:
        self._head = b"event: %b\ndata: " % event_name.encode() if event_name else b"data: "

    def __call__(self, frames: Sequence[Frame]) -> bytes:
        head = self._head
        return b"".join([b"id: %b\n%b%b\n\n" % (cursor.encode(), head, payload) for cursor, payload in frames])

    def without_ids(self, payloads: Iterable[bytes]) -> bytes:
        """Frames that are in no log and cannot be resumed at."""
        return b"".join([b"%b%b\n\n" % (self._head, payload) for payload in payloads])


@cache
def sse_framing(event_name: str = "") -> SseFraming:
    return SseFraming(event_name)


class EventStream:
    """An ASGI application for one response.

    `viewer` is entered already and left by us. `begin`, if given, has to be awaited before the view starts: the run
    has not begun yet. If it is stopped or refused before it begins, `refused` makes the frames that say so.
    """

    kind: Kind = "stream"

    def __init__(
        self,
        viewer: Viewer,
        pulse: Pulse,
        headers: Mapping[str, str],
        still_holds: Callable[[], Awaitable[bool]],
        begin: "asyncio.Task[Any] | None" = None,
        refused: Callable[[BaseException], bytes] | None = None,
    ) -> None:
        self._viewer = viewer
        self.format = viewer.format.name
        self._framing = sse_framing(viewer.format.event_name)
        self._pulse = pulse
        self.still_holds = still_holds
        self._headers = [*HEADERS, *((k.encode(), v.encode()) for k, v in headers.items())]
        self._begin = begin
        self._refused = refused
        self._loop = asyncio.get_running_loop()
        self._turn_wake: asyncio.Future[None] | None = None
        self._over = False
        self._gone = False
        self.last_sent = self._loop.time()

    def beat(self) -> None:
        self._viewer.wake(in_read=True)
        self._end_wait_for_turn()

    def close(self) -> None:
        self._over = True
        self._viewer.wake()
        self._end_wait_for_turn()

    def _end_wait_for_turn(self) -> None:
        if self._turn_wake is not None and not self._turn_wake.done():
            self._turn_wake.set_result(None)

    def expel(self) -> None:
        """The stream ends without the last word of its run: who comes again is told why."""
        self._gone = True
        self.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        leaving = asyncio.create_task(self._until_gone(receive))
        self._pulse.add(self)
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self._headers})
            if scope["method"] != "HEAD":
                await self._send(send, RETRY)
                if self._begin is None or await self._wait_for_turn(self._begin, send):
                    await self._follow(send)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except asyncio.CancelledError:
            pass  # the server has waited long enough for this client
        except StoreError as error:  # the stream ends without the last word of its run, so its client comes again
            scope["app"].state.parts.metrics.refused(error)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._pulse.remove(self)
            self._viewer.__exit__()
            leaving.cancel()

    async def _follow(self, send: Send) -> None:
        while (batch := await self._viewer.next()) is not None and not self._gone:
            if batch:
                data = batch.encoded(self._framing)
                del batch  # while a client does not read, only the bytes are kept
                await self._send(send, data)
            elif self._over and not self._viewer.is_reading:
                return
            else:
                await self._send(send, PING)

    async def _wait_for_turn(self, begin: "asyncio.Task[Any]", send: Send) -> bool:
        """Signs of life until the run begins. False if there is nothing to follow."""
        while not begin.done():
            self._turn_wake = self._loop.create_future()
            waits: set[Awaitable[object]] = {begin, self._turn_wake}
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)  # pyright: ignore[reportArgumentType]
            if self._gone:
                return False
            if not begin.done():
                await self._send(send, PING)
        error = begin.exception()
        if error is not None and self._refused is not None:
            await self._send(send, self._refused(error))
        return error is None

    async def _send(self, send: Send, data: bytes) -> None:
        await send({"type": "http.response.body", "body": data, "more_body": True})
        self.last_sent = self._loop.time()

    async def _until_gone(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._gone = True
        self.close()
