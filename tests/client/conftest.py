"""Short delays between connection attempts, a client, and a server for tests without an event loop."""

from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import pytest

from limelight.client import Client, backoff
from tests.client.server_thread import serve_in_thread
from tests.support import agents
from tests.support.server import Served


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


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """The URL of a server in another thread; `talker` is the default agent."""
    functions = (agents.talker, agents.worker, agents.big, agents.patient, agents.asker)
    with serve_in_thread(*functions, data=tmp_path / "data") as served:
        yield served.url
