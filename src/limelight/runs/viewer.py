"""A viewer reads the log of a session in one format: first the Records that it missed, then new ones.

A viewer that has missed Records replays: it reads them from the store and encodes them itself, with neighbouring deltas
joined where the format allows it. When it has caught up, it is live: it reads the frame buffer of the format in the
hub, which all live viewers share. A viewer that falls behind the buffer replays again. It holds a position and at most
one batch of frames, never a queue.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Self

from limelight.deltas import Delta
from limelight.dialects.base import Dialect, Frame
from limelight.dialects.frame_encoder import FrameEncoder
from limelight.events import TERMINAL_TYPES, Record
from limelight.models import Cursor, SessionRef
from limelight.runs.hub import FrameBatch, FrameBuffer, Hub
from limelight.stores.base import Store

BATCH = 128
"""Number of Records that one read of a replay returns, unless the format allows more."""
BATCH_BYTES = 256 * 1024
"""Size in bytes that the frames of one read should have, for formats that allow more than BATCH Records."""
MAX_BATCH_TEXT = 1024 * 1024
"""Number of characters after which a replay encodes no further Records of a read, so that a slow client holds little
more than this in memory. The next read returns the rest again."""
NOTHING = FrameBatch(())


class Format(NamedTuple):
    """A wire format of streams: a dialect with its name and the options that its frames depend on."""

    name: str
    make_dialect: Callable[..., Dialect]
    root: str = ""
    """The root path of the server, with which links in frames begin."""
    batch: int = BATCH
    """Maximum number of Records that one read of a replay returns. Reads are this large only if Records are small."""

    @property
    def buffer(self) -> str:
        """The key of the format's frame buffer. Viewers with equal keys share frames."""
        return self.name + self.root

    @property
    def event_name(self) -> str:
        """The name in the `event:` line of the format's server-sent events; "" without such a line."""
        return self.make_dialect(self.root).event_name

    def encoder(self) -> FrameEncoder:
        return FrameEncoder(partial(self.make_dialect, self.root) if self.root else self.make_dialect)


