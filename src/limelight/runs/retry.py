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
TRIES_UNEXPLAINED = len(RETRY_SECONDS)
"""So often it is tried what the store refuses without knowing why: it may be what it is given, and no time helps."""


def is_told(error: Exception) -> bool:
    """Whether the log has this from the store already."""
    return isinstance(error, StoreUnavailable) and bool(error.words)


async def rest(tries: int) -> None:
    """Wait before the next try."""
    await asyncio.sleep(RETRY_SECONDS[min(tries, len(RETRY_SECONDS) - 1)])


async def patiently(work: Callable[[], Awaitable[T]]) -> T:
    """Do it until the store does not fail. Raises StoreUnavailable if that does not look like something that passes."""
    tries = 0
    while True:
        try:
            return await work()
        except StoreUnavailable as error:
            if not is_told(error):
                if tries == TRIES_UNEXPLAINED:
                    raise
                if not tries:
                    log.error("the store fails, trying again: %s", error)
            await rest(tries)
            tries += 1
