"""Creates unique ids that sort by creation time (like ULIDs), and reads the wall clock."""

import secrets
import time

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


def sortable_id(prefix: str) -> str:
    """Return a new id such as `run_01k9…`: the prefix, 48 bits of milliseconds and 80 random bits in base 32."""
    number = (time.time_ns() // 1_000_000) << 80 | secrets.randbits(80)
    return prefix + "".join(_ALPHABET[number >> shift & 31] for shift in range(125, -5, -5))


def now_ms() -> int:
    """Return the current time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000
