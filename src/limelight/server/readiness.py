"""Checks of the store for the health probes. Results are cached, because anyone may send probes in any number."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Generic, NamedTuple, TypeVar

from limelight.errors import StoreError, StoreUnavailable
from limelight.ids import now_ms
from limelight.stores.base import Store

log = logging.getLogger(__name__)
T = TypeVar("T")
CACHE_SECONDS = 2.0
CHECK_SECONDS = 5.0
"""Time limit of a check."""


class StoreFailure(NamedTuple):
    """The result of a failed store check. `reason` may be shown to any client; "" if the reason is only for the log."""

    reason: str


class CachedCheck(Generic[T]):
    """A check of the store whose result is cached for CACHE_SECONDS. Concurrent callers share one check."""

    def __init__(self, check: Callable[[], Awaitable[T]]) -> None:
        self._check = check
        self._started_at = 0.0
        self._task: asyncio.Task[T | StoreFailure] | None = None

    async def result(self) -> T | StoreFailure:
        now = asyncio.get_running_loop().time()
        task = self._task
        if task is None or (task.done() and now - self._started_at >= CACHE_SECONDS):
            self._started_at = now
            task = self._task = asyncio.create_task(self._run())
        return await asyncio.shield(task)  # a disconnect does not cancel it for other clients

    async def _run(self) -> T | StoreFailure:
        try:
            return await asyncio.wait_for(self._check(), CHECK_SECONDS)
        except TimeoutError:
            log.warning("the store check of a health probe failed: no answer")
            return StoreFailure("it does not answer")
        except StoreError as error:
            reason = error.words if isinstance(error, StoreUnavailable) else ""
            if not reason:  # an error with words was already logged by the store
                log.warning("the store check of a health probe failed: %s", error)
            return StoreFailure(reason)


class Readiness:
    """The store checks of the health probes, with cached results."""

    def __init__(self, store: Store, expiry_seconds: float) -> None:
        self._store = store
        self._expiry_ms = int(expiry_seconds * 1000)
        self._ping = CachedCheck(self._ping_store)
        self._active_sessions = CachedCheck(self._count_active_sessions)

    async def store_failure(self) -> StoreFailure | None:
        """Return why the store cannot be written; None if it can. The result may be some seconds old."""
        return await self._ping.result()

    async def active_sessions(self) -> int | None:
        """Return the number of unexpired sessions of all users; None if the store cannot be read."""
        count = await self._active_sessions.result()
        return None if isinstance(count, StoreFailure) else count

    async def _ping_store(self) -> None:
        await self._store.ping()

    async def _count_active_sessions(self) -> int:
        return await self._store.active_sessions(now_ms() - self._expiry_ms)
