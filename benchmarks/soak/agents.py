"""The agent of the soak: says numbers at a rate that can be set from outside, each with the time at which it was due.

A number that is said late, because the machine had no time for its agent, counts as late: nobody who waits for it cares
why.

`SOAK_RATE` names a file with the numbers that each run says in a second; with 0 runs end.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

from limelight.messages import Message
from limelight.sources.base import Context

LOOK_SECONDS = 0.5
_rate = 1.0
_looked_at = 0.0


def rate() -> float:
    """Numbers a second; the file is looked at for all runs together."""
    global _rate, _looked_at
    if time.monotonic() > _looked_at + LOOK_SECONDS:
        _looked_at = time.monotonic()
        _rate = float(Path(os.environ["SOAK_RATE"]).read_text())
    return _rate


async def counter(messages: list[Message], ctx: Context) -> AsyncIterator[str]:
    """Is told the number to begin with, and how many."""
    first, count = map(int, messages[-1].text.split())
    due = time.monotonic()
    for number in range(first, first + count):
        if not (in_a_second := rate()):
            return
        due += 1 / in_a_second
        await asyncio.sleep(max(0, due - time.monotonic()))
        yield f"~{number}:{round(due * 1e9)}~"
