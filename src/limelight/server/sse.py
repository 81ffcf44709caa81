"""Server-sent events: the encoding of frames, and the ASGI application that sends the frames of a viewer.

A stream ends when its viewer ends, the client disconnects or the server stops. While the client does not read, a stream
queues nothing. Heartbeats are comments; `open_streams.py` triggers them.
"""

import asyncio
import logging
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from starlette.types import Receive, Scope, Send

from limelight.dialects.base import Frame
from limelight.errors import LimelightError, StoreError
from limelight.events import Record, RunCancelled, RunFailed, RunStarted, Terminal
from limelight.ids import sortable_id
from limelight.log_context import log_fields
from limelight.runs.hub import FrameBatch
from limelight.runs.queue import QueuedRun, StoppedInQueue
from limelight.runs.viewer import Format, Viewer
from limelight.server.endpoint import ApiRequest
from limelight.server.open_streams import Kind
from limelight.server.problem_details import UNEXPECTED_DETAIL
from limelight.server.request_body import wait_for_disconnect

log = logging.getLogger(__name__)
RETRY = b"retry: 1000\n\n"
PING = b": ping\n\n"
HEADERS = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)


class SseFraming:
    """Encodes frames as server-sent events. `sse_framing` caches one per event name, so that streams share bytes."""

    def __init__(self, event_name: str) -> None:
        self._head = b"event: %b\ndata: " % event_name.encode() if event_name else b"data: "

    def __call__(self, frames: Sequence[Frame]) -> bytes:
        head = self._head
        return b"".join([b"id: %b\n%b%b\n\n" % (cursor.encode(), head, payload) for cursor, payload in frames])

    def without_ids(self, payloads: Iterable[bytes]) -> bytes:
        """Encode payloads that are not in the log, as events without an id, so that no client resumes at them."""
        return b"".join([b"%b%b\n\n" % (self._head, payload) for payload in payloads])


@cache
def sse_framing(event_name: str = "") -> SseFraming:
    return SseFraming(event_name)


def refusal_frames(format_: Format, queued: QueuedRun, error: BaseException) -> bytes:
    """Return the SSE events that report a queued run as cancelled or failed, if its response has already begun."""
    encoder = format_.encoder()
    events = (RunStarted(agent=queued.request.agent.name), _terminal_event(queued, error))
    payloads = [payload for event in events for payload in encoder.feed(Record(0, queued.run_id, 0, event))]
    return sse_framing(format_.event_name).without_ids(payloads)


def _terminal_event(queued: QueuedRun, error: BaseException) -> Terminal:
    match error:
        case StoppedInQueue():
            return RunCancelled(reason=str(error))
        case LimelightError():
            return RunFailed(code=error.code, message=error.detail)
        case _:
            error_id = sortable_id("err_")
            extra = log_fields(run_id=queued.run_id, session_id=queued.ref.session_id, error_id=error_id)
            log.error("run %s cannot begin, %s", queued.run_id, error_id, exc_info=error, extra=extra)
            return RunFailed(code=LimelightError.code, message=UNEXPECTED_DETAIL, error_id=error_id)


class StartingRun(NamedTuple):
    """A run that has not begun yet: the task that will begin it and start its viewer, and the queued run."""

    task: "asyncio.Task[Any]"
    queued: QueuedRun


class EventStream:
    """The ASGI application of one SSE response, which sends the frames of a viewer.

    `viewer` has to be entered; the stream exits it at its end. `first` are frames that the viewer has already returned.
    With `starting`, the stream sends heartbeats until that run begins; if the run is stopped or refused before, the
    stream reports it as cancelled or failed.
    """

    kind: Kind = "stream"

    def __init__(
        self,
        request: ApiRequest,
        viewer: Viewer,
        headers: Mapping[str, str],
        starting: StartingRun | None = None,
        first: FrameBatch | None = None,
    ) -> None:
        self._viewer = viewer
        self._first = first
        self.format = viewer.format.name
        self._framing = sse_framing(viewer.format.event_name)
        self._open_streams = request.runtime.open_streams
        self._metrics = request.runtime.metrics
        self.is_still_authorized = request.is_still_authorized
        self._headers = [*HEADERS, *((name.encode(), value.encode()) for name, value in headers.items())]
        self._starting = starting
        self._loop = asyncio.get_running_loop()
        self._start_wake: asyncio.Future[None] | None = None
        self._is_closing = False
        self._is_disconnected = False
        self.last_sent = self._loop.time()

    def ping(self) -> None:
        self._viewer.wake(in_read=True)
        self._wake_start()

    def close(self) -> None:
        self._is_closing = True
        self._viewer.wake()
        self._wake_start()

    def _wake_start(self) -> None:
        if self._start_wake is not None and not self._start_wake.done():
            self._start_wake.set_result(None)

    def revoke(self) -> None:
        """End the stream without a terminal event. The client then reconnects, and is refused with the reason."""
        self._is_disconnected = True
        self.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        disconnect = asyncio.create_task(self._wait_for_disconnect(receive))
        self._open_streams.add(self)
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self._headers})
            if scope["method"] != "HEAD":
                await self._send(send, RETRY)
                if self._starting is None or await self._wait_for_start(self._starting, send):
                    await self._send_frames(send)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except asyncio.CancelledError:
            pass  # the shutdown has waited long enough for this client
        except StoreError as error:  # the stream ends without a terminal event, so the client reconnects
            self._metrics.count_refusal(error)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._open_streams.remove(self)
            self._viewer.__exit__()
            disconnect.cancel()

    async def _send_frames(self, send: Send) -> None:
        if self._first:
            await self._send(send, self._first.encoded(self._framing))
            self._first = None
        while (batch := await self._viewer.next()) is not None and not self._is_disconnected:
            if batch:
                data = batch.encoded(self._framing)
                del batch  # free the frames while `send` waits for the client
            elif self._is_closing and not self._viewer.is_reading:
                return
            else:
                data = PING
            await send({"type": "http.response.body", "body": data, "more_body": True})
            self.last_sent = self._loop.time()

    async def _wait_for_start(self, starting: StartingRun, send: Send) -> bool:
        """Send heartbeats until the run begins. Return False if it never begins, or if the client disconnects."""
        task = starting.task
        while not task.done():
            self._start_wake = self._loop.create_future()
            waits: set[Awaitable[object]] = {task, self._start_wake}
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)  # pyright: ignore[reportArgumentType]
            if self._is_disconnected:
                return False
            if not task.done():
                await self._send(send, PING)
        error = task.exception()
        if error is not None:
            await self._send(send, refusal_frames(self._viewer.format, starting.queued, error))
        return error is None

    async def _send(self, send: Send, data: bytes) -> None:
        await send({"type": "http.response.body", "body": data, "more_body": True})
        self.last_sent = self._loop.time()

    async def _wait_for_disconnect(self, receive: Receive) -> None:
        await wait_for_disconnect(receive)
        self._is_disconnected = True
        self.close()
