"""Token buckets, which limit the rate of an action. Pure; clocks are passed in."""

from collections import OrderedDict
from collections.abc import Callable


class TokenBucket:
    """A rate limit that allows `burst` actions at once, and `per_second` actions in the long run. It starts full."""

    def __init__(self, burst: int, per_second: float, clock: Callable[[], float]) -> None:
        self._burst = burst
        self._per_second = per_second
        self._clock = clock
        self._tokens = float(burst)
        self._updated_at = clock()

    def spend(self) -> bool:
        """Take one token. Return False if there is none."""
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._updated_at) * self._per_second)
        self._updated_at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


class TokenBuckets:
    """A token bucket for each key. The least recently used buckets are dropped, and start full when used again."""

    def __init__(self, burst: int, per_second: float, clock: Callable[[], float], max_keys: int = 4096) -> None:
        self._make = lambda: TokenBucket(burst, per_second, clock)
        self._max_keys = max_keys
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()

    def spend(self, key: str) -> bool:
        """Take one token from the bucket of a key. Return False if there is none."""
        bucket = self._buckets.pop(key, None) or self._make()
        self._buckets[key] = bucket
        if len(self._buckets) > self._max_keys:
            self._buckets.popitem(last=False)
        return bucket.spend()