class Viewer:
    """Returns the frames of a session's log one batch after the other, from a cursor on, also while a run is live.

    It is a context manager. No Record that is published after it was entered is missed, so enter it before the run
    begins. Then call `start` with the cursor.
    """

    def __init__(self, hub: Hub, store: Store, ref: SessionRef, format_: Format) -> None:
        self.format = format_
        self._hub = hub
        self._store = store
        self._ref = ref
        self._only_run = False
        self._min_end = 0
        """With `only_run`, a run that ends before this Record does not end the view."""
        self._batch = BATCH
        self._at = 0
        """Number of the last Record whose frames were returned, or that the client already has."""
        self._skip = 0
        """Number of frames of Record `_at` + 1 that the client already has."""
        self._encoder: FrameEncoder | None = None
        """The encoder of a replay, None while live. It was fed the Records up to `_fed`, which may be before `_at`."""
        self._fed = 0
        self._ended = False
        self._woken = False
        self._waiting: asyncio.Future[None] | None = None
        self._reading: asyncio.Task[list[Record]] | None = None
        """The task of a read of the store that is in progress."""
        self._published = 0
        """Number of the newest published Record at the time when the read in `_reading` began."""
        self._heartbeat: asyncio.Future[None] | None = None
        """A future that is done when `next` has to return for a heartbeat before the read in `_reading` has ended."""

    def __enter__(self) -> Self:
        self._channel = self._hub.enter(self._ref, self.format.buffer)
        return self

    def __exit__(self, *_: object) -> None:
        if self._reading is not None and not self._reading.cancel() and not self._reading.cancelled():
            self._reading.exception()  # retrieved, so that asyncio does not log it
        self._hub.leave(self._ref, self._channel, self.format.buffer)

    def start(self, cursor: Cursor, *, only_run: bool = False, min_end: int = 0, is_new_run: bool = False) -> None:
        """Set the position in the log: `next` returns the frames after `cursor`.

        With `only_run`, the view ends with the first run that ends after `cursor`, and not before Record `min_end`.
        `is_new_run` says that a new run begins after `cursor`, so that usually nothing has to be replayed.
        """
        self._only_run, self._min_end = only_run, min_end
        inside = cursor.k > 0 and cursor.seq > 0
        self._at = self._fed = cursor.seq - 1 if inside else cursor.seq
        self._skip = cursor.k if inside else 0
        if is_new_run:
            self._encoder = self.format.encoder()
            self._go_live(self._encoder)

    @property
    def is_deleted(self) -> bool:
        """Whether the session of this viewer was deleted."""
        return self._channel.deleted

    def next_run(self) -> None:
        """Continue after the end of a run: `next` returns the frames of the next run."""
        self._ended = False

    def wake(self, *, in_read: bool = False) -> None:
        """Make a waiting `next` return an empty batch, so that its caller can send a heartbeat or close.

        With `in_read`, `next` returns even while it waits for a read of the store. A later call returns the frames of
        that read.
        """
        self._woken = True
        for waiting in (self._waiting, self._heartbeat if in_read else None):
            if waiting is not None and not waiting.done():
                waiting.set_result(None)

    @property
    def is_reading(self) -> bool:
        """Whether the last `next` returned while a read of the store was still in progress."""
        return self._reading is not None

    async def next(self) -> FrameBatch | None:
        """Return the next frames to send; an empty batch if `wake` was called, and None at the end of the view."""
        while not self._ended and not self._has_all_of_deleted():
            if self._encoder is not None:
                batch = await self._replay(self._encoder)
            elif (buffer := self._buffer()) is None:
                await self._restart_replay()
                continue
            elif self._at < buffer.head:
                end = buffer.end_after(max(self._at, self._min_end - 1)) if self._only_run else None
                until = buffer.head if end is None else end
                batch = buffer.since(self._at, until)
                self._at, self._ended = until, end is not None
            else:  # there is nothing new, or this viewer has read Records that the hub has not published yet
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
        """Whether the session was deleted, and the frame buffer has no more frames for this viewer."""
        if not self._channel.deleted:
            return False
        buffer = self._channel.buffers.get(self.format.buffer)
        return self._encoder is not None or buffer is None or not buffer.base - 1 <= self._at < buffer.head

    def _buffer(self) -> FrameBuffer | None:
        """Return the hub's frame buffer if it has the frames after the position; None if this viewer has to replay."""
        buffer = self._channel.buffers.get(self.format.buffer)
        return buffer if buffer is not None and not self._skip and self._at >= buffer.base - 1 else None

    async def _restart_replay(self) -> None:
        """Start a replay. Its encoder is fed from the beginning of the current run, as dialects require."""
        run = await self._store.run_covering(self._ref, self._at + 1)
        self._fed = self._at if run is None else min(self._at, run.first_seq - 1)
        self._encoder = self.format.encoder()

    async def _replay(self, encoder: FrameEncoder) -> FrameBatch:
        """Return the frames of the next Records in the store. If there are none, switch to the hub's frame buffer."""
        records = await self._read()
        if records is None:
            return NOTHING
        if not records:
            # Records that were published before the read, and are not in the store, were deleted: do not wait for them.
            self._fed = max(self._fed, self._published)
            self._skip = 0
            self._go_live(encoder)
            return NOTHING
        frames: list[Frame] = []
        if records[0].seq > max(self._fed, self._at) + 1:
            frames.append(encoder.gap(self._at + 1, records[0].seq - 1))
            self._skip = 0  # the Record of these frames was deleted
        fresh: list[Record] = []
        size = 0
        for record in records:
            if size > MAX_BATCH_TEXT:
                break
            size += _text_size(record)
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
            if self._only_run and record.seq >= self._min_end and isinstance(record.event, TERMINAL_TYPES):
                self._ended = True
                break
        frames += encoder.catch_up(fresh)
        batch = FrameBatch(frames)
        self._adapt_batch(batch.size)
        return batch

    async def _read(self) -> list[Record] | None:
        """Return the next Records from the store; None if a heartbeat has to be sent before this read is done."""
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
        """Adapt the number of Records per read of a replay: more after a small batch, fewer after a large one."""
        if size > BATCH_BYTES:
            self._batch = max(BATCH, self._batch // 2)
        elif 2 * size < BATCH_BYTES:
            self._batch = min(self.format.batch, self._batch * 2)

    def _go_live(self, encoder: FrameEncoder) -> None:
        """Switch from replay to the frame buffer of the hub, if it has all Records that follow.

        If the hub has no buffer of this format, create it, unless newer Records were already published.
        """
        buffer = self._channel.buffers.get(self.format.buffer)
        if buffer is None and self._fed >= self._channel.published:
            self._channel.buffers[self.format.buffer] = FrameBuffer(encoder, self._fed)
            self._encoder = None
        elif buffer is not None and self._fed >= buffer.base - 1:
            self._encoder = None


def _text_size(record: Record) -> int:
    """Return the number of characters in the text fields of a Record. The other fields are small."""
    event = record.event
    if isinstance(event, Delta):
        return len(event.text)
    return sum(len(value) for name in event.__struct_fields__ if isinstance(value := getattr(event, name), str))
