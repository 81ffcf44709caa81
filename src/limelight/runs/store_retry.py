"""Retries of store operations for live runs, until the store works again.

A store that fails for some time only delays live runs. Store operations of a client's request are not retried: the
client gets the error. If the store knows its fault, it logs when the fault begins and ends, so nothing is logged here.

The log itself is written by `committer.py`, which retries without a limit, with the delays of this module.
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
"""Maximum number of retries if the store names no fault, because the operation itself may be wrong."""


def is_logged(error: Exception) -> bool:
    """Whether the store has already logged an error, so that the caller need not log it."""
    return isinstance(error, StoreUnavailable) and bool(error.words)


async def pause_before_retry(tries: int) -> None:
    """Sleep before the next attempt of a store operation; longer, the more attempts (`tries`) have failed."""
    await asyncio.sleep(RETRY_SECONDS[min(tries, len(RETRY_SECONDS) - 1)])


async def retry_while_unavailable(work: Callable[[], Awaitable[T]]) -> T:
    """Call a store operation until it succeeds, and return its result.

    Raises StoreUnavailable if the store names no fault and the operation fails more than TRIES_UNEXPLAINED times.
    """
    tries = 0
    while True:
        try:
            return await work()
        except StoreUnavailable as error:
            if not is_logged(error):
                if tries == TRIES_UNEXPLAINED:
                    raise
                if not tries:
                    log.error("the store fails, trying again: %s", error)
            await pause_before_retry(tries)
            tries += 1
