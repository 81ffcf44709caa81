"""Limits the pixels of all images that live turns have decoded: of each user, and of all users together.

A small file can contain an image of gigabytes, so images are counted by their pixels. A decoded pixel takes four bytes.
An agent shows all images of its conversation to its model, so a turn counts those of earlier turns, too. Pure.
"""

import threading
from collections import Counter

from limelight.errors import TooManyBytes
from limelight.models import LOCAL_OWNER

PIXELS_PER_USER = 50_000_000
PIXELS = 150_000_000
RETRY_AFTER_SECONDS = 5


class ImageBudget:
    """The pixels that live turns may have decoded. For the user `local`, only the limit of all users applies."""

    def __init__(self, pixels_per_user: int = PIXELS_PER_USER, pixels: int = PIXELS) -> None:
        self.pixels_per_user = pixels_per_user
        self.pixels = pixels
        self._lock = threading.Lock()
        self._by_user: Counter[str] = Counter()

    def lease(self, user_id: str) -> "ImageLease":
        """Return the share of a new turn of a user, which is empty."""
        return ImageLease(self, user_id)

    def limit_of(self, user_id: str) -> int:
        """Return the pixels that one user may have decoded."""
        return self.pixels if user_id == LOCAL_OWNER else min(self.pixels_per_user, self.pixels)

    def reserve(self, user_id: str, pixels: int) -> None:
        """Add the pixels of an image. Raises TooManyBytes if live turns have too many."""
        with self._lock:
            if self._by_user[user_id] + pixels > self.limit_of(user_id):
                raise TooManyBytes(
                    f"the images of your live runs have more than {self.limit_of(user_id):,} pixels together, "
                    "which is the limit: wait for a run to end",
                    retry_after=RETRY_AFTER_SECONDS,
                )
            if self._by_user.total() + pixels > self.pixels:
                raise TooManyBytes(
                    f"the images of all live runs have more than {self.pixels:,} pixels together, "
                    "which is the limit of this server: try again later",
                    retry_after=RETRY_AFTER_SECONDS,
                )
            self._by_user[user_id] += pixels

    def release(self, user_id: str, pixels: int) -> None:
        """Subtract pixels that `reserve` has added."""
        with self._lock:
            self._by_user[user_id] -= pixels
            if self._by_user[user_id] <= 0:
                del self._by_user[user_id]


class ImageLease:
    """The pixels of the images that one turn has decoded. Any thread may use it."""

    def __init__(self, budget: ImageBudget, user_id: str) -> None:
        self._budget = budget
        self._user_id = user_id
        self._pixels = 0
        self._lock = threading.Lock()

    def reserve(self, pixels: int) -> bool:
        """Reserve the pixels of an image before it is decoded. Return False if the turn alone would have too many.

        Raises TooManyBytes if the turn has too many together with other live turns.
        """
        with self._lock:
            if self._pixels + pixels > self._budget.limit_of(self._user_id):
                return False
            self._budget.reserve(self._user_id, pixels)
            self._pixels += pixels
            return True

    def close(self) -> None:
        """Release all pixels of the turn, because its images are no longer decoded."""
        with self._lock:
            self._budget.release(self._user_id, self._pixels)
            self._pixels = 0


def separate_lease() -> ImageLease:
    """Return a lease with the default limits of a user, of a budget of its own."""
    return ImageBudget().lease("")
