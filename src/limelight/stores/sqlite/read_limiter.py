"""One long read at a time for each owner, so that nobody keeps all readers busy, however much they ask for at once.

Used by the store's face, on the event loop. The machine's own user stands for many, and is not held up.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TypeVar

from limelight.stores.base import LOCAL_OWNER

T = TypeVar("T")


class Turns:
    """Who reads, and who waits for that."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """Owners of whom somebody reads now, with those who come after it."""

    async def read(self, owner: str, begin: Callable[[], "asyncio.Future[T]"]) -> T:
        """Begin to read when it is this one's turn. Whoever leaves gives the turn on when a thread is free of it."""
        if owner == LOCAL_OWNER:
            return await begin()
        await self._turn(owner)
        try:
            reading = begin()
        except BaseException:
            self._next(owner)
            raise
        reading.add_done_callback(lambda _: self._next(owner))
        return await asyncio.shield(reading)

    async def _turn(self, owner: str) -> None:
        if owner not in self._waiting:
            self._waiting[owner] = deque()
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[owner].append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # it was given, and nobody is there to take it
                self._next(owner)
            raise

    def _next(self, owner: str) -> None:
        waiting = self._waiting[owner]
        while waiting:
            turn = waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        del self._waiting[owner]
