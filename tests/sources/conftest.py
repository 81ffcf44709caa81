"""What tests of several frameworks need around them."""

from collections.abc import AsyncIterator

import pytest

from tests.sources.recorded_requests import Requests, recorded


@pytest.fixture
async def agno_models() -> AsyncIterator[None]:
    """The models of Agno's agents are closed in the loop that used them."""
    yield
    from tests.sources.agno.agno_scenarios import close_models

    await close_models()


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Requests:
    """What agents send to their models in this test."""
    return recorded(monkeypatch)
