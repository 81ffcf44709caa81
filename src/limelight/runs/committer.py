"""Commits the Records of all live runs, and delivers them afterwards.

The Records that live runs have appended since the last commit become one batch; viewers get it when the store has
committed it, and not before. A commit costs far more than an event. So events after a pause are committed at once,
deltas that keep coming are committed at the pace at which viewers are woken, and other events do not wait. If the
store fails, the batch is retried: nothing is skipped and nothing is delivered. No error of a run or a viewer ends the
task. A run with a large result takes long to commit, so it is committed separately.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

from limelight.errors import LeaseLost, StoreError
from limelight.events import Record
from limelight.log_context import log_fields
from limelight.models import Append, Result, SessionRef
from limelight.runs.hub import INTERVAL
from limelight.runs.metrics import NO_METRICS, RunMetrics, commit
from limelight.runs.retry import is_logged, pause_before_retry
from limelight.stores.base import Store

log = logging.getLogger(__name__)
CROWD = 16
PAUSE_SECONDS = 0.005
"""Pause after a commit of at least CROWD runs, because each run in a commit costs more than an event."""
LARGE = 256 * 1024
"""Bytes of results above which a run is committed separately."""


class CommittedRun(Protocol):
    """A run, as the committer uses it."""

    @property
    def ref(self) -> SessionRef: ...

    def take(self) -> Append:
        """Take what was appended since the last call."""
        ...

    def committed(self, append: Append) -> None:
        """The append that was taken is committed."""
        ...

    def lease_lost(self) -> None:
        """Another process has sealed the run, so it cannot write any more."""
        ...


class Committer:
    """One task that commits for all runs."""

    def __init__(
        self,
        store: Store,
        publish: Callable[[SessionRef, Sequence[Record]], None],
        metrics: RunMetrics = NO_METRICS,
    ) -> None:
        self._store = store
        self._metrics = metrics
        self._publish = publish
        self._waiting: dict[int, CommittedRun] = {}
        self._scheduled = asyncio.Event()
        self._urgent = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.failing = False
        """Whether the last attempt to commit has failed."""
        self._separate: dict[int, asyncio.Task[None]] = {}
        """Runs that are being committed separately."""
        self._again: dict[int, CommittedRun] = {}
        """Those of them that have appended more since."""

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="limelight-committer")

    async def stop(self) -> None:
        if self._task is not None:
            tasks = [self._task, *self._separate.values()]
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    def schedule(self, run: CommittedRun, *, can_wait: bool = False) -> None:
        """Commit this run: at once, or if it `can_wait`, not sooner than one interval after the last commit."""
        if id(run) in self._separate:
            self._again[id(run)] = run
            return
        self._waiting[id(run)] = run
        self._scheduled.set()
        if not can_wait:
            self._urgent.set()

    async def _run(self) -> None:
        while True:
            await self._scheduled.wait()
            runs = list(self._waiting.values())
            self._waiting = {}
            self._scheduled.clear()
            self._urgent.clear()
            work = [part for run in runs for part in _taken(run)]
            for run, append in work:
                if is_large(append.results):
                    self._separate[id(run)] = asyncio.create_task(self._commit_separately(run, append))
            await self._commit([(run, append) for run, append in work if id(run) not in self._separate])
            await self._pause(len(runs))

    async def _commit_separately(self, run: CommittedRun, append: Append) -> None:
        """Commit one run separately. What it appends in the meantime is committed after that, so that order is kept."""
        await self._commit([(run, append)])
        del self._separate[id(run)]
        if self._again.pop(id(run), None) is not None:
            self.schedule(run)

    async def _pause(self, runs: int) -> None:
        if runs >= CROWD:
            await asyncio.sleep(PAUSE_SECONDS)
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(INTERVAL):
                await self._urgent.wait()

    async def _commit(self, work: list[tuple[CommittedRun, Append]]) -> None:
        if not work:
            return
        tries = 0
        while True:
            try:
                await commit(self._store, [append for _, append in work], self._metrics)
                break
            except LeaseLost:
                await self._commit_one_by_one(work)
                return
            except Exception as error:  # also for a bug of ours: what is not committed is neither delivered nor skipped
                if not tries and not is_logged(error):
                    odd = not isinstance(error, StoreError)
                    log.error("the log cannot be written, trying again: %s", error, exc_info=odd)
                self.failing = True
                await pause_before_retry(tries)
                tries += 1
        self.failing = False
        for run, append in work:
            self.deliver(run.ref, append.records)
            _notify(append, lambda run=run, append=append: run.committed(append))

    def deliver(self, ref: SessionRef, records: Sequence[Record]) -> None:
        """Publish committed Records to viewers."""
        try:
            self._publish(ref, records)
        except Exception:  # an error of a dialect ends the streams of its viewers, not the run
            about = log_fields(session_id=ref.session_id)
            log.exception("Records of session %s cannot be shown", ref.session_id, extra=about)

    async def _commit_one_by_one(self, work: list[tuple[CommittedRun, Append]]) -> None:
        """Commit the runs one by one, to find the one whose lease was lost."""
        for run, append in work:
            if len(work) == 1:
                about = log_fields(run_id=append.run_id, session_id=run.ref.session_id)
                log.error("run %s was sealed by another process", append.run_id, extra=about)
                _notify(append, run.lease_lost)
            else:
                await self._commit([(run, append)])


def is_large(results: Sequence[Result]) -> bool:
    """Whether the results are so large that other runs should not wait for their commit."""
    return sum(len(result.body) for result in results) > LARGE


def _taken(run: CommittedRun) -> list[tuple[CommittedRun, Append]]:
    """The append of a run; none if it raises, so that the other runs are committed."""
    try:
        return [(run, run.take())]
    except Exception:
        about = log_fields(session_id=run.ref.session_id)
        log.exception("a run of session %s cannot be committed", run.ref.session_id, extra=about)
        return []


def _notify(append: Append, callback: Callable[[], None]) -> None:
    try:
        callback()
    except Exception:
        about = log_fields(run_id=append.run_id)
        log.exception("run %s does not know that it was committed", append.run_id, extra=about)
