"""The pace of answers that no user pays for: refusals, probes, and the files of the page.

They cost as much as any other request, and no limit per user applies, so the server answers them at a bounded rate.
Refusals come last. Of the others, clients with the fewest recent requests come first, and of these the latest: a flood
waits, a probe does not.
"""

import asyncio
import heapq
import itertools
from collections import Counter

from starlette.types import Scope

from limelight.runs.budget import Budget

PER_SECOND = 500
BURST = 200
RELEASE_SECONDS = 0.01
"""How often waiting requests are looked at."""
WINDOW_SECONDS = 10.0
"""How long the requests of a client are remembered."""


class Throttle:
    """Lets requests pass, or holds them until it is their turn. A connection has at most one request that waits."""

    def __init__(self, per_second: float = PER_SECOND, burst: int = BURST) -> None:
        self._per_second = per_second
        self._burst = burst
        self._budget: Budget | None = None
        self._recent: Counter[str] = Counter()
        self._window_ends = 0.0
        self._waiting: list[tuple[bool, int, int, asyncio.Future[None]]] = []
        self._order = itertools.count()

    async def wait(self, client: str, *, is_refusal: bool = False) -> None:
        """Return when a request of this client may be answered."""
        loop = asyncio.get_running_loop()
        if self._budget is None:
            self._budget = Budget(self._burst, self._per_second, loop.time)
        if loop.time() > self._window_ends:
            self._recent.clear()
            self._window_ends = loop.time() + WINDOW_SECONDS
        self._recent[client] += 1
        if not self._waiting and self._budget.spend():
            return
        turn = loop.create_future()
        heapq.heappush(self._waiting, (is_refusal, self._recent[client], -next(self._order), turn))
        if len(self._waiting) == 1:
            loop.call_later(RELEASE_SECONDS, self._release, loop, self._budget)
        await turn

    def _release(self, loop: asyncio.AbstractEventLoop, budget: Budget) -> None:
        while self._waiting and budget.spend():
            *_, turn = heapq.heappop(self._waiting)
            if not turn.done():  # else its connection is closed
                turn.set_result(None)
        if self._waiting:
            loop.call_later(RELEASE_SECONDS, self._release, loop, budget)


def client_of(scope: Scope) -> str:
    """The connection that a request came on or, where a proxy is trusted, the address that it names."""
    host, port = scope.get("client") or ("", 0)
    return f"{host}:{port}"
