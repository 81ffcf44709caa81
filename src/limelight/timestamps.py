"""Formats timestamps as ISO 8601. It does not read the clock, so that pure modules may use it."""

from datetime import UTC, datetime
from functools import lru_cache

MAX_MS = 253_402_300_799_999
"""The end of the year 9999 in milliseconds since 1970, the latest time that `datetime` supports."""


@lru_cache(maxsize=256)  # many records have the same time
def iso(at: int) -> str:
    """Format milliseconds since 1970 as ISO 8601 in UTC."""
    moment = datetime.fromtimestamp(min(max(at, 0), MAX_MS) / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
