"""One turn of a chat: follows a run to its end, and sends its chunks and events to Open WebUI."""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable

from openwebui.parts.approvals import Approvals, EventCall
from openwebui.parts.frames import Frame, Json
from openwebui.parts.output_items import Chunk
from openwebui.parts.request import build_request
from openwebui.parts.run_presenter import LOG, STOPPED, STOPPED_HERE, TEXT_DISPLAY, RunPresenter
from openwebui.parts.run_stream import RunStream, cancel_run, registered_request
from openwebui.parts.server_client import ConnectionLost, LimelightClient, RequestRefused, error_message
from openwebui.parts.status_line import limit_statuses
from openwebui.parts.valves import DisplayOptions, Valves

EventEmitter = Callable[[Json], Awaitable[None]]
"""Open WebUI's `__event_emitter__`: sends an event to the chat."""

BATCH_SECONDS = 0.04
"""Minimum time between two batches. With a chunk for each token, browsers would still render long after the run."""
IDLE_SECONDS = 1.0
"""Time without frames after which an empty batch is yielded, so that a display can send deferred changes."""


class Turn:
    """One turn of a chat, from the request to the end of its run.

    Clients of Open WebUI's API have no event emitter and no event call. They get only text.
    """

    def __init__(
        self,
        valves: Valves,
        body: Json,
        user: Json,
        metadata: Json,
        event_emitter: EventEmitter | None,
        event_call: EventCall | None,
    ) -> None:
        self._valves = valves
        self._user = user
        self._metadata = metadata
        self._event_emitter = event_emitter
        self._event_call = event_call
        self._request = build_request(body, user, metadata)
        self._options = DisplayOptions.resolve(valves, user.get("valves"))
        if event_emitter is None:
            self._options = self._options._replace(display=TEXT_DISPLAY)

    async def text(self) -> str:
        """Run the turn and return all of its text, for callers without a stream."""
        self._options = self._options._replace(display=TEXT_DISPLAY)
        text, error = "", ""
        async with contextlib.aclosing(self.stream()) as chunks:
            async for chunk in chunks:
                if isinstance(chunk, str):
                    text += chunk
                elif "error" in chunk:
                    error = f"Error: {chunk['error']['message']}"
        return f"{text}\n\n{error}".strip() if error else text

    async def stream(self) -> AsyncGenerator[Chunk, None]:
        """Run the turn and yield its chunks. Open WebUI's Stop cancels this generator, which cancels the run."""
        async with registered_request(self._request), LimelightClient(self._valves, self._user) as client:
            queue: asyncio.Queue[Frame | None] = asyncio.Queue(1000)
            approvals = Approvals(client, self._event_call, queue.put, self._metadata)
            presenter = RunPresenter(client, self._options, self._valves.PUBLIC_URL, approvals)
            reader = asyncio.create_task(self._read(client, queue))
            try:
                async for frames in batches(queue):
                    events = [event for frame in frames for event in await presenter.feed(frame)]
                    for chunk in presenter.flush():
                        yield chunk
                    for event in limit_statuses(events):  # after the chunks: Open WebUI stores the chat for each event
                        await self._emit(event)
                for chunk in presenter.close():
                    yield chunk
            except (asyncio.CancelledError, GeneratorExit):
                presenter.outcome.status = STOPPED
                if not await self._cancel(client):
                    presenter.outcome.status = STOPPED_HERE
                raise
            except Exception as error:  # an exception of a pipe makes Open WebUI discard the message
                presenter.outcome.feed(await self._internal_error(client, error))
                for chunk in presenter.close():
                    yield chunk
            finally:
                reader.cancel()
                await asyncio.gather(reader, approvals.close(), return_exceptions=True)
                for event in presenter.final_events():
                    await self._emit(event)

    async def _read(self, client: LimelightClient, queue: asyncio.Queue[Frame | None]) -> None:
        """Put the frames of the run into the queue, followed by an error frame after a failure, and None at the end."""
        try:
            async for frame in RunStream(client, self._request, self._valves.RECONNECT_SECONDS).frames():
                await queue.put(frame)
        except (RequestRefused, ConnectionLost) as error:
            await queue.put(Frame("error", {"message": error_message(error)}))
        except Exception as error:  # the chat keeps the message and shows the error
            await queue.put(await self._internal_error(client, error))
        await queue.put(None)

    async def _internal_error(self, client: LimelightClient, error: Exception) -> Frame:
        """Handle a bug of the pipe: log it, cancel the run, and return an error frame for the chat."""
        LOG.error("Deep Agent Pipe: internal error", exc_info=error)
        await self._cancel(client)
        return Frame("error", {"message": f"{type(error).__name__}: {error}"})

    async def _cancel(self, client: LimelightClient) -> bool:
        return await cancel_run(self._valves, self._user, client, self._request)

    async def _emit(self, event: Json) -> None:
        if self._event_emitter is not None:
            with contextlib.suppress(Exception):  # a failed event must not end the run
                await self._event_emitter(event)


async def batches(queue: asyncio.Queue[Frame | None]) -> AsyncIterator[list[Frame]]:
    """Yield frames in batches until None: the first frame at once, then at most one batch per `BATCH_SECONDS`."""
    next_batch = 0.0
    while True:
        try:
            # Not `wait_for`: before Python 3.12 it loses a cancellation that arrives together with a frame.
            async with asyncio.timeout(IDLE_SECONDS):
                frames = [await queue.get()]
        except TimeoutError:
            yield []
            continue
        await asyncio.sleep(max(0.0, next_batch - time.monotonic()))
        while not queue.empty():
            frames.append(queue.get_nowait())
        next_batch = time.monotonic() + BATCH_SECONDS
        yield [frame for frame in frames if frame is not None]
        if None in frames:
            return
