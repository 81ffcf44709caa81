"""The agent of the soak test: it emits numbers at a rate that the benchmark sets, each with the time when it was due.

Latency counts from the due time, so a number that the busy machine emits late is late. `SOAK_RATE` is a file with the
numbers that each run emits in a second; at 0 runs end.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

from limelight.messages import Message
from limelight.sources.base import Context

READ_INTERVAL_SECONDS = 0.5
_rate = 1.0
_read_at = 0.0


def current_rate() -> float:
    """Return the rate in numbers a second. All runs share one read of the file."""
    global _rate, _read_at
    if time.monotonic() > _read_at + READ_INTERVAL_SECONDS:
        _read_at = time.monotonic()
        _rate = float(Path(os.environ["SOAK_RATE"]).read_text())
    return _rate


async def counter(messages: list[Message], ctx: Context) -> AsyncIterator[str]:
    """Emit numbers at the current rate. The message contains the first number and how many to emit."""
    first, count = map(int, messages[-1].text.split())
    due = time.monotonic()
    for number in range(first, first + count):
        if not (rate := current_rate()):
            return
        due += 1 / rate
        await asyncio.sleep(max(0, due - time.monotonic()))
        yield f"~{number}:{round(due * 1e9)}~"
