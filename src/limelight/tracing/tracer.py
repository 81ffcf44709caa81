"""Tracing of all runs of a server. An error in the tracer loses spans, but never affects a run.

The tracer gets Records after they were committed, like viewers. If its first Record of a run is not `run_started`,
another process has started the run. The tracer then reads the earlier Records from the log, without exporting the spans
that ended in them, because the other process has exported those.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Protocol

from limelight.events import Record, RunStarted, terminal_of
from limelight.log_context import log_fields
from limelight.models import SessionRef
from limelight.tracing.run_trace import RunTrace
from limelight.tracing.span import Span

log = logging.getLogger(__name__)
CATCH_UP_SECONDS = 1
"""Maximum time that `close` waits for runs whose earlier Records are still being read."""

Publish = Callable[[SessionRef, Sequence[Record]], None]
ReadRun = Callable[[str], AsyncIterator[Record]]
"""A function that yields all Records of the run with the given id."""


class SpanExporter(Protocol):
    """An exporter that sends finished spans to a collector."""

    def export(self, spans: Sequence[Span]) -> None:
        """Queue spans for export, without blocking."""
        ...

    async def close(self) -> None:
        """Send queued spans, within a time limit."""
        ...


class Tracer:
    """Creates the spans of all live runs, and exports them."""

    def __init__(self, exporter: SpanExporter, read_run: ReadRun, *, content: bool = False) -> None:
        self._exporter = exporter
        self._read_run = read_run
        self._content = content
        self._traces: dict[str, RunTrace] = {}
        self._pending: dict[str, list[Record]] = {}
        """New Records, by run id, of runs whose earlier Records are being read."""
        self._tasks: set[asyncio.Task[None]] = set()

    def wrap(self, publish: Publish) -> Publish:
        """Return a function that calls `publish` with Records of a session and then traces them."""

        def published(ref: SessionRef, records: Sequence[Record]) -> None:
            try:
                publish(ref, records)
            finally:
                self.feed(ref, records)

        return published

    def feed(self, ref: SessionRef, records: Sequence[Record]) -> None:
        """Trace Records of one run that were committed together. Errors are logged."""
        if not records:
            return
        run_id = records[0].run_id
        try:
            if isinstance(records[0].event, RunStarted):
                self._traces[run_id] = self._new_trace(ref, run_id)
            if run_id in self._traces:
                self._feed_trace(run_id, records)
            elif run_id in self._pending:
                self._pending[run_id] += records
            else:
                self._pending[run_id] = [*records]
                task = asyncio.create_task(self._catch_up(ref, run_id, before=records[0].seq))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        except Exception:
            log.exception(
                "spans of run %s are lost", run_id, extra=log_fields(run_id=run_id, session_id=ref.session_id)
            )

    def _new_trace(self, ref: SessionRef, run_id: str) -> RunTrace:
        return RunTrace(run_id, ref.session_id, content=self._content)

    def _feed_trace(self, run_id: str, records: Sequence[Record]) -> None:
        trace = self._traces[run_id]
        if terminal_of(records[-1].event) is not None:
            del self._traces[run_id]
        spans = trace.feed(records)
        if spans:
            self._exporter.export(spans)

    async def _catch_up(self, ref: SessionRef, run_id: str, before: int) -> None:
        """Read the Records of a run before the number `before` without exporting spans, then trace the pending ones."""
        trace = self._new_trace(ref, run_id)
        try:
            async for record in self._read_run(run_id):
                if record.seq >= before:
                    break
                trace.feed([record])
            self._traces[run_id] = trace
            self._feed_trace(run_id, self._pending[run_id])
        except Exception:
            extra = log_fields(run_id=run_id, session_id=ref.session_id)
            log.exception("spans of run %s are lost: its beginning cannot be read", run_id, extra=extra)
        finally:
            del self._pending[run_id]

    async def close(self) -> None:
        """Export the spans that are not exported yet. Call this after the last Record, before the store is closed."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=CATCH_UP_SECONDS)
        for task in self._tasks:
            task.cancel()
        await self._exporter.close()
