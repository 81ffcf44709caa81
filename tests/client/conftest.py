"""Short waits, so that twenty cuts take a second; and a client of the usual server."""

from collections.abc import AsyncGenerator

import pytest

from limelight.client import Client, patience
from tests.serving import Served


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "FIRST_SECONDS", 0.005)
    monkeypatch.setattr(patience, "MOST_SECONDS", 0.05)
    for name in ("LIMELIGHT_URL", "LIMELIGHT_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
async def client(served: Served) -> AsyncGenerator[Client]:
    async with Client(served.url) as client:
        yield client
