"""Token buckets: how much a client may do at once, and per second, before it is slowed down or refused."""

from collections import OrderedDict
from collections.abc import Callable


class Budget:
    """A token bucket that starts full."""

    def __init__(self, burst: int, per_second: float, clock: Callable[[], float]) -> None:
        self._burst = burst
        self._per_second = per_second
        self._clock = clock
        self._tokens = float(burst)
        self._updated_at = clock()

    def spend(self) -> bool:
        """Take one token. False if there is none."""
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._updated_at) * self._per_second)
        self._updated_at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


class Budgets:
    """A budget for each name. Those that were used least recently are forgotten, and start full again."""

    def __init__(self, burst: int, per_second: float, clock: Callable[[], float], most: int = 4096) -> None:
        self._make = lambda: Budget(burst, per_second, clock)
        self._most = most
        self._budgets: OrderedDict[str, Budget] = OrderedDict()

    def spend(self, name: str) -> bool:
        """Take one token of this budget. False if there is none."""
        budget = self._budgets.pop(name, None) or self._make()
        self._budgets[name] = budget
        if len(self._budgets) > self._most:
            self._budgets.popitem(last=False)
        return budget.spend()
