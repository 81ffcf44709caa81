"""Moments as text. It turns a number into words and never asks a clock, so that pure parts may use it."""

from datetime import UTC, datetime


def iso(at: int) -> str:
    """Milliseconds since 1970 as an ISO 8601 text in UTC."""
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
