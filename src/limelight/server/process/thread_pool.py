"""The thread pool for code of agents, so that it can neither end the server nor occupy all threads.

A SystemExit or KeyboardInterrupt in a thread would pass through the event loop and end all runs. The pool converts them
to AgentFailed, so that `exit()` in a tool ends only the run of that tool. Each run has a limited number of threads;
further work of the run waits until one of them is free.
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

THREADS_PER_RUN = 32


class AgentThreadPool(ThreadPoolExecutor):
    """A thread pool with a limit of threads per run. For work outside of runs only the size of the pool is a limit."""

    def __init__(self, workers: int, prefix: str = "", per_run: int = THREADS_PER_RUN) -> None:
        super().__init__(workers, prefix)
        self._per_run = per_run
        self._run_lock = threading.Lock()
        self._busy: dict[str, int] = {}
        """Number of threads in use, by run id."""
        self._waiting: dict[str, deque[Work]] = {}

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        def contained() -> T:
            try:
                return fn(*args, **kwargs)
            except (SystemExit, KeyboardInterrupt) as error:
                raise AgentFailed(f"{type(error).__name__}: {error}") from error

        context = CURRENT.get()
        return super().submit(contained) if context is None else self._submit_for_run(context.run_id, contained)

    def _submit_for_run(self, run_id: str, work: Callable[[], T]) -> "Future[T]":
        future: Future[T] = Future()
        with self._run_lock:
            if self._busy.get(run_id, 0) >= self._per_run:
                self._waiting.setdefault(run_id, deque()).append((future, work))
                return future
            self._busy[run_id] = self._busy.get(run_id, 0) + 1
        try:
            super().submit(self._work, run_id, future, work)
        except BaseException:  # the pool is shut down
            self._next(run_id)
            raise
        return future

    def _work(self, run_id: str, future: "Future[Any]", work: Callable[[], Any]) -> None:
        """Execute a function of a run in a thread of the pool, and then the waiting functions of the same run."""
        current: Work | None = (future, work)
        del future, work  # so that completed work can be freed
        while current is not None:
            _execute(*current)
            current = self._next(run_id)

    def _next(self, run_id: str) -> Work | None:
        with self._run_lock:
            if waiting := self._waiting.get(run_id):
                return waiting.popleft()
            self._waiting.pop(run_id, None)
            self._busy[run_id] -= 1
            if not self._busy[run_id]:
                del self._busy[run_id]
            return None

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Shut down the pool, and cancel functions that wait because their run uses all its threads."""
        with self._run_lock:
            waiting = [future for work in self._waiting.values() for future, _ in work]
        for future in waiting:
            future.cancel()
        super().shutdown(wait, cancel_futures=cancel_futures)


def _execute(future: "Future[Any]", work: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():  # it was cancelled
        return
    try:
        result = work()
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)
