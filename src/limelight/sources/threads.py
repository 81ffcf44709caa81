"""A bridge from a thread to the event loop, for frameworks and functions that block.

The thread puts items in; the loop iterates over them. Waking the loop is expensive, so the bridge wakes it once for all
waiting items. A thread that is too far ahead waits. A thread cannot be interrupted: it notices a cancellation when it
puts an item in, or when it reads `cancelled`.
"""

import asyncio
import contextvars
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Generic, TypeVar

T = TypeVar("T")

READ_AHEAD = 64
"""The most items that the thread may be ahead."""
CANCEL_SECONDS = 0.1
"""How long `cancel` waits for the thread to end."""


class ThreadCancelled(BaseException):
    """Raised inside the thread once it is cancelled. No `except Exception` catches it."""


class ThreadBridge(Generic[T]):
    """Runs `work` in a thread of its own, in the current context; `items` yields what the thread puts in."""

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
        """True once the thread should end."""
        context = contextvars.copy_context()
        self._thread = threading.Thread(target=lambda: context.run(self._run), name=name, daemon=True)

    def put(self, item: T) -> None:
        """In the thread: pass an item to the loop. Raises ThreadCancelled once the thread is cancelled."""
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
        """In the loop: start the thread and yield its items until it ends. Raises the exception of the thread."""
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

    async def cancel(self) -> bool:
        """In the loop: cancel the thread and wait briefly. Returns whether it has ended."""
        with self._lock:
            self.cancelled = True
            self._room.notify_all()
        if not self._thread.is_alive():  # it has ended, or never started
            return True
        await asyncio.to_thread(self._thread.join, CANCEL_SECONDS)
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
        except RuntimeError:  # the loop is closed
            self.cancelled = True
