"""Delays between connection attempts, and the time after which a client gives up.

Delays double from 0.1 to 5 seconds. Each is shortened by up to half at random, so that many clients do not reconnect
at the same moment. After a 429 the server's `retry_after` is added. Each record stream and each socket has a `Backoff`.
Which errors are retried is decided by `stream_records` (`record_stream.py`), `_post` (`run.py`) and
`Socket._reconnect` (`session_socket.py`).
"""

import asyncio
import random
import time
from collections.abc import Callable

from limelight.client.errors import ConnectionLost, Limited

INITIAL_DELAY = 0.1
MAX_DELAY = 5.0


class Backoff:
    """Exponential backoff with jitter and a time limit. Tests pass their own `clock` and `jitter`."""

    def __init__(
        self,
        give_up_seconds: float,
        clock: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._give_up_seconds = give_up_seconds
        self._clock = clock
        self._jitter = jitter
        self._attempts = 0
        self._failing_since: float | None = None

    def restart_timer(self) -> None:
        """Restart the time limit for giving up. Called when bytes arrive. The next delay stays the same."""
        self._failing_since = None

    def reset(self) -> None:
        """Restart the time limit for giving up, and the delays. Called when a frame or a heartbeat arrives."""
        self._failing_since = None
        self._attempts = 0

    def next_delay(self, cause: Exception) -> float:
        """Return the seconds to wait before connecting again. Raises ConnectionLost after `give_up_seconds`."""
        now = self._clock()
        if self._failing_since is None:
            self._failing_since = now
        left = self._give_up_seconds - (now - self._failing_since)
        if left <= 0:
            raise ConnectionLost(
                f"gave up after {self._give_up_seconds:g} s: {cause or type(cause).__name__}"
            ) from cause
        delay = min(INITIAL_DELAY * 2.0**self._attempts, MAX_DELAY) * (1 + self._jitter()) / 2
        if isinstance(cause, Limited):
            delay += cause.retry_after  # an earlier attempt would count against the server's rate limit
        self._attempts = min(self._attempts + 1, 16)
        return min(delay, left)

    async def wait(self, cause: Exception) -> None:
        await asyncio.sleep(self.next_delay(cause))
