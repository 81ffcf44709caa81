"""Periodic maintenance: renews leases of live runs, recovers runs of crashed processes, deletes old data."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from limelight.errors import StoreError
from limelight.ids import now_ms
from limelight.models import SessionRef
from limelight.runs.recovery import LEASE_MS
from limelight.runs.retention_clock import DAY_MS, Pause, advise, describe
from limelight.runs.retention_guard import RetentionGuard
from limelight.runs.store_retry import is_logged
from limelight.stores.base import Store

log = logging.getLogger(__name__)
SWEEP_SECONDS = 3600


class Maintenance:
    """The background task that renews leases, recovers runs of crashed processes, and deletes data by retention."""

    def __init__(
        self,
        store: Store,
        forget: Callable[[SessionRef], Awaitable[None]],
        tidy: Callable[[], Awaitable[None]],
        recover: Callable[[], Awaitable[int]],
        *,
        retention_days: float,
        guard: RetentionGuard,
    ) -> None:
        """Create the task. The guard of the retention must be open before the task starts."""
        self._store = store
        self._tidy = tidy
        self._recover = recover
        self._forget = forget
        self._retention_ms = round(retention_days * DAY_MS)
        self._guard = guard
        self._reported: Pause | None = None
        """The pause of retention that was logged last; None if retention is not paused."""
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="limelight-maintenance")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        rounds = 0
        while True:
            try:
                await self._store.renew(now_ms() + LEASE_MS)
                await self._recover()
                await self.sweep(is_due=rounds % (SWEEP_SECONDS * 1000 * 3 // LEASE_MS) == 0)
                await self._tidy()
            except Exception as error:  # the task must not end: without leases, other processes would seal live runs
                if not is_logged(error):
                    unexpected = not isinstance(error, StoreError)
                    log.error("maintenance failed, trying again: %s", error, exc_info=unexpected)
            rounds += 1
            await asyncio.sleep(LEASE_MS / 3000)

    async def sweep(self, *, is_due: bool = True) -> None:
        """Delete runs and sessions that are past their retention, unless the guard has paused retention.

        Does nothing if retention is not due (`is_due`) and was not paused before. Deletes in small steps, so that live
        runs do not wait long.
        """
        now = await self._guard.check()
        if self._guard.pause is not None:
            await self._report(self._guard.pause, now)
            return
        if self._reported is not None:
            self._reported = None
            log.warning("retention is no longer paused: the clock was confirmed or corrected")
        elif not is_due:
            return
        while True:
            swept = await self._store.sweep(now - self._retention_ms)
            for ref in swept.sessions:
                await self._forget(ref)
            if not swept.runs:
                return
            log.info("%d runs were past their retention and are removed", swept.runs)

    async def _report(self, pause: Pause, now: int) -> None:
        """Log a pause of retention once. Another jump of the clock is a new pause."""
        if pause == self._reported:
            return
        counts = await self._store.retention_counts(now - self._retention_ms)
        log.warning(
            "retention is paused and deletes nothing: %s. By this clock it would delete %d of %d sessions (%d runs)."
            " What to do: %s",
            describe(pause),
            counts.sessions_to_delete,
            counts.sessions,
            counts.runs_to_delete,
            advise(pause),
        )
        self._reported = pause
