"""Messages of a session, read from its log: pages of messages for the socket and REST, and their number.

To return a page, only the runs of its messages are read and encoded. The message count of an ended run is stored; that
of a live run is updated with its new Records.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import NamedTuple

import msgspec

from limelight.deltas import join
from limelight.dialects.base import Frame, Increment
from limelight.dialects.frame_encoder import FrameEncoder
from limelight.errors import BadRequest, StoreUnavailable
from limelight.events import Record, RunStarted
from limelight.models import Cursor, Run, SessionRef
from limelight.runs.queries import records_of
from limelight.runs.viewer import Format
from limelight.stores.base import Store

PAGE_BYTES = 16 * 1024 * 1024
"""Size in bytes at which a page ends, even if it has fewer messages than its `limit`."""
DEFAULT_LIMIT = 100
"""Messages of a page if the query has no `limit`. A lower limit in the settings takes precedence."""
ENCODE_BATCH = 64
"""Number of Records that are encoded before the event loop runs other tasks."""
COUNT_BATCH = 512
"""Number of Records that are read from the store at once to count messages."""
MAX_COUNTERS = 256
"""Number of live runs whose message counts are cached."""


class MessagePage(NamedTuple):
    """A page of messages, oldest first. `more` says whether further messages exist in the direction of the query."""

    messages: list[Frame]
    more: bool


class History:
    """Reads the complete messages of one session from its log, in one format."""

    def __init__(self, store: Store, ref: SessionRef, format_: Format) -> None:
        self._store = store
        self._ref = ref
        self._format = format_

    async def page(self, max_limit: int, *, limit: int | None, after: str | None, before: str | None) -> MessagePage:
        """Return the page that a client has requested: the newest messages, or those directly after or before a cursor.

        Raises BadRequest if the client's `limit` or cursor is invalid.
        """
        limit = min(DEFAULT_LIMIT, max_limit) if limit is None else limit
        if not 1 <= limit <= max_limit:
            raise BadRequest(f"limit is a whole number from 1 to {max_limit}", path="limit")
        if after is None:
            return await self.last(limit, None if before is None else Cursor.parse(before))
        if before is not None:
            raise BadRequest("give either after or before", path="after")
        return await self.after(limit, Cursor.parse(after))

    async def last(self, limit: int, before: Cursor | None = None) -> MessagePage:
        """Return the page of the newest messages, or of the messages directly before a cursor."""
        end = (before or Cursor(2**62)).sort_key
        found: deque[Frame] = deque()
        size = 0
        for run in reversed(await self._store.runs(self._ref)):
            if (run.first_seq, 0) >= end:
                continue
            if len(found) >= limit or size >= PAGE_BYTES:
                return MessagePage(list(found), more=True)
            newest, more = await self._newest(run, limit - len(found), PAGE_BYTES - size, end)
            found.extendleft(reversed(newest))
            size += sum(len(frame.payload) for frame in newest)
            if more:
                return MessagePage(list(found), more=True)
        return MessagePage(list(found), more=False)

    async def _newest(self, run: Run, limit: int, room: int, end: tuple[int, float]) -> tuple[list[Frame], bool]:
        """Return the newest messages of a run before `end`, and whether the run has older ones.

        There are at most `limit` messages, with at most `room` bytes unless a single message is larger.
        """
        kept: deque[Frame] = deque()
        size, dropped = 0, False
        async for frame in self._messages(run):
            if frame.cursor.sort_key >= end:
                break
            kept.append(frame)
            size += len(frame.payload)
            while len(kept) > limit or (size > room and len(kept) > 1):
                size -= len(kept.popleft().payload)
                dropped = True
        return list(kept), dropped

    async def after(self, limit: int, after: Cursor) -> MessagePage:
        """Return the page of the messages directly after a cursor."""
        found: list[Frame] = []
        size = 0
        for run in await self._store.runs(self._ref):
            if run.last_seq < after.seq:
                continue
            async for frame in self._messages(run):
                if frame.cursor.sort_key <= after.sort_key:
                    continue
                if len(found) >= limit or size >= PAGE_BYTES:
                    return MessagePage(found, more=True)
                found.append(frame)
                size += len(frame.payload)
        return MessagePage(found, more=False)

    async def _messages(self, run: Run) -> AsyncIterator[Frame]:
        """Yield the complete messages of a run, not its increments, with the same cursors as in the live stream."""
        encoder = self._format.encoder()
        async for record in records_of(self._store, run):
            if record.seq % ENCODE_BATCH == 0:
                await asyncio.sleep(0)
            for frame in encoder.encode(record):
                if not isinstance(frame.payload, Increment):
                    yield frame


class MessageCounts:
    """Counts the messages of sessions. Counts of ended runs are stored, those of live runs are updated."""

    def __init__(self, store: Store, format_: Format) -> None:
        self._store = store
        self._format = format_
        self._counters: OrderedDict[str, RunCounter] = OrderedDict()

    async def of_session(self, ref: SessionRef) -> int:
        return sum([await self._of_run(run) for run in await self._store.runs(ref)])

    async def _of_run(self, run: Run) -> int:
        if run.messages is not None:
            return run.messages
        counter = self._counters.pop(run.run_id, None) or RunCounter(self._format.encoder(), run.first_seq)
        await counter.advance(self._store, run)
        if run.live:
            self._counters[run.run_id] = counter
            if len(self._counters) > MAX_COUNTERS:
                self._counters.popitem(last=False)
        else:
            with suppress(StoreUnavailable):  # with a full disk, the run is counted again next time
                await self._store.note_messages(run.run_id, counter.count)
        return counter.count


class RunCounter:
    """Counts the complete messages of one run. While the run is live, only new Records are counted."""

    def __init__(self, encoder: FrameEncoder, first_seq: int) -> None:
        self.count = 0
        self._encoder = encoder
        self._seq = first_seq - 1

    async def advance(self, store: Store, run: Run) -> None:
        """Count the messages of Records that the run has got since the last call, up to `run.last_seq`."""
        while self._seq < run.last_seq:
            records = await store.records(run.ref, after=self._seq, limit=COUNT_BATCH)
            own = [record for record in records if record.seq <= run.last_seq]
            if not own:
                return
            self.feed(own)

    def feed(self, records: Sequence[Record]) -> None:
        for joined in join(records):
            payloads = self._encoder.feed(_without_streaming(joined.record))
            self.count += sum(not isinstance(payload, Increment) for payload in payloads)
        self._seq = records[-1].seq


def _without_streaming(record: Record) -> Record:
    """Return a `run_started` Record with streaming disabled, and any other Record unchanged.

    The encoder then produces the complete messages of the run without increments, so that they are counted faster.
    """
    if not isinstance(record.event, RunStarted):
        return record
    return msgspec.structs.replace(record, event=msgspec.structs.replace(record.event, enable_streaming=False))
