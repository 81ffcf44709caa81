"""One viewer's way through a session's log, in one format: first what it missed, then what comes.

It replays from the store with an encoder of its own, neighbouring deltas joined where the format allows it, until it
has caught up; then it boards the format's lane in the hub and shares frames with the others. If it falls off the
lane, it replays again. It holds a cursor and at most one batch, never a queue.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Self

from limelight.dialects.base import Cursor, Dialect
from limelight.dialects.encoder import SseEncoder
from limelight.events import TERMINAL_TYPES, Record
from limelight.models import SessionRef
from limelight.runs.hub import Hub, Lane
from limelight.stores.base import Store

BATCH = 128
"""Records that a replay reads and sends at once, unless its format takes more."""
BATCH_BYTES = 256 * 1024
"""A format that takes more gets as many as give about this much."""


class Format(NamedTuple):
    """A dialect by its name."""

    name: str
    make_dialect: Callable[..., Dialect]
    root: str = ""
    """What links begin with."""
    batch: int = BATCH
    """Records that a replay may read at once where they are small."""

    @property
    def lane(self) -> str:
        """Whoever has the same can share frames."""
        return self.name + self.root

    def encoder(self) -> SseEncoder:
        return SseEncoder(partial(self.make_dialect, self.root) if self.root else self.make_dialect)


class Viewer:
    """Use as `with`; `start` says where, `next` gives bytes, b"" if it was nudged, None at the end.

    Enter it before the run begins that it is to show: from then on nothing that is published can be missed.
    """

    def __init__(self, hub: Hub, store: Store, ref: SessionRef, format_: Format) -> None:
        self._hub = hub
        self._store = store
        self._ref = ref
        self._format = format_
        self._only_run = False
        self._through = 0
        """Runs that end before this one do not end the view."""
        self._batch = BATCH
        self._at = 0
        """The last Record that is dealt with: sent now, or known to the viewer."""
        self._skip = 0
        """Frames of the Record behind it that the viewer has as well."""
        self._encoder: SseEncoder | None = None
        """Set while we replay: it has been fed up to `_fed`, which may be behind `_at`."""
        self._fed = 0
        self._ended = False
        self._nudged = False
        self._waiting: asyncio.Future[None] | None = None
        self._reading: asyncio.Task[list[Record]] | None = None
        """A read of the store that has begun."""
        self._published = 0
        """What was published when it began."""
        self._heartbeat: asyncio.Future[None] | None = None
        """Done when `next` is to return although the read has not ended."""

    def __enter__(self) -> Self:
        self._channel = self._hub.enter(self._ref, self._format.lane)
        return self

    def __exit__(self, *_: object) -> None:
        if self._reading is not None and not self._reading.cancel() and not self._reading.cancelled():
            self._reading.exception()  # so that asyncio does not report an error that has no reader any more
        self._hub.leave(self._ref, self._channel, self._format.lane)

    @property
    def format(self) -> str:
        """The name of what it shows the log in."""
        return self._format.name

    def start(self, cursor: Cursor, *, only_run: bool = False, through: int = 0, fresh: bool = False) -> None:
        """Begin behind `cursor`. With `only_run` the view ends with the run that it begins in, but not before Record
        `through`: so that runs which are history come in one go.

        `fresh` says that a run begins right there, so that there is nothing to replay unless it was very fast.
        """
        self._only_run, self._through = only_run, through
        inside = cursor.k > 0 and cursor.seq > 0
        self._at = self._fed = cursor.seq - 1 if inside else cursor.seq
        self._skip = cursor.k if inside else 0
        if fresh:
            self._encoder = self._format.encoder()
            self._board(self._encoder)

    @property
    def gone(self) -> bool:
        """True if the session was deleted."""
        return self._channel.over

    def go_on(self) -> None:
        """Behind the end of a run: show the next one."""
        self._ended = False

    def nudge(self, *, in_read: bool = False) -> None:
        """Make a waiting `next` return b"", so that its caller can send a sign of life or go away.

        With `in_read` also one that waits for the store; what is being read then comes with a later call.
        """
        self._nudged = True
        for waiting in (self._waiting, self._heartbeat if in_read else None):
            if waiting is not None and not waiting.done():
                waiting.set_result(None)

    @property
    def is_reading(self) -> bool:
        """Whether `next` has returned before a read of the store has ended."""
        return self._reading is not None

    async def next(self) -> bytes | None:
        """The next bytes to send."""
        while not self._ended and not self._left_behind():
            if self._encoder is not None:
                data = await self._replay(self._encoder)
            elif (lane := self._lane()) is None:
                await self._start_over()
                continue
            else:
                data = self._ride(lane)
            if data:
                return data
            if self._nudged:
                self._nudged = False
                return b""
            if self._encoder is None and not self._ended and not self._channel.over:
                self._waiting = self._channel.wait()
                await self._waiting
        return None

    def _left_behind(self) -> bool:
        """True if the session is gone and we have got what its lane still had."""
        if not self._channel.over:
            return False
        lane = self._channel.lanes.get(self._format.lane)
        return self._encoder is not None or lane is None or not lane.base - 1 <= self._at < lane.head

    def _lane(self) -> Lane | None:
        """The lane, if it has or will have what we need next. It has whole Records, and no part of one."""
        lane = self._channel.lanes.get(self._format.lane)
        return lane if lane is not None and not self._skip and self._at >= lane.base - 1 else None

    def _ride(self, lane: Lane) -> bytes:
        """What the lane has for us; b"" if there is nothing yet, also when the store was faster than the hub."""
        if self._at >= lane.head:
            return b""
        end = lane.end_after(max(self._at, self._through - 1)) if self._only_run else None
        until = lane.head if end is None else end
        data = lane.since(self._at, until)
        self._at, self._ended = until, end is not None
        return data

    async def _start_over(self) -> None:
        """Begin to replay where the run began that we are in, because that is where dialects begin."""
        run = await self._store.run_covering(self._ref, self._at + 1)
        self._fed = self._at if run is None else min(self._at, run.first_seq - 1)
        self._encoder = self._format.encoder()

    async def _replay(self, encoder: SseEncoder) -> bytes:
        """The next piece of what was missed; b"" while there is none to send."""
        records = await self._read()
        if records is None:
            return b""
        if not records:
            # What was published before we looked and is not there was removed: there is nothing to wait for.
            self._fed = max(self._fed, self._published)
            self._skip = 0
            self._board(encoder)
            return b""
        frames: list[bytes] = []
        if records[0].seq > max(self._fed, self._at) + 1:
            frames.append(encoder.gap(self._at + 1, records[0].seq - 1))
            self._skip = 0  # the Record that it counts in is gone
        fresh: list[Record] = []
        for record in records:
            self._fed = record.seq
            if record.seq <= self._at:
                encoder.feed(record)
                continue
            self._at = record.seq
            if self._skip:
                frames.append(encoder.encode(record, skip=self._skip))
                self._skip = 0
            else:
                fresh.append(record)
            if self._only_run and record.seq >= self._through and isinstance(record.event, TERMINAL_TYPES):
                self._ended = True
                break
        frames.append(encoder.catch_up(fresh))
        data = b"".join(frames)
        self._pace(len(data))
        return data

    async def _read(self) -> list[Record] | None:
        """The next Records of the log; None if a heartbeat is due before they are there."""
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

    def _pace(self, size: int) -> None:
        """Read more at once while Records are small; never so much that others wait, or that much lies in memory."""
        if size > BATCH_BYTES:
            self._batch = max(BATCH, self._batch // 2)
        elif 2 * size < BATCH_BYTES:
            self._batch = min(self._format.batch, self._batch * 2)

    def _board(self, encoder: SseEncoder) -> None:
        """We have all that was committed: share the lane, or become it. If more was published meanwhile, read on."""
        lane = self._channel.lanes.get(self._format.lane)
        if lane is None and self._fed >= self._channel.published:
            self._channel.lanes[self._format.lane] = Lane(encoder, self._fed)
            self._encoder = None
        elif lane is not None and self._fed >= lane.base - 1:
            self._encoder = None
