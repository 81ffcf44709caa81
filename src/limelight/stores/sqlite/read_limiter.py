"""Limits each owner to one long read at a time, so that no user occupies all reader threads."""

import asyncio
from collections.abc import Callable
from typing import TypeVar
from weakref import WeakValueDictionary

from limelight.models import LOCAL_OWNER

T = TypeVar("T")


class ReadLimiter:
    """One lock per owner, on the event loop. `LOCAL_OWNER` is not limited: it stands for all users without a key."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """A lock exists while a read of its owner runs or waits."""

    async def read(self, owner: str, start: Callable[[], "asyncio.Future[T]"]) -> T:
        """Start a read when the owner's previous reads are done, and return its result.

        A caller that is cancelled keeps the lock until its read is done, because a thread is still working on it.
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
