"""For processes with this folder in PYTHONPATH: their wall clock is ahead by the days that the file CLOCK has."""

import os
import time
from pathlib import Path

DAY_NS = 24 * 3600 * 10**9

_real_ns = time.time_ns
_days = Path(os.environ.get("CLOCK", os.devnull))


def shifted_ns() -> int:
    return _real_ns() + int(_days.read_text() or "0") * DAY_NS


def shifted() -> float:
    return shifted_ns() / 1e9


if "CLOCK" in os.environ:
    time.time_ns, time.time = shifted_ns, shifted
