"""An event loop whose clock is stopped until the test moves it.

A test that has the fixture `loop_clock` runs on such a loop. It must not wait for threads, sockets or timers, because
no timer of the loop is due before the test moves the clock.
"""

import asyncio

from tests.support.checked_loop import CheckedLoop

TURNS = 50
"""Turns of the loop after a move of the clock: more than any chain of callbacks in the code under test."""


class ManualLoop(CheckedLoop):
    """An event loop with a clock that only `Clock.advance` moves."""

    now = 1000.0

    def time(self) -> float:
        return self.now


class Clock:
    """The clock of the running loop."""

    def __init__(self, loop: ManualLoop) -> None:
        self._loop = loop

    @property
    def now(self) -> float:
        return self._loop.now

    async def advance(self, seconds: float) -> None:
        """Move the clock, and let everything run that is due then."""
        self._loop.now += seconds
        await self.settle()

    async def settle(self) -> None:
        """Let everything run that is due now."""
        for _ in range(TURNS):
            await asyncio.sleep(0)
