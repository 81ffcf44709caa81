"""Ids: 26 characters that sort by the time they were made and do not repeat (the form of a ULID)."""

import secrets
import time

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


def sortable_id(prefix: str) -> str:
    """`run_` -> `run_01k9…`: 48 bits of milliseconds, then 80 random bits, in Crockford's base 32."""
    number = (time.time_ns() // 1_000_000) << 80 | secrets.randbits(80)
    return prefix + "".join(_ALPHABET[number >> shift & 31] for shift in range(125, -5, -5))


def now_ms() -> int:
    """The wall clock in milliseconds."""
    return time.time_ns() // 1_000_000
