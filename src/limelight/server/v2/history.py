"""A session's messages read back from its log, page by page.

A page is the same for the socket and for REST. Nothing is kept here: old messages cost a replay of the runs that they
belong to, and no more.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import NamedTuple

from limelight.dialects.base import Cursor, Frame, Increment
from limelight.errors import BadRequest
from limelight.models import Run, SessionRef
from limelight.runs.queries import records_of
from limelight.runs.viewer import Format
from limelight.stores.base import Store

PAGE_BYTES = 16 * 1024 * 1024
"""A page ends here even if more was asked for."""
DEFAULT_LIMIT = 100
"""So many messages for whoever does not say how many, or fewer if nobody may have so many."""
STRETCH = 64
"""So many Records are encoded before others get their turn."""


class Page(NamedTuple):
    """Messages, oldest first; `more` says whether there are others on the way that was asked for."""

    messages: list[Frame]
    more: bool


class Wanted(NamedTuple):
    """Which messages somebody asks for."""

    limit: int | None = None
    after: str | None = None
    before: str | None = None


class History:
    """The whole messages of one session, or its Records, as the format has it."""

    def __init__(self, store: Store, ref: SessionRef, format_: Format) -> None:
        self._store = store
        self._ref = ref
        self._format = format_

    async def page(self, wanted: Wanted, high: int) -> Page:
        """What is asked for, if it can be had. `high` is the most that one may ask for."""
        limit = min(DEFAULT_LIMIT, high) if wanted.limit is None else wanted.limit
        if not 1 <= limit <= high:
            raise BadRequest(f"limit is a whole number from 1 to {high}", path="limit")
        if wanted.after is None:
            return await self.last(limit, None if wanted.before is None else Cursor.parse(wanted.before))
        if wanted.before is not None:
            raise BadRequest("give either after or before", path="after")
        return await self.after(limit, Cursor.parse(wanted.after))

    async def last(self, limit: int, before: Cursor | None = None) -> Page:
        """The newest, or those right before a cursor."""
        end = (before or Cursor(2**62)).sort_key
        found: deque[Frame] = deque()
        size = 0
        for run in reversed(await self._store.runs(self._ref)):
            if (run.first_seq, 0) >= end:
                continue
            if len(found) >= limit or size >= PAGE_BYTES:
                return Page(list(found), more=True)
            newest, more = await self._newest(run, limit - len(found), PAGE_BYTES - size, end)
            found.extendleft(reversed(newest))
            size += sum(len(frame.payload) for frame in newest)
            if more:
                return Page(list(found), more=True)
        return Page(list(found), more=False)

    async def _newest(self, run: Run, limit: int, room: int, end: tuple[int, float]) -> tuple[list[Frame], bool]:
        kept: deque[Frame] = deque()
        size, dropped = 0, False
        async for frame in self._messages(run):
            if Cursor.parse(frame.cursor).sort_key >= end:
                break
            kept.append(frame)
            size += len(frame.payload)
            while len(kept) > limit or (size > room and len(kept) > 1):
                size -= len(kept.popleft().payload)
                dropped = True
        return list(kept), dropped

    async def after(self, limit: int, after: Cursor) -> Page:
        """The next ones behind a cursor."""
        found: list[Frame] = []
        size = 0
        for run in await self._store.runs(self._ref):
            if run.last_seq < after.seq:
                continue
            async for frame in self._messages(run):
                if Cursor.parse(frame.cursor).sort_key <= after.sort_key:
                    continue
                if len(found) >= limit or size >= PAGE_BYTES:
                    return Page(found, more=True)
                found.append(frame)
                size += len(frame.payload)
        return Page(found, more=False)

    async def _messages(self, run: Run) -> AsyncIterator[Frame]:
        """Those of one run, with the cursors that a viewer of the run got. Increments are no messages."""
        encoder = self._format.encoder()
        async for record in records_of(self._store, run):
            if record.seq % STRETCH == 0:
                await asyncio.sleep(0)
            for frame in encoder.encode(record):
                if not isinstance(frame.payload, Increment):
                    yield frame
