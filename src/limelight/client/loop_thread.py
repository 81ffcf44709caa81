"""An event loop in a thread of its own, for callers that have none, or have one that they cannot wait in (Jupyter).

It runs coroutines and hands their results back, from any number of threads. It must not know what they do; `sync` is
the caller.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from typing import Any, Protocol, TypeVar

from limelight.client.errors import ConnectionLost

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
_END: Any = object()


class Closable(Protocol[T_co]):
    """An async iterator that can be left."""

    def __aiter__(self) -> AsyncIterator[T_co]: ...
    def __anext__(self) -> Awaitable[T_co]: ...
    def aclose(self) -> Awaitable[None]: ...


class LoopThread:
    """Begins at once. The thread does not keep the interpreter alive."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._closed = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._loop.run_forever, name="limelight-client", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait here for what is worked out there. What interrupts the waiting ends the work too."""
        future = self._post(work)
        try:
            return future.result()
        except CancelledError:
            raise ConnectionLost("the client is closed") from None
        except BaseException:
            future.cancel()
            raise

    def iterate(self, items: Closable[T]) -> Generator[T]:
        """An async iterator as a plain one. Leaving the loop closes both."""
        one_at_a_time = asyncio.Lock()

        async def step() -> T:
            async with one_at_a_time:
                return await anext(items, _END)

        async def leave() -> None:
            async with one_at_a_time:
                await items.aclose()

        try:
            while (item := self.run(step())) is not _END:
                yield item
        finally:
            with suppress(ConnectionLost):  # then there is nothing left to close
                leaving = self._post(leave())
                if threading.current_thread() is not self._thread:  # where a collector may run
                    with suppress(CancelledError):
                        leaving.result()

    def close(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """End all work that is under way, do `last`, stop the thread."""
        if threading.current_thread() is self._thread:
            threading.Thread(target=self.close, args=(last,)).start()
            return
        with self._lock:
            if self._closed:
                return
            self._closed = True
        asyncio.run_coroutine_threadsafe(self._end(last), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _post(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        with self._lock:
            if self._closed:
                work.close()
                raise ConnectionLost("the client is closed")
            return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def _end(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        if others:
            await asyncio.wait(others)
        await self._loop.shutdown_asyncgens()
        await last()
