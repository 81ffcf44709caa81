"""Short waits, so that twenty cuts take a second; a client of the usual server; a server for tests without a loop."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from limelight.client import Client, backoff
from tests.support import agents
from tests.support.server import Served, serving


@pytest.fixture(autouse=True)
def short_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backoff, "INITIAL_DELAY", 0.005)
    monkeypatch.setattr(backoff, "MAX_DELAY", 0.05)
    for name in ("LIMELIGHT_URL", "LIMELIGHT_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
async def client(served: Served) -> AsyncGenerator[Client]:
    async with Client(served.url) as client:
        yield client


@contextmanager
def serving_elsewhere(*functions: Callable[..., Any], data: Path) -> Generator[str]:
    """A server on a loop in another thread, because this one will wait."""
    loop, over, ready, found = asyncio.new_event_loop(), asyncio.Event(), threading.Event(), list[str]()

    async def serve() -> None:
        async with serving(*functions, data=data) as served:
            found.append(served.url)
            ready.set()
            await over.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        assert ready.wait(30)
        yield found[0]
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(30)
        loop.close()


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    cast = (agents.talker, agents.worker, agents.big, agents.patient, agents.asker)
    with serving_elsewhere(*cast, data=tmp_path / "data") as url:
        yield url
