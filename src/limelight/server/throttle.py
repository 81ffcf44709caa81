"""The pace of answers that no user pays for: refusals, probes, and the files of the page.

They cost as much as any other request, and no limit per user applies, so the server answers them at a bounded rate.
Refusals come last. Of the others, clients with the fewest recent requests come first, and of these the latest: a flood
waits, a probe does not.
"""

import asyncio
import heapq
import itertools
from collections import Counter
from collections.abc import Callable
from time import monotonic

from starlette.types import Scope

from limelight.runs.limits import TokenBucket

PER_SECOND = 500
BURST = 200
RELEASE_SECONDS = 0.01
"""How often waiting requests are looked at."""
WINDOW_SECONDS = 10.0
"""How long the requests of a client are remembered."""
PURGE_LENGTH = 1000
"""How many may wait before those whose clients have left are removed."""


class Turn:
    """A request that waits, in the order in which requests are answered."""

    def __init__(self, rank: tuple[bool, int, int], is_gone: Callable[[], bool], future: asyncio.Future[bool]) -> None:
        self._rank = rank
        self._is_gone = is_gone
        self._future = future

    def __lt__(self, other: "Turn") -> bool:
        return self._rank < other._rank

    def drop_if_gone(self) -> bool:
        """Drop the request if its client has left. True if it is dropped, or was cancelled."""
        if self._is_gone() and not self._future.done():
            self._future.set_result(False)
        return self._future.done()

    def take(self) -> None:
        self._future.set_result(True)


class Throttle:
    """Lets requests pass, or holds them until it is their turn. An open connection has at most one that waits."""

    def __init__(self, per_second: float = PER_SECOND, burst: int = BURST) -> None:
        self._budget = TokenBucket(burst, per_second, monotonic)
        self._recent: Counter[str] = Counter()
        self._window_ends = 0.0
        self._waiting: list[Turn] = []
        self._purge_length = PURGE_LENGTH
        self._timer: asyncio.TimerHandle | None = None
        self._order = itertools.count()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    async def wait(self, client: str, *, is_refusal: bool = False, is_gone: Callable[[], bool] = lambda: False) -> bool:
        """Return when a request of this client may be answered; False if the client has left before."""
        loop = asyncio.get_running_loop()
        if loop.time() > self._window_ends:
            self._recent.clear()
            self._window_ends = loop.time() + WINDOW_SECONDS
        self._recent[client] += 1
        if not self._waiting and self._budget.spend():
            return True
        future = loop.create_future()
        heapq.heappush(self._waiting, Turn((is_refusal, self._recent[client], -next(self._order)), is_gone, future))
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
            turn = heapq.heappop(self._waiting)
            if not turn.drop_if_gone():
                turn.take()
        self._schedule(loop)

    def _purge(self) -> None:
        """Drop those that have left. They would stay at the end of the line for as long as others keep coming."""
        self._waiting = [turn for turn in self._waiting if not turn.drop_if_gone()]
        heapq.heapify(self._waiting)
        self._purge_length = max(PURGE_LENGTH, 2 * len(self._waiting))


def client_of(scope: Scope) -> str:
    """The connection that a request came on or, where a proxy is trusted, the address that it names."""
    host, port = scope.get("client") or ("", 0)
    return f"{host}:{port}"


def is_gone(scope: Scope) -> bool:
    """Whether the connection of a request is closed, as far as the server that carries it says so."""
    transport: asyncio.Transport | None = scope.get("state", {}).get("transport")
    return transport is not None and transport.is_closing()
