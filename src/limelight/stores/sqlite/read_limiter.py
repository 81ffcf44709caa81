"""Limits each owner to one long read at a time, so that no user occupies all reader threads."""

import asyncio
from collections.abc import Callable
from typing import TypeVar
from weakref import WeakValueDictionary

from limelight.models import LOCAL_OWNER

T = TypeVar("T")


class ReadLimiter:
    """Runs the long reads of each owner one after the other. Not those of `local`, which represents many users."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """By owner, the lock that a long read of this owner holds. Unused locks vanish."""

    async def read(self, owner: str, start: Callable[[], "asyncio.Future[T]"]) -> T:
        """Wait until the owner's previous long reads are done, then call `start` to begin one, and return its result.

        If the caller is cancelled, the next read of the owner still waits for this one, because it occupies a thread.
        """
        if owner == LOCAL_OWNER:
            return await start()
        lock = self._locks.setdefault(owner, asyncio.Lock())
        await lock.acquire()
        try:
            reading = start()
        except BaseException:
            lock.release()
            raise
        reading.add_done_callback(lambda _: lock.release())
        return await asyncio.shield(reading)
