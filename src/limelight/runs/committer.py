"""Commits the Records of all live runs, and then delivers them to viewers.

The Records that all runs have appended since their last commit form one batch. Viewers get the batch after the store
has committed it. If the store fails, the batch is retried: no Record is skipped or delivered uncommitted. An error of
one run or viewer does not stop the commits of the others. A run with a large result is committed separately, because
this takes long.

The committer limits how often it commits, because a commit and a wake-up of viewers cost far more than an event. Time
is divided into intervals. Deltas are committed at the end of an interval, for all runs together. Another event is
committed at once, unless its run was committed in the same interval. The viewers of a session are woken once per
interval, and at the end of a run. After a pause everything is committed and delivered at once.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import Protocol

from limelight.errors import LeaseLost, StoreError
from limelight.events import Record
from limelight.log_context import log_fields
from limelight.models import ENDED_STATES, Append, Result, SessionRef
from limelight.runs.metrics import NO_METRICS, RunMetrics, measured_commit
from limelight.runs.store_retry import is_logged, pause_before_retry
from limelight.stores.base import Store

log = logging.getLogger(__name__)
INTERVAL = 0.025
"""Minimum seconds between two deliveries to the viewers of a session. A text that grows 40 times per second looks
continuous."""
LARGE = 256 * 1024
"""Size of results, in bytes, above which a run is committed separately."""


class CommittedRun(Protocol):
    """The interface of a live run that the committer uses."""

    @property
    def ref(self) -> SessionRef: ...

    def take(self) -> Append:
        """Return the Records and results to commit: those that the run has appended since the last call."""
        ...

    def committed(self) -> None:
        """Called when the oldest batch that `take` returned is committed."""
        ...

    def lease_lost(self) -> None:
        """Called when another process has ended the run, so that this process cannot commit its Records any more."""
        ...


class Committer:
    """The background task that commits the Records of all live runs of this process."""

    def __init__(
        self,
        store: Store,
        publish: Callable[[SessionRef, Sequence[Record]], None],
        wake: Callable[[SessionRef], None],
        metrics: RunMetrics = NO_METRICS,
    ) -> None:
        """Create the committer.

        `publish` passes committed Records to the hub; `wake` makes the viewers of a session send published Records.
        """
        self._store = store
        self._metrics = metrics
        self.publish = publish
        self._wake = wake
        self._urgent: dict[int, CommittedRun] = {}
        """Runs to commit at once."""
        self._waiting: dict[int, CommittedRun] = {}
        """Runs to commit at the end of the interval."""
        self._interval_ends_at = 0.0
        self._committed: set[int] = set()
        """Runs that were committed in this interval."""
        self._woken: set[SessionRef] = set()
        """Sessions whose viewers were woken in this interval."""
        self._unwoken: set[SessionRef] = set()
        """Sessions with published Records for which viewers were not woken yet."""
        self._scheduled = asyncio.Event()
        """Set when the task has to check again which commits and wake-ups are due."""
        self._task: asyncio.Task[None] | None = None
        self.failing = False
        """Whether the last attempt to commit has failed."""
        self._separate: dict[int, asyncio.Task[None]] = {}
        """Runs that are being committed separately."""
        self._again: dict[int, CommittedRun] = {}
        """Runs in `_separate` that have appended more events since their commit began."""

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="limelight-committer")

    async def stop(self) -> None:
        if self._task is not None:
            tasks = [self._task, *self._separate.values()]
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    def schedule(self, run: CommittedRun, *, can_wait: bool = False, must_not_wait: bool = False) -> None:
        """Schedule a commit of a run: at once, or at the end of the current interval.

        The commit waits for the end of the interval if `can_wait` is true, as for deltas, or if the run was already
        committed in this interval. With `must_not_wait` it never waits.
        """
        key = id(run)
        if key in self._separate:
            self._again[key] = run
            return
        if must_not_wait or not (can_wait or key in self._committed):
            self._urgent[key] = run
        else:
            self._waiting[key] = run
        self._scheduled.set()

    async def _run(self) -> None:
        while True:
            batch: list[tuple[CommittedRun, Append]] = []
            for run in await self._due_runs():
                try:
                    append = run.take()
                except Exception:  # the other runs are committed nevertheless
                    about = log_fields(session_id=run.ref.session_id)
                    log.exception("a run of session %s cannot be committed", run.ref.session_id, extra=about)
                    continue
                if is_large(append.results):
                    self._separate[id(run)] = asyncio.create_task(self._commit_separately(run, append))
                else:
                    batch.append((run, append))
            await self._commit(batch)

    async def _due_runs(self) -> list[CommittedRun]:
        """Wait until a commit or a wake-up is due, and return the runs to commit."""
        loop = asyncio.get_running_loop()
        while not self._urgent and not (self._interval_ends_at <= loop.time() and (self._waiting or self._unwoken)):
            self._scheduled.clear()
            is_idle = not self._waiting and not self._unwoken
            with suppress(TimeoutError):
                async with asyncio.timeout_at(None if is_idle else self._interval_ends_at):
                    await self._scheduled.wait()
        if self._interval_ends_at <= loop.time():
            self._start_interval(loop.time())
        runs, self._urgent = self._urgent, {}
        for key in runs:
            self._waiting.pop(key, None)
        self._committed.update(runs)
        return list(runs.values())

    def _start_interval(self, now: float) -> None:
        self._interval_ends_at = now + INTERVAL
        self._urgent |= self._waiting
        self._waiting = {}
        self._committed.clear()
        self._woken.clear()
        due = {run.ref for run in self._urgent.values()}
        self._wake_viewers(self._unwoken - due)  # other viewers are woken after the commit that is due

    async def _commit_separately(self, run: CommittedRun, append: Append) -> None:
        """Commit a run separately from others. Records that it appends during the commit are committed afterwards."""
        await self._commit([(run, append)])
        del self._separate[id(run)]
        if self._again.pop(id(run), None) is not None:
            self.schedule(run)

    async def _commit(self, work: list[tuple[CommittedRun, Append]]) -> None:
        if not work:
            return
        tries = 0
        while True:
            try:
                with measured_commit(self._metrics, sum(len(append.records) for _, append in work)):
                    await self._store.append([append for _, append in work])
                break
            except LeaseLost:
                await self._commit_one_by_one(work)
                return
            except Exception as error:  # also for a programming error: no Record may be skipped
                if not tries and not is_logged(error):
                    unexpected = not isinstance(error, StoreError)
                    log.error("the log cannot be written, trying again: %s", error, exc_info=unexpected)
                self.failing = True
                self._wake_viewers(self._unwoken)  # Records that were published before need not wait for the store
                await pause_before_retry(tries)
                tries += 1
        self.failing = False
        for run, append in work:
            try:
                self.publish(run.ref, append.records)
            except Exception:  # an error of a viewer does not affect the run
                about = log_fields(run_id=append.run_id, session_id=run.ref.session_id)
                log.exception("Records of run %s cannot be published", append.run_id, extra=about)
            self.wake_soon(run.ref, is_end=append.state in ENDED_STATES)
            _notify(append.run_id, run.committed)

    def wake_soon(self, ref: SessionRef, *, is_end: bool = False) -> None:
        """Wake the viewers of a session that has new Records: at once, or at the end of the interval.

        The viewers are woken at once if a run has ended (`is_end`), or if they were not woken in this interval.
        """
        self._unwoken.add(ref)
        if is_end or ref not in self._woken:
            self._wake_viewers({ref})

    def _wake_viewers(self, refs: AbstractSet[SessionRef]) -> None:
        for ref in refs:
            self._wake(ref)
        self._woken |= refs
        self._unwoken -= refs

    async def _commit_one_by_one(self, work: list[tuple[CommittedRun, Append]]) -> None:
        """Commit runs one by one after a LeaseLost error, to find the run whose lease is lost and commit the others."""
        for run, append in work:
            if len(work) == 1:
                about = log_fields(run_id=append.run_id, session_id=run.ref.session_id)
                log.error("run %s was sealed by another process", append.run_id, extra=about)
                _notify(append.run_id, run.lease_lost)
            else:
                await self._commit([(run, append)])


def is_large(results: Sequence[Result]) -> bool:
    """Whether the results of a run are so large that it is committed separately, so that other runs need not wait."""
    return sum(len(result.body) for result in results) > LARGE


def _notify(run_id: str, callback: Callable[[], None]) -> None:
    """Call the callback by which a run learns the outcome of its commit. An error of the callback is only logged."""
    try:
        callback()
    except Exception:
        log.exception("run %s failed to process the outcome of its commit", run_id, extra=log_fields(run_id=run_id))
