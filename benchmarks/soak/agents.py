"""The agent of the soak: says numbers at a rate that can be set from outside, each with the time at which it is said.

`SOAK_RATE` names a file with the numbers that each run says in a second; with 0 runs end.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

from limelight.messages import Message
from limelight.sources.base import Context

NUMBERS = 200
"""In one run; then its session has the next one, which goes on counting."""
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
    """Goes on behind the number that it is told."""
    first = int(messages[-1].text)
    for number in range(first, first + NUMBERS):
        if not (in_a_second := rate()):
            return
        await asyncio.sleep(1 / in_a_second)
        yield f"~{number}:{time.monotonic_ns()}~"
