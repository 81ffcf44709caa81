"""Limits each owner to one long read at a time, so that no user occupies all reader threads."""

import asyncio
from collections.abc import Callable
from typing import TypeVar
from weakref import WeakValueDictionary

from limelight.models import LOCAL_OWNER

T = TypeVar("T")


class ReadLimiter:
    """A lock per owner for long reads. `LOCAL_OWNER` is not limited, because it represents all users without a key."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """The lock of each owner who has a long read that runs or waits."""

    async def read(self, owner: str, start: Callable[[], "asyncio.Future[T]"]) -> T:
        """Call `start`, which begins a read, when the owner's previous reads are done. Return the result of the read.

        If the caller is cancelled, the next read of the owner still waits for this one, which occupies a thread.
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
