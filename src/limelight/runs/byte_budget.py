"""What may still be kept of a session, in bytes, while a run adds to it."""

from collections.abc import Callable


class Allowance:
    """Counts down, and says once that there is no more."""

    def __init__(self, left: int, on_spent: Callable[[], None]) -> None:
        self._left = left
        self._on_spent = on_spent

    @property
    def is_spent(self) -> bool:
        return self._left < 0

    def allows(self, size: int) -> bool:
        return self._left >= size

    def spend(self, size: int) -> None:
        had_some = not self.is_spent
        self._left -= size
        if had_some and self.is_spent:
            self._on_spent()
