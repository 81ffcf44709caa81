"""Waiting for a condition instead of sleeping."""

import asyncio
from collections.abc import Callable


async def eventually(condition: Callable[[], object], seconds: float = 10) -> None:
    """Return as soon as the condition holds; fail if it does not in time."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while not condition():
        assert loop.time() < deadline, f"not within {seconds} s"
        await asyncio.sleep(0.005)
