"""One viewer's position in a session's log, in one format: first what it missed, then what is published.

It replays from the store with its own encoder, neighbouring deltas joined where the format allows it, until it has
caught up; then it goes live: it reads the format's frame buffer in the hub, which it shares with other viewers. If it
falls behind the buffer, it replays again. It holds a position and at most one batch, never a queue.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Self

from limelight.dialects.base import Cursor, Dialect, Frame
from limelight.dialects.encoder import FrameEncoder
from limelight.events import TERMINAL_TYPES, Record
from limelight.models import SessionRef
from limelight.runs.hub import FrameBatch, FrameBuffer, Hub
from limelight.stores.base import Store

BATCH = 128
"""Records that a replay reads and sends at once, unless its format takes more."""
BATCH_BYTES = 256 * 1024
"""Approximate size of a batch for a format that takes more."""
NOTHING = FrameBatch(())


class Format(NamedTuple):
    """A dialect by its name, with the options that its frames depend on."""

    name: str
    make_dialect: Callable[..., Dialect]
    root: str = ""
    """Prefix of links."""
    batch: int = BATCH
    """Records that a replay may read at once where they are small."""

    @property
    def buffer(self) -> str:
        """The key of its frame buffer: viewers with equal keys share frames."""
        return self.name + self.root

    @property
    def event_name(self) -> str:
        """The SSE `event:` of its frames."""
        return self.make_dialect(self.root).event_name

    def encoder(self) -> FrameEncoder:
        return FrameEncoder(partial(self.make_dialect, self.root) if self.root else self.make_dialect)


class Viewer:
    """A context manager. `start` sets the position; `next` returns frames, no frames if it was woken, None at the end.

    Enter it before the run begins that it shows: from then on it misses nothing that is published.
    """

    def __init__(self, hub: Hub, store: Store, ref: SessionRef, format_: Format) -> None:
        self.format = format_
        self._hub = hub
        self._store = store
        self._ref = ref
        self._only_run = False
        self._through = 0
        """Runs that end before this Record do not end the view."""
        self._batch = BATCH
        self._at = 0
        """The last Record that was returned, or that the client has."""
        self._skip = 0
        """Frames of the following Record that the client has as well."""
        self._encoder: FrameEncoder | None = None
        """Set during a replay: it has been fed up to `_fed`, which may be before `_at`."""
        self._fed = 0
        self._ended = False
        self._woken = False
        self._waiting: asyncio.Future[None] | None = None
        self._reading: asyncio.Task[list[Record]] | None = None
        """A read of the store that is in progress."""
        self._published = 0
        """The newest published Record when that read began."""
        self._heartbeat: asyncio.Future[None] | None = None
        """Done when `next` is to return before the read has ended."""

    def __enter__(self) -> Self:
        self._channel = self._hub.enter(self._ref, self.format.buffer)
        return self

    def __exit__(self, *_: object) -> None:
        if self._reading is not None and not self._reading.cancel() and not self._reading.cancelled():
            self._reading.exception()  # retrieved, so that asyncio does not log it
        self._hub.leave(self._ref, self._channel, self.format.buffer)

    def start(self, cursor: Cursor, *, only_run: bool = False, through: int = 0, fresh: bool = False) -> None:
        """Start after `cursor`. With `only_run` the view ends with the run that it starts in, but not before Record
        `through`, so that several ended runs come in one view.

        `fresh` says that a run begins right there, so that there is nothing to replay unless it was very fast.
        """
        self._only_run, self._through = only_run, through
        inside = cursor.k > 0 and cursor.seq > 0
        self._at = self._fed = cursor.seq - 1 if inside else cursor.seq
        self._skip = cursor.k if inside else 0
        if fresh:
            self._encoder = self.format.encoder()
            self._go_live(self._encoder)

    @property
    def is_deleted(self) -> bool:
        """Whether the session was deleted."""
        return self._channel.deleted

    def next_run(self) -> None:
        """Continue after the end of a run with the next one."""
        self._ended = False

    def wake(self, *, in_read: bool = False) -> None:
        """Make a waiting `next` return no frames, so that its caller can send a heartbeat or close.

        With `in_read` also while it waits for the store; the result of that read comes with a later call.
        """
        self._woken = True
        for waiting in (self._waiting, self._heartbeat if in_read else None):
            if waiting is not None and not waiting.done():
                waiting.set_result(None)

    @property
    def is_reading(self) -> bool:
        """Whether `next` has returned before a read of the store has ended."""
        return self._reading is not None

    async def next(self) -> FrameBatch | None:
        """The next frames to send."""
        while not self._ended and not self._has_all_of_deleted():
            if self._encoder is not None:
                batch = await self._replay(self._encoder)
            elif (buffer := self._buffer()) is None:
                await self._restart_replay()
                continue
            elif self._at < buffer.head:
                end = buffer.end_after(max(self._at, self._through - 1)) if self._only_run else None
                until = buffer.head if end is None else end
                batch = buffer.since(self._at, until)
                self._at, self._ended = until, end is not None
            else:  # nothing new, or the store was faster than the hub
                batch = NOTHING
            if batch:
                return batch
            if self._woken:
                self._woken = False
                return NOTHING
            if self._encoder is None and not self._ended and not self._channel.deleted:
                self._waiting = self._channel.wait()
                await self._waiting
        return None

    def _has_all_of_deleted(self) -> bool:
        """Whether the session was deleted and the frame buffer has nothing more for this viewer."""
        if not self._channel.deleted:
            return False
        buffer = self._channel.buffers.get(self.format.buffer)
        return self._encoder is not None or buffer is None or not buffer.base - 1 <= self._at < buffer.head

    def _buffer(self) -> FrameBuffer | None:
        """The frame buffer, if it has or will have the next Record. It has complete Records only."""
        buffer = self._channel.buffers.get(self.format.buffer)
        return buffer if buffer is not None and not self._skip and self._at >= buffer.base - 1 else None

    async def _restart_replay(self) -> None:
        """Start a replay at the beginning of the current run, because dialects start there."""
        run = await self._store.run_covering(self._ref, self._at + 1)
        self._fed = self._at if run is None else min(self._at, run.first_seq - 1)
        self._encoder = self.format.encoder()

    async def _replay(self, encoder: FrameEncoder) -> FrameBatch:
        """The next frames that were missed."""
        records = await self._read()
        if records is None:
            return NOTHING
        if not records:
            # Records that were published before the read and are not in the store were removed: do not wait for them.
            self._fed = max(self._fed, self._published)
            self._skip = 0
            self._go_live(encoder)
            return NOTHING
        frames: list[Frame] = []
        if records[0].seq > max(self._fed, self._at) + 1:
            frames.append(encoder.gap(self._at + 1, records[0].seq - 1))
            self._skip = 0  # the Record that it counts in was removed
        fresh: list[Record] = []
        for record in records:
            self._fed = record.seq
            if record.seq <= self._at:
                encoder.feed(record)
                continue
            self._at = record.seq
            if self._skip:
                frames += encoder.encode(record, skip=self._skip)
                self._skip = 0
            else:
                fresh.append(record)
            if self._only_run and record.seq >= self._through and isinstance(record.event, TERMINAL_TYPES):
                self._ended = True
                break
        frames += encoder.catch_up(fresh)
        batch = FrameBatch(frames)
        self._adapt_batch(batch.size)
        return batch

    async def _read(self) -> list[Record] | None:
        """The next Records of the log; None if a heartbeat is due before they are read."""
        reading = self._reading
        if reading is None:
            self._published = self._channel.published
            reading = asyncio.create_task(self._store.records(self._ref, after=self._fed, limit=self._batch))
            self._reading = reading
        self._heartbeat = asyncio.get_running_loop().create_future()
        await asyncio.wait((reading, self._heartbeat), return_when=asyncio.FIRST_COMPLETED)
        if not reading.done():
            return None
        self._reading = None
        return reading.result()

    def _adapt_batch(self, size: int) -> None:
        """Read more at once while Records are small, within bounds for memory and for the time of one step."""
        if size > BATCH_BYTES:
            self._batch = max(BATCH, self._batch // 2)
        elif 2 * size < BATCH_BYTES:
            self._batch = min(self.format.batch, self._batch * 2)

    def _go_live(self, encoder: FrameEncoder) -> None:
        """After all committed Records: share the frame buffer, or create it. If more was published since, read on."""
        buffer = self._channel.buffers.get(self.format.buffer)
        if buffer is None and self._fed >= self._channel.published:
            self._channel.buffers[self.format.buffer] = FrameBuffer(encoder, self._fed)
            self._encoder = None
        elif buffer is not None and self._fed >= buffer.base - 1:
            self._encoder = None
