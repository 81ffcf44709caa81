"""Agents of a server whose wall clock can be set: the file that the variable CLOCK names has the seconds to add.

Loading this file replaces the clock of the process, before the server opens its store.
"""

import os
import time
from pathlib import Path

from tests.support.agents import asker
from tests.system.faults.agents import timed
from tests.system.processes.agents import hello, quiet

__all__ = ["asker", "hello", "quiet", "timed"]

_real_ns = time.time_ns
_hands = Path(os.environ.get("CLOCK", os.devnull))


def shifted_ns() -> int:
    return _real_ns() + int(_hands.read_text() or "0") * 1_000_000_000


def shifted() -> float:
    return shifted_ns() / 1e9


if "CLOCK" in os.environ:
    time.time_ns, time.time = shifted_ns, shifted
