"""Rate limits of requests and socket messages: `RateLimiter` for each user, `Throttle` for requests that have no user.

Refused requests, probes and requests for the files of the page have no user. `Throttle` delays them beyond a total
rate. `RateLimiter` never refuses Stop and decisions for a run that has not ended: `ApiRequest.count_signal`
(`endpoint.py`) exempts them over HTTP, and `CommandHandler` (`v2/commands.py`) on a socket.
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
from limelight.server.middleware.client_address import address_group
from limelight.server.token_bucket import TokenBucket

MINUTE_SECONDS = 60.0
SIGNAL_BURST = 20
SIGNALS_PER_SECOND = 2.0
"""Limit of the Stops and decisions for one run that are answered without delay: a burst of SIGNAL_BURST, and this
rate."""
MESSAGE_BURST = 200
MESSAGES_PER_SECOND = 50
"""Limit of the messages on one socket: a burst of MESSAGE_BURST, and this rate. Every message counts, even a ping. Stop
and decisions have a separate limit of this size."""
USER_MESSAGE_BURST = 1000
USER_MESSAGES_PER_SECOND = 200.0
"""Limit of the messages on all sockets of a user, also of messages that do not count as requests."""
REFUSAL_DELAY_SECONDS = 0.25
"""Delay before a request is refused, so that a client that retries at once does not keep the server busy."""
MAX_IDLE_WINDOWS = 4096
"""Number of users with a stored time window above which windows that have ended are removed."""
ANSWERS_PER_SECOND = 500
ANSWER_BURST = 200
RELEASE_SECONDS = 0.01
"""Interval at which the throttle admits waiting requests."""
RECENT_SECONDS = 10.0
"""Period over which the throttle counts the recent requests of each connection and of each host."""
FEW_REQUESTS = 64
"""Recent requests of a host below which the throttle treats all hosts alike."""
PURGE_LENGTH = 1000
"""Number of waiting requests above which requests of disconnected clients are removed."""


class RateLimiter:
    """Limits the requests of each user per minute, in fixed time windows that begin with a request of the user.

    The user `local` has no limit.
    """

    def __init__(self, per_minute: int, clock: Callable[[], float] = monotonic) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._windows: dict[str, tuple[float, int]] = {}
        """By user id: the end of the current window, and the number of requests in it."""
        self._purge_length = MAX_IDLE_WINDOWS

    async def count(self, user_id: str, *, is_delayed: bool = True) -> None:
        """Count a request of a user. Above the limit, raise TooManyRequests with the time until the next window.

        The error is raised after a delay, unless `is_delayed` is false.
        """
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
        await asyncio.sleep(REFUSAL_DELAY_SECONDS if is_delayed else 0)
        raise TooManyRequests(
            f"you have sent {self._per_minute} requests in a minute, which is the limit",
            retry_after=max(1.0, ends_at - self._clock()),
        )

    def _purge(self, now: float) -> None:
        if len(self._windows) > self._purge_length:
            self._windows = {user_id: window for user_id, window in self._windows.items() if window[0] > now}
            self._purge_length = max(MAX_IDLE_WINDOWS, 2 * len(self._windows))


class _WaitingRequest(NamedTuple):
    """A request that waits in the throttle. The one with the smallest rank is admitted first; ranks are unique."""

    rank: tuple[bool, int, int, int]
    is_gone: Callable[[], bool]
    future: asyncio.Future[bool]

    def drop_if_gone(self) -> bool:
        """Stop waiting if the client has disconnected. Return whether the request no longer waits."""
        if self.is_gone() and not self.future.done():
            self.future.set_result(False)
        return self.future.done()


class Throttle:
    """Delays requests without a user beyond a total rate. Each open connection has at most one waiting request.

    Requests that will be refused are admitted last. Among the others, those of hosts with the fewest recent requests
    come first, compared by their order of magnitude; then those of connections with the fewest, and among these the
    newest. So a flood does not delay a probe, not even a flood of many connections with few requests each. All clients
    behind a proxy that does not forward their addresses are one host.
    """

    def __init__(self, per_second: float = ANSWERS_PER_SECOND, burst: int = ANSWER_BURST) -> None:
        self._bucket = TokenBucket(burst, per_second, monotonic)
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
        """Wait until the rate admits a request of this client. Return False if the client disconnects before."""
        loop = asyncio.get_running_loop()
        if loop.time() > self._recent_until:
            self._recent.clear()
            self._recent_until = loop.time() + RECENT_SECONDS
        host = address_group(client.rpartition(":")[0])
        self._recent[client] += 1
        self._recent[host] += 1
        if not self._waiting and self._bucket.spend():
            return True
        future = loop.create_future()
        magnitude = (self._recent[host] // FEW_REQUESTS).bit_length()
        rank = (is_refusal, magnitude, self._recent[client], -next(self._order))
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
        while self._waiting and (self._waiting[0].drop_if_gone() or self._bucket.spend()):
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
    """Return the client of a request as `host:port`. Behind a trusted proxy, this is the address in its header."""
    host, port = scope.get("client") or ("", 0)
    return f"{host}:{port}"


def is_gone(scope: Scope) -> bool:
    """Whether the connection of a request is closed. Always False under ASGI servers other than `limelight serve`."""
    transport: asyncio.Transport | None = scope.get("state", {}).get("transport")
    return transport is not None and transport.is_closing()
