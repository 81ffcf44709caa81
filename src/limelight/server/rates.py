"""How often somebody asks: so many requests in a minute, which begins with the first of them.

Minutes are counted by the clock that nobody sets: when the machine's time is put back by an hour, whoever was at the
limit would otherwise be refused for that hour.
"""

import asyncio
import time
from collections import Counter

from limelight.errors import TooManyRequests
from limelight.stores.base import LOCAL_OWNER

MINUTE = 60.0
REFUSAL_SECONDS = 0.25
"""How long a refusal takes: whoever asks again as soon as there is an answer does not keep the server busy by that."""


class Rates:
    """Counts the requests of each user; the user `local` is the machine's own, and asks as often as it likes."""

    def __init__(self, per_minute: int) -> None:
        self._per_minute = per_minute
        self._counts: Counter[str] = Counter()
        self._until = 0.0
        """When the minute is over: one for all users, so that nothing is kept of those who do not come back."""

    async def count(self, user_id: str) -> None:
        """Raises TooManyRequests, which says when the next minute begins."""
        if user_id == LOCAL_OWNER:
            return
        now = time.monotonic()
        if now >= self._until:
            self._counts.clear()
            self._until = now + MINUTE
        self._counts[user_id] += 1
        if self._counts[user_id] <= self._per_minute:
            return
        retry_after = max(1.0, self._until - now)
        await asyncio.sleep(REFUSAL_SECONDS)
        raise TooManyRequests(
            f"you have sent {self._per_minute} requests in a minute, which is the limit", retry_after=retry_after
        )
