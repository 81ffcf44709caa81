"""What has come and nobody has taken yet: so much and no more.

Whoever fills it asks for room first. It must not know what is in it; `Socket` is the caller.
"""

import asyncio
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")
HOLDS = 256


class Inbox(Generic[T]):
    """Filled by one task, emptied by another, on one event loop."""

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self._filled = asyncio.Event()
        self._emptied = asyncio.Event()
        self._end: Exception | None = None
        self._over = False

    @property
    def full(self) -> bool:
        return len(self._items) >= HOLDS

    @property
    def empty(self) -> bool:
        return not self._items

    def put(self, item: T) -> None:
        self._items.append(item)
        self._filled.set()

    def stir(self) -> None:
        """Wake who waits for room, because there is something else to think of."""
        self._emptied.set()

    async def stirred(self, seconds: float | None) -> bool:
        """Wait until something was taken, or `stir`. False if it took too long."""
        self._emptied.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._emptied.wait()
        except TimeoutError:
            return False
        return True

    async def take(self) -> T:
        """The next item. Behind the last one it raises the error with which it ended, or StopAsyncIteration."""
        while not self._items:
            if self._over:
                raise self._end or StopAsyncIteration
            self._filled.clear()
            await self._filled.wait()
        item = self._items.popleft()
        self._emptied.set()
        return item

    def end(self, error: Exception | None) -> None:
        """Nothing more will come. The first end counts."""
        if not self._over:
            self._over, self._end = True, error
        self._filled.set()
