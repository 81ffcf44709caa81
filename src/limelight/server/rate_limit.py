"""Rate limits of requests: `RateLimiter` per user, and `Throttle` for requests that count for no user.

Refused requests, probes and requests for the files of the page count for no user. `Throttle` delays them beyond a total
rate. Stop and decisions for a run that has not ended are never refused by `RateLimiter`: HTTP requests are exempted in
`ApiRequest.count_signal` (`endpoint.py`), and commands of a socket in `CommandHandler` (`v2/commands.py`).
"""

import asyncio
import heapq
import itertools
from collections import Counter
from collections.abc import Callable
from time import monotonic
from typing import NamedTuple

from starlette.types import Scope

from limelight.errors import TooManyRequests
from limelight.models import LOCAL_OWNER
from limelight.runs.limits import TokenBucket

MINUTE_SECONDS = 60.0
REFUSAL_DELAY_SECONDS = 0.25
"""Delay before a request is refused, so that a client that retries at once does not keep the server busy."""
MAX_IDLE_WINDOWS = 4096
"""Number of stored windows above which ended windows are removed."""
ANSWERS_PER_SECOND = 500
ANSWER_BURST = 200
RELEASE_SECONDS = 0.01
"""Interval at which the throttle releases waiting requests."""
RECENT_SECONDS = 10.0
"""Period over which the throttle counts the recent requests of each client."""
PURGE_LENGTH = 1000
"""Number of waiting requests above which requests of disconnected clients are removed."""


class RateLimiter:
    """Limits the requests of each user per minute. A window begins with the user's first request.

    The user `local`, which is the machine's own, has no limit.
    """

    def __init__(self, per_minute: int, clock: Callable[[], float] = monotonic) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._windows: dict[str, tuple[float, int]] = {}
        """By user id: the end of the current window, and the number of requests in it."""
        self._purge_length = MAX_IDLE_WINDOWS

    async def count(self, user_id: str) -> None:
        """Count a request of a user. Raises TooManyRequests, with the time until the next window, above the limit."""
        if user_id == LOCAL_OWNER:
            return
        now = self._clock()
        ends_at, requests = self._windows.get(user_id, (0.0, 0))
        if ends_at <= now:
            ends_at, requests = now + MINUTE_SECONDS, 0
            self._purge(now)
        self._windows[user_id] = ends_at, requests + 1
        if requests < self._per_minute:
            return
        await asyncio.sleep(REFUSAL_DELAY_SECONDS)
        raise TooManyRequests(
            f"you have sent {self._per_minute} requests in a minute, which is the limit",
            retry_after=max(1.0, ends_at - self._clock()),
        )

    def _purge(self, now: float) -> None:
        if len(self._windows) > self._purge_length:
            self._windows = {user_id: window for user_id, window in self._windows.items() if window[0] > now}
            self._purge_length = max(MAX_IDLE_WINDOWS, 2 * len(self._windows))


class _WaitingRequest(NamedTuple):
    """A request that waits in the throttle. The request with the smallest rank is answered first. Ranks are unique."""

    rank: tuple[bool, int, int]
    is_gone: Callable[[], bool]
    future: asyncio.Future[bool]

    def drop_if_gone(self) -> bool:
        """Drop the request if its client has disconnected. Return whether it no longer waits."""
        if self.is_gone() and not self.future.done():
            self.future.set_result(False)
        return self.future.done()


class Throttle:
    """Delays requests beyond a total rate. Each open connection has at most one waiting request.

    Refusals are answered last. Among other requests, those of clients with the fewest recent requests are answered
    first, and among these the newest. So a flood of requests does not delay a probe.
    """

    def __init__(self, per_second: float = ANSWERS_PER_SECOND, burst: int = ANSWER_BURST) -> None:
        self._budget = TokenBucket(burst, per_second, monotonic)
        self._recent: Counter[str] = Counter()
        self._recent_until = 0.0
        self._waiting: list[_WaitingRequest] = []
        self._purge_length = PURGE_LENGTH
        self._timer: asyncio.TimerHandle | None = None
        self._order = itertools.count()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    async def wait(self, client: str, *, is_refusal: bool = False, is_gone: Callable[[], bool] = lambda: False) -> bool:
        """Wait until a request of this client may be answered. Return False if the client disconnects before."""
        loop = asyncio.get_running_loop()
        if loop.time() > self._recent_until:
            self._recent.clear()
            self._recent_until = loop.time() + RECENT_SECONDS
        self._recent[client] += 1
        if not self._waiting and self._budget.spend():
            return True
        future = loop.create_future()
        rank = (is_refusal, self._recent[client], -next(self._order))
        heapq.heappush(self._waiting, _WaitingRequest(rank, is_gone, future))
        if len(self._waiting) > self._purge_length:
            self._purge()
        self._schedule(loop)
        return await future

    def _schedule(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._timer is None and self._waiting:
            self._timer = loop.call_later(RELEASE_SECONDS, self._release, loop)

    def _release(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        while self._waiting and (self._waiting[0].drop_if_gone() or self._budget.spend()):
            request = heapq.heappop(self._waiting)
            if not request.drop_if_gone():
                request.future.set_result(True)
        self._schedule(loop)

    def _purge(self) -> None:
        """Remove requests of disconnected clients. `_release` removes them only at the front of the queue."""
        self._waiting = [request for request in self._waiting if not request.drop_if_gone()]
        heapq.heapify(self._waiting)
        self._purge_length = max(PURGE_LENGTH, 2 * len(self._waiting))


def client_of(scope: Scope) -> str:
    """Return the client of a request as `host:port`. Behind a trusted proxy, this is the address that it forwards."""
    host, port = scope.get("client") or ("", 0)
    return f"{host}:{port}"


def is_gone(scope: Scope) -> bool:
    """Whether the connection of a request is closed. Always False under ASGI servers other than `limelight serve`."""
    transport: asyncio.Transport | None = scope.get("state", {}).get("transport")
    return transport is not None and transport.is_closing()
