"""Fixtures of the server's tests. Tests that use `served` share one server per worker, each as a user of its own."""

import itertools
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.server.keyed_server import KeyedServer, bearer, maker, serving_keys
from tests.support import agents
from tests.support.server import Served, client_of, serving
from tests.support.wait import eventually

AMPLE_LIMITS = {"requests_per_minute": 10**6, "runs_per_user": 10**4, "sessions_per_user": 10**4}
USER_NUMBERS = itertools.count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests that use the shared server on its event loop."""
    for item in items:
        if isinstance(item, pytest.Function) and "shared_server" in item.fixturenames:
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_server(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Served]:
    """A server with the usual agents; `talker` is the default one."""
    usual = (
        agents.talker,
        agents.echo,
        agents.worker,
        agents.big,
        agents.patient,
        agents.stubborn,
        agents.deaf,
        agents.crasher,
        agents.asker,
        agents.thread_asker,
        agents.sleeper,
    )
    limits: dict[str, Any] = {f"limits__{name}": value for name, value in AMPLE_LIMITS.items()}
    async with serving(*usual, data=tmp_path_factory.mktemp("shared"), auth__api_key="sesame", **limits) as served:
        yield served


@pytest_asyncio.fixture(loop_scope="session")
async def served(shared_server: Served) -> AsyncGenerator[Served]:
    """The shared server, with a client that speaks for a new user. The user's runs and streams end with the test."""
    url, runtime, _ = shared_server
    user_id = f"user-{next(USER_NUMBERS)}"
    headers = {**bearer("sesame"), "x-limelight-user-id": user_id}
    agents.stubborn_may_end.clear()
    async with client_of(url, headers=headers) as http:
        yield Served(url, runtime, http)
        for session in await runtime.store.sessions(user_id, limit=10**4):
            await runtime.sessions.delete(session.ref)
    agents.stubborn_may_end.set()
    await eventually(
        lambda: runtime.hub.viewers == 0 and runtime.open_streams.count == 0 and not runtime.sessions.count
    )


@pytest.fixture
async def keyed(tmp_path: Path) -> AsyncIterator[KeyedServer]:
    async with serving_keys(tmp_path, agents.echo, maker) as keyed:
        yield keyed
