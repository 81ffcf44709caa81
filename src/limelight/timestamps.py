"""Moments as text. It turns a number into words and never asks a clock, so that pure parts may use it."""

from datetime import UTC, datetime
from functools import lru_cache

LAST = 253_402_300_799_999
"""The end of the year 9999, behind which calendars have no words."""


@lru_cache(maxsize=256)  # what happens at once is dated alike
def iso(at: int) -> str:
    """Milliseconds since 1970 as an ISO 8601 text in UTC."""
    moment = datetime.fromtimestamp(min(max(at, 0), LAST) / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
