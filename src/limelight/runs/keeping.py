"""Housekeeping: leases are renewed, orphans sealed, and what is past its retention is removed."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from limelight.errors import StoreError
from limelight.runs.ids import now_ms
from limelight.runs.patience import is_told
from limelight.runs.sealing import LEASE_MS
from limelight.stores.base import SessionRef, Store

log = logging.getLogger(__name__)
SWEEP_SECONDS = 3600
DAY_MS = 24 * 3600 * 1000


class Keeping:
    """One task that does all of it in turn."""

    def __init__(
        self,
        store: Store,
        forget: Callable[[SessionRef], Awaitable[None]],
        tidy: Callable[[], Awaitable[None]],
        recover: Callable[[], Awaitable[int]],
        *,
        retention_days: float,
    ) -> None:
        self._store = store
        self._tidy = tidy
        self._recover = recover
        self._forget = forget
        self._retention_ms = round(retention_days * DAY_MS)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="limelight-keeping")

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
                if rounds % (SWEEP_SECONDS * 1000 * 3 // LEASE_MS) == 0:
                    await self.sweep()
                await self._tidy()
            except Exception as error:  # without renewals other processes would take live runs for dead
                if not is_told(error):
                    odd = not isinstance(error, StoreError)
                    log.error("housekeeping has to wait, trying again: %s", error, exc_info=odd)
            rounds += 1
            await asyncio.sleep(LEASE_MS / 3000)

    async def sweep(self) -> None:
        """Apply the retention, a little at a time so that live runs need not wait for it."""
        before = now_ms() - self._retention_ms
        while True:
            swept = await self._store.sweep(before)
            for ref in swept.sessions:
                await self._forget(ref)
            if not swept.runs:
                return
            log.info("%d runs were past their retention and are removed", swept.runs)
