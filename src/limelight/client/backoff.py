"""How long to wait before the next try, and when to give up.

Waits grow from a tenth of a second to five, each shortened by chance, so that a thousand clients do not come back in
step. Who has met a limit waits as long as the server says besides. Any sign of life begins anew. It must not know what
is tried; `resuming` and `Socket` are the callers.
"""

import asyncio
import random
import time
from collections.abc import Callable

from limelight.client.errors import ConnectionLost, Limited

FIRST_SECONDS = 0.1
MOST_SECONDS = 5.0


class Patience:
    """One stream's. `clock` and `chance` are for tests."""

    def __init__(
        self,
        give_up_seconds: float,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._limit = give_up_seconds
        self._clock = clock
        self._chance = chance
        self._tries = 0
        self._failing_since: float | None = None

    def alive(self) -> None:
        """Something came."""
        self._failing_since = None

    def well(self) -> None:
        """Something came that was worth connecting for."""
        self._failing_since = None
        self._tries = 0

    def next_wait(self, why: Exception) -> float:
        """How many seconds to wait now. Raises ConnectionLost when it has been too long."""
        now = self._clock()
        if self._failing_since is None:
            self._failing_since = now
        left = self._limit - (now - self._failing_since)
        if left <= 0:
            raise ConnectionLost(f"gave up after {self._limit:g} s: {why or type(why).__name__}") from why
        wait = min(FIRST_SECONDS * 2.0**self._tries, MOST_SECONDS) * (1 + self._chance()) / 2
        if isinstance(why, Limited):
            wait += why.retry_after  # to come earlier would only count as one more
        self._tries = min(self._tries + 1, 16)
        return min(wait, left)

    async def wait(self, why: Exception) -> None:
        await asyncio.sleep(self.next_wait(why))
