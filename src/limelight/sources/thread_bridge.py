"""Passes items from a thread to the event loop, for frameworks and functions that block.

The thread calls `put`; the event loop iterates over `items`. Waking the event loop is expensive, so one wake-up
delivers all waiting items. `put` blocks while READ_AHEAD items wait. A thread cannot be interrupted: it notices a
cancellation at its next `put`, or when its code reads `cancelled`.
"""

import asyncio
import contextvars
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Generic, TypeVar

T = TypeVar("T")

READ_AHEAD = 64
"""How many items may wait for the event loop before `put` blocks the thread."""
CANCEL_SECONDS = 0.1
"""How long `cancel` waits for the thread to end, unless the caller knows that it ends soon."""


class ThreadCancelled(BaseException):
    """Raised in a thread that was cancelled. It is a BaseException, so that `except Exception` does not catch it."""


class ThreadBridge(Generic[T]):
    """Runs the function `work` in a new thread, in a copy of the current context, and yields the items it puts in."""

    def __init__(self, work: Callable[["ThreadBridge[T]"], None], name: str) -> None:
        self._work = work
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[T] = deque()
        self._wake = asyncio.Event()
        self._awake = False
        self._lock = threading.Lock()
        self._room = threading.Condition(self._lock)
        self._error: BaseException | None = None
        self._ended = False
        self.cancelled = False
        """True once the thread was asked to end."""
        context = contextvars.copy_context()
        self._thread = threading.Thread(target=lambda: context.run(self._run), name=name, daemon=True)

    def put(self, item: T) -> None:
        """Pass an item to the event loop. Called in the thread. Raises ThreadCancelled once the thread is cancelled."""
        with self._lock:
            while len(self._waiting) >= READ_AHEAD and not self.cancelled:
                self._room.wait()
            if self.cancelled:
                raise ThreadCancelled
            self._waiting.append(item)
            if self._awake:
                return
            self._awake = True
        self._wake_loop()

    async def items(self) -> AsyncIterator[T]:
        """Start the thread and yield its items until it ends. Called in the event loop. Raises the thread's error."""
        self._thread.start()
        while True:
            await self._wake.wait()
            with self._lock:
                taken = list(self._waiting)
                self._waiting.clear()
                self._wake.clear()
                self._awake = False
                ended = self._ended
                self._room.notify_all()
            for item in taken:
                yield item
            if ended:
                if self._error is not None:
                    raise self._error
                return

    async def cancel(self, seconds: float = CANCEL_SECONDS) -> bool:
        """Cancel the thread, wait briefly, and return whether the thread has ended. Called in the event loop."""
        with self._lock:
            self.cancelled = True
            self._room.notify_all()
        if not self._thread.is_alive():  # the thread has ended, or was never started
            return True
        await asyncio.to_thread(self._thread.join, seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        error: BaseException | None = None
        try:
            self._work(self)
        except ThreadCancelled:
            pass
        except BaseException as raised:
            error = raised
        with self._lock:
            self._error, self._ended = error, True
            self._awake = True
        self._wake_loop()

    def _wake_loop(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._wake.set)
        except RuntimeError:  # the event loop is closed
            self.cancelled = True
