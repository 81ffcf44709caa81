"""Fixtures for the tests of several frameworks."""

from collections.abc import AsyncIterator

import pytest

from tests.sources.recorded_requests import Requests, record_requests


@pytest.fixture
async def agno_models() -> AsyncIterator[None]:
    """Close the models of Agno's agents in the loop that used them."""
    yield
    from tests.sources.agno.agno_scenarios import close_models

    await close_models()


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Requests:
    """The requests of agents to their models."""
    return record_requests(monkeypatch)
