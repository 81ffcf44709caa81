"""How often somebody asks: so many requests in a minute, counted by the clock's minutes."""

import asyncio
import time

from limits import RateLimitItemPerMinute
from limits.aio.storage import MemoryStorage
from limits.aio.strategies import FixedWindowRateLimiter

from limelight.errors import TooManyRequests
from limelight.models import LOCAL_OWNER

REFUSAL_SECONDS = 0.25
"""How long a refusal takes: whoever asks again as soon as there is an answer does not keep the server busy by that."""
JUMP_SECONDS = 5.0
"""By so much the clock is not corrected but set."""


class Rates:
    """Counts the requests of each user; the user `local` is the machine's own, and asks as often as it likes."""

    def __init__(self, per_minute: int) -> None:
        self._limit = RateLimitItemPerMinute(per_minute)
        self._storage = MemoryStorage()
        self._limiter = FixedWindowRateLimiter(self._storage)
        self._offset = _offset()

    async def count(self, user_id: str) -> None:
        """Raises TooManyRequests, which says when the next minute begins."""
        if user_id == LOCAL_OWNER:
            return
        await self._heed_the_clock()
        if await self._limiter.hit(self._limit, user_id):
            return
        window = await self._limiter.get_window_stats(self._limit, user_id)
        await asyncio.sleep(REFUSAL_SECONDS)
        raise TooManyRequests(
            f"you have sent {self._limit.amount} requests in a minute, which is the limit",
            retry_after=max(1.0, window.reset_time - time.time()),
        )

    async def _heed_the_clock(self) -> None:
        """Count anew when the clock was set: back by an hour, and whoever was at the limit stays there for an hour."""
        offset = _offset()
        if abs(offset - self._offset) > JUMP_SECONDS:
            self._offset = offset
            await self._storage.reset()


def _offset() -> float:
    """Between the clock of the machine, which can be set, and one that cannot."""
    return time.time() - time.monotonic()
