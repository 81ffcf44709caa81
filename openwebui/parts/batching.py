"""Frames in bundles, because one event per token would keep a browser busy long after the agent is done."""

import asyncio
import time
from collections.abc import AsyncIterator

from openwebui.parts.frames import Frame

PACE = 0.04
"""Seconds between two chunks: one event per token would keep the browser busy for seconds after the agent is done."""

IDLE = 1.0
"""Seconds without news after which there is an empty bundle: a display may have put something off."""


async def paced(queue: asyncio.Queue[Frame | None]) -> AsyncIterator[list[Frame]]:
    """Frames in bundles: the first one at once, and after that one bundle per pace. None ends it."""
    due = 0.0
    while True:
        try:
            # Not `wait_for`: before Python 3.12 it loses a cancel that comes together with a frame, and so a Stop.
            async with asyncio.timeout(IDLE):
                frames = [await queue.get()]
        except TimeoutError:
            yield []
            continue
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        while not queue.empty():
            frames.append(queue.get_nowait())
        due = time.monotonic() + PACE
        yield [frame for frame in frames if frame is not None]
        if None in frames:
            return
