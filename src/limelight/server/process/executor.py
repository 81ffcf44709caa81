"""What an agent's code must not do to the server: end it, or take all its threads.

In a thread SystemExit and KeyboardInterrupt would go through the event loop and end everybody's runs. Here they become
errors of the agent before the loop sees them: `exit()` in a tool ends the run of that agent. And a run may have many
tools that take their time, but only so many threads: what it wants beyond waits for its own, not for others'.
"""

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from limelight.errors import AgentFailed
from limelight.sources.base import CURRENT

P = ParamSpec("P")
T = TypeVar("T")
Work = tuple["Future[Any]", Callable[[], Any]]

PER_RUN = 32
"""How many threads a run may have at once."""


class AgentThreads(ThreadPoolExecutor):
    """Threads for the tools of agents. What belongs to no run takes one as it comes."""

    def __init__(self, workers: int, prefix: str = "", per_run: int = PER_RUN) -> None:
        super().__init__(workers, prefix)
        self._per_run = per_run
        self._sharing = threading.Lock()
        self._busy: dict[str, int] = {}
        """How many threads each run has."""
        self._waiting: dict[str, deque[Work]] = {}

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        def contained() -> T:
            try:
                return fn(*args, **kwargs)
            except (SystemExit, KeyboardInterrupt) as error:
                raise AgentFailed(f"{type(error).__name__}: {error}") from error

        context = CURRENT.get()
        return super().submit(contained) if context is None else self._share(context.run_id, contained)

    def _share(self, run_id: str, work: Callable[[], T]) -> "Future[T]":
        future: Future[T] = Future()
        with self._sharing:
            if self._busy.get(run_id, 0) >= self._per_run:
                self._waiting.setdefault(run_id, deque()).append((future, work))
                return future
            self._busy[run_id] = self._busy.get(run_id, 0) + 1
        try:
            super().submit(self._work, run_id, future, work)
        except BaseException:  # no more threads, as all is ending
            self._next(run_id)
            raise
        return future

    def _work(self, run_id: str, future: "Future[Any]", work: Callable[[], Any]) -> None:
        """In a thread: this, and then what of the same run waits for it."""
        following: Work | None = (future, work)
        del future, work  # so that what is done is let go of
        while following is not None:
            _carry_out(*following)
            following = self._next(run_id)

    def _next(self, run_id: str) -> Work | None:
        with self._sharing:
            if waiting := self._waiting.get(run_id):
                return waiting.popleft()
            self._waiting.pop(run_id, None)
            self._busy[run_id] -= 1
            if not self._busy[run_id]:
                del self._busy[run_id]
            return None

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """What has not begun does not begin."""
        with self._sharing:
            left = [future for waiting in self._waiting.values() for future, _ in waiting]
        for future in left:
            future.cancel()
        super().shutdown(wait, cancel_futures=cancel_futures)


def _carry_out(future: "Future[Any]", work: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():  # nobody wants it any more
        return
    try:
        result = work()
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)
