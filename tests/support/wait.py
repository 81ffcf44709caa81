"""Waiting for a condition instead of sleeping."""

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

import httpx

T = TypeVar("T")
DEADLINE = 120
"""Seconds. The machine may be busy, so no test gives up on a condition earlier; one that hangs still ends."""


async def eventually(condition: Callable[[], object], seconds: float = DEADLINE) -> None:
    """Return as soon as the condition holds; fail if it does not in time."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while not condition():
        assert loop.time() < deadline, f"not within {seconds} s"
        await asyncio.sleep(0.005)


def wait_for(what: str, check: Callable[[], T], seconds: float = DEADLINE) -> T:
    """Poll another process until the check returns a true value, and return it. An error of the check counts as false.

    A check that finds that waiting is useless raises RuntimeError.
    """
    deadline = time.monotonic() + seconds
    problem: BaseException | None = None
    while time.monotonic() < deadline:
        try:
            if result := check():
                return result
        except (httpx.HTTPError, AssertionError, LookupError, OSError) as error:
            problem = error
        time.sleep(0.02)
    raise AssertionError(f"waited {seconds} s for {what}") from problem
