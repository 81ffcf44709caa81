"""A bridge from a thread to the event loop, for frameworks and functions that block.

The thread puts items in; the loop iterates over them. Waking the loop is the expensive part, so it is done once for all
items that are waiting, not once for each. A thread that is too far ahead has to wait. A thread cannot be broken off: it
is told to leave, by `left`, and looks whenever it puts something in.
"""

import asyncio
import contextvars
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Generic, TypeVar

T = TypeVar("T")

READ_AHEAD = 64
"""How many items the thread may be ahead."""
LEAVING_SECONDS = 0.1
"""How long a thread that is told to leave may take to notice."""


class Left(BaseException):
    """Raised inside the thread where it stands, once nobody listens any more. No `except Exception` catches it."""


class ThreadBridge(Generic[T]):
    """Runs `work` in a thread of its own, in this context; what it puts in comes out of `items`."""

    def __init__(self, work: Callable[["ThreadBridge[T]"], None], name: str) -> None:
        self._work = work
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[T] = deque()
        self._wake = asyncio.Event()
        self._awake = False
        self._lock = threading.Lock()
        self._room = threading.Condition(self._lock)
        self._error: BaseException | None = None
        self._over = False
        self.left = False
        """True once the thread should leave."""
        context = contextvars.copy_context()
        self._thread = threading.Thread(target=lambda: context.run(self._live), name=name, daemon=True)

    def put(self, item: T) -> None:
        """From the thread: hand over an item. Raises Left if nobody listens any more."""
        with self._lock:
            while len(self._waiting) >= READ_AHEAD and not self.left:
                self._room.wait()
            if self.left:
                raise Left
            self._waiting.append(item)
            if self._awake:
                return
            self._awake = True
        self._call(self._wake.set)

    async def items(self) -> AsyncIterator[T]:
        """In the loop: start the thread, and give what it puts in until it ends. Its exception is raised here."""
        self._thread.start()
        while True:
            await self._wake.wait()
            with self._lock:
                taken = list(self._waiting)
                self._waiting.clear()
                self._wake.clear()
                self._awake = False
                over = self._over
                self._room.notify_all()
            for item in taken:
                yield item
            if over:
                if self._error is not None:
                    raise self._error
                return

    async def leave(self) -> bool:
        """In the loop: tell the thread to leave, and wait a moment. False if it goes on."""
        with self._lock:
            self.left = True
            self._room.notify_all()
        if not self._thread.is_alive():  # it has ended, or was never begun
            return True
        await asyncio.to_thread(self._thread.join, LEAVING_SECONDS)
        return not self._thread.is_alive()

    def _live(self) -> None:
        error: BaseException | None = None
        try:
            self._work(self)
        except Left:
            pass
        except BaseException as raised:
            error = raised
        with self._lock:
            self._error, self._over = error, True
            self._awake = True
        self._call(self._wake.set)

    def _call(self, function: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(function)
        except RuntimeError:  # the loop is closed: nobody is left to tell
            self.left = True
