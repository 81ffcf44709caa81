"""Follows all runs of a server and hands their spans on. What goes wrong here costs spans, never a run.

It is told what is in the log when viewers are. A run of which it does not know the beginning was begun by a process
that is gone: its log is read once, without the spans that ended then, as that process has sent them.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Protocol

from limelight.events import Record, RunStarted, terminal_of
from limelight.log_context import ids
from limelight.models import SessionRef
from limelight.tracing.run_trace import RunTrace
from limelight.tracing.span import Span

log = logging.getLogger(__name__)
CATCH_UP_SECONDS = 1
"""How long the end of the server waits for logs that are being read."""

Publish = Callable[[SessionRef, Sequence[Record]], None]
Read = Callable[[str], AsyncIterator[Record]]
"""All Records of a run, by its id."""


class Outlet(Protocol):
    """Where spans go."""

    def put(self, spans: Sequence[Span]) -> None:
        """Take them, at once: whoever calls does not wait."""
        ...

    async def close(self) -> None:
        """Send what is left, within a bound."""
        ...


class Tracing:
    """Knows the runs that are open."""

    def __init__(self, outlet: Outlet, read: Read, *, content: bool = False) -> None:
        self._outlet = outlet
        self._read = read
        self._content = content
        self._traces: dict[str, RunTrace] = {}
        self._late: dict[str, list[Record]] = {}
        """What is new of runs whose beginning is being read."""
        self._reading: set[asyncio.Task[None]] = set()

    def after(self, publish: Publish) -> Publish:
        """The same, and then it is followed here."""

        def published(ref: SessionRef, records: Sequence[Record]) -> None:
            try:
                publish(ref, records)
            finally:
                self.follow(ref, records)

        return published

    def follow(self, ref: SessionRef, records: Sequence[Record]) -> None:
        """What is new of one run, and is in the log."""
        if not records:
            return
        run_id = records[0].run_id
        try:
            if isinstance(records[0].event, RunStarted):
                self._traces[run_id] = self._trace(ref, run_id)
            if run_id in self._traces:
                self._feed(run_id, records)
            elif run_id in self._late:
                self._late[run_id] += records
            else:
                self._late[run_id] = [*records]
                task = asyncio.create_task(self._catch_up(ref, run_id, before=records[0].seq))
                self._reading.add(task)
                task.add_done_callback(self._reading.discard)
        except Exception:
            log.exception("spans of run %s are lost", run_id, extra=ids(run_id=run_id, session_id=ref.session_id))

    def _trace(self, ref: SessionRef, run_id: str) -> RunTrace:
        return RunTrace(run_id, ref.session_id, content=self._content)

    def _feed(self, run_id: str, records: Sequence[Record]) -> None:
        trace = self._traces[run_id]
        if terminal_of(records[-1].event) is not None:
            del self._traces[run_id]
        spans = trace.feed(records)
        if spans:
            self._outlet.put(spans)

    async def _catch_up(self, ref: SessionRef, run_id: str, before: int) -> None:
        trace = self._trace(ref, run_id)
        try:
            async for record in self._read(run_id):
                if record.seq >= before:
                    break
                trace.feed([record])
            self._traces[run_id] = trace
            self._feed(run_id, self._late[run_id])
        except Exception:
            about = ids(run_id=run_id, session_id=ref.session_id)
            log.exception("spans of run %s are lost: its beginning cannot be read", run_id, extra=about)
        finally:
            del self._late[run_id]

    async def close(self) -> None:
        """Send what is left. Called when no more Records come, and while the store is still open."""
        if self._reading:
            await asyncio.wait(self._reading, timeout=CATCH_UP_SECONDS)
        for task in self._reading:
            task.cancel()
        await self._outlet.close()
