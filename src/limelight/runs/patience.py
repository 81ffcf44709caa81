"""Patience with the store: what a live run needs it for is tried again until it works.

A store that fails for a while costs a run nothing but time. What comes from a request is not tried again: who asks is
told. A store that knows what is wrong with it says in the log when that begins and ends; nobody here repeats it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from limelight.errors import StoreUnavailable

T = TypeVar("T")
log = logging.getLogger(__name__)
RETRY_SECONDS = (0.05, 0.2, 0.5, 1.0, 2.0)


def is_told(error: Exception) -> bool:
    """Whether the log has this from the store already."""
    return isinstance(error, StoreUnavailable) and bool(error.words)


async def rest(tries: int) -> None:
    """Wait before the next try."""
    await asyncio.sleep(RETRY_SECONDS[min(tries, len(RETRY_SECONDS) - 1)])


async def patiently(work: Callable[[], Awaitable[T]]) -> T:
    """Do it until the store does not fail."""
    tries = 0
    while True:
        try:
            return await work()
        except StoreUnavailable as error:
            if not tries and not is_told(error):
                log.error("the store fails, trying again: %s", error)
            await rest(tries)
            tries += 1
