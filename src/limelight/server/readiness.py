"""What anybody may ask of the store: the probes need no key, so however many ask, the store is asked now and then."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Generic, NamedTuple, TypeVar

from limelight.errors import StoreError, StoreUnavailable
from limelight.ids import now_ms
from limelight.stores.base import Store

log = logging.getLogger(__name__)
T = TypeVar("T")
FRESH_SECONDS = 2.0
"""How old an answer may be."""
ASKING_SECONDS = 5.0


class Failed(NamedTuple):
    """In place of an answer: what is wrong, in words that strangers may hear; "" if only the log may say it."""

    words: str


class Shared(Generic[T]):
    """A question whose answer is kept for a moment. Who asks while it is being answered waits for the same answer."""

    def __init__(self, ask: Callable[[], Awaitable[T]]) -> None:
        self._ask = ask
        self._asked_at = 0.0
        self._answering: asyncio.Task[T | Failed] | None = None

    async def answer(self) -> T | Failed:
        now = asyncio.get_running_loop().time()
        task = self._answering
        if task is None or (task.done() and now - self._asked_at >= FRESH_SECONDS):
            self._asked_at = now
            task = self._answering = asyncio.create_task(self._answer())
        return await asyncio.shield(task)  # whoever leaves does not take the answer from the others

    async def _answer(self) -> T | Failed:
        try:
            return await asyncio.wait_for(self._ask(), ASKING_SECONDS)
        except TimeoutError:
            log.warning("a probe found that the store fails: no answer")
            return Failed("it does not answer")
        except StoreError as error:
            words = error.words if isinstance(error, StoreUnavailable) else ""
            if not words:  # otherwise the store itself has told the log, once
                log.warning("a probe found that the store fails: %s", error)
            return Failed(words)


class Probing:
    """The questions of the probes."""

    def __init__(self, store: Store, expiry_seconds: float) -> None:
        self._store = store
        self._expiry_ms = int(expiry_seconds * 1000)
        self._writable = Shared(self._ping)
        self._active = Shared(self._count)

    async def store_failure(self) -> Failed | None:
        """What keeps the store from being written to, None if nothing does."""
        return await self._writable.answer()

    async def active_sessions(self) -> int | None:
        """Those of the whole server that have not expired; None if the store fails."""
        count = await self._active.answer()
        return None if isinstance(count, Failed) else count

    async def _ping(self) -> None:
        await self._store.ping()

    async def _count(self) -> int:
        return await self._store.active_sessions(now_ms() - self._expiry_ms)
