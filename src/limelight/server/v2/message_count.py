"""How many messages a session has: counted once a run, and for a live run as far as it has come."""

from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from limelight.deltas import join
from limelight.dialects.base import Increment
from limelight.dialects.encoder import FrameEncoder
from limelight.errors import StoreUnavailable
from limelight.events import Record, RunStarted
from limelight.models import Run, SessionRef
from limelight.runs.viewer import Format
from limelight.stores.base import Store

STRETCH = 512
"""So many Records are read and counted at once."""
COUNTERS = 256
"""How many live runs are remembered; the count of others begins anew."""


class MessageCounts:
    """Asks the store first, which keeps the counts of ended runs."""

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
            if len(self._counters) > COUNTERS:
                self._counters.popitem(last=False)
        else:
            with suppress(StoreUnavailable):  # whoever reads does not mind a disk that is full: it is counted again
                await self._store.note_messages(run.run_id, counter.count)
        return counter.count


class RunCounter:
    """The count of one run, as far as it has been read."""

    def __init__(self, encoder: FrameEncoder, first_seq: int) -> None:
        self.count = 0
        self._encoder = encoder
        self._seq = first_seq - 1

    async def advance(self, store: Store, run: Run) -> None:
        """Up to where the run was when it was read, and no further: the log may have grown, or another run begun."""
        while self._seq < run.last_seq:
            records = await store.records(run.ref, after=self._seq, limit=STRETCH)
            ours = [record for record in records if record.seq <= run.last_seq]
            if not ours:
                return
            self.take(ours)

    def take(self, records: Sequence[Record]) -> None:
        for joined in join(records):
            payloads = self._encoder.feed(_quiet(joined.record))
            self.count += sum(not isinstance(payload, Increment) for payload in payloads)
        self._seq = records[-1].seq


def _quiet(record: Record) -> Record:
    """A run whose texts come whole has the same whole messages, and making the increments only to skip them is slow."""
    if not isinstance(record.event, RunStarted):
        return record
    return msgspec.structs.replace(record, event=msgspec.structs.replace(record.event, enable_streaming=False))
