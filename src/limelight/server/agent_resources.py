"""What a server has for its sources: the data folder, and the stand-in model, which starts when it is first needed."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

from limelight.understudy.server import Understudy


class ServerHome:
    """The `home` that sources are opened with."""

    def __init__(self, data: Path, pace: float = 0) -> None:
        self._data = data
        self._pace = pace
        self._lock = asyncio.Lock()
        self._understudy: Understudy | None = None
        self._open = AsyncExitStack()
        self._is_made = False

    @property
    def data(self) -> Path:
        """Made once: a folder that has been moved away since is to be moved back, and not to find another there."""
        if not self._is_made:
            self._data.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._is_made = True
        return self._data

    async def understudy(self) -> tuple[str, str]:
        async with self._lock:
            if self._understudy is None:
                self._understudy = await self._open.enter_async_context(Understudy(pace=self._pace))
        return self._understudy.base_url, self._understudy.key

    async def close(self) -> None:
        await self._open.aclose()
        self._understudy = None
