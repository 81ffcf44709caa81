"""What requests hold in memory until their runs have begun, for each user: so much and no more.

A body counts from its first byte until it is refused, or its run has begun and takes it over; also while it waits for
its session, and when its client has left meanwhile.
"""

from collections import Counter

from limelight.errors import TooManyBytes
from limelight.models import LOCAL_OWNER
from limelight.runs.limits import RETRY_AFTER_SECONDS


class Load:
    """What one request holds."""

    def __init__(self, held: "Counter[str]", most: int, owner: str) -> None:
        self._held = held
        self._most = most
        self._owner = owner
        self._size = 0

    @property
    def size(self) -> int:
        return self._size

    def carry(self, size: int) -> None:
        """It has become this large. Raises TooManyBytes if others of its owner leave no room; alone it may be."""
        more = size - self._size
        if more > 0 and self._owner != LOCAL_OWNER:
            others = self._held[self._owner] - self._size
            if others > 0 and others + size > self._most:
                told = f"requests of yours hold {others:,} bytes of {self._most:,}: wait for one of them to begin"
                raise TooManyBytes(told, retry_after=RETRY_AFTER_SECONDS)
        self._change(more)

    def belong_to(self, owner: str) -> None:
        """It turns out to be somebody else's. Raises TooManyBytes."""
        size = self._size
        self.release()
        self._owner = owner
        self.carry(size)

    def release(self) -> None:
        self._change(-self._size)

    def _change(self, more: int) -> None:
        self._size += more
        self._held[self._owner] += more
        if not self._held[self._owner]:
            del self._held[self._owner]


class Loads:
    """Of all requests."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: Counter[str] = Counter()

    def of(self, owner: str) -> Load:
        """For one more request."""
        return Load(self._held, self._most, owner)

    def held(self, owner: str) -> int:
        return self._held[owner]
