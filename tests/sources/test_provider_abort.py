"""Stop while a provider streams: every framework's connection is closed at once.

The understudy would not notice if only the garbage collector closed the connection later.
"""

import asyncio
import gc
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builtin.agent_runs import serve_agent
from tests.support.server import collect
from tests.support.wait import eventually
from tests.system.processes.endless_provider import Provider, talking_provider

SOON = 3.0
"""In seconds: 0.3 are promised on an idle machine. The provider itself never ends its stream."""


@pytest.fixture
def provider() -> Iterator[Provider]:
    with talking_provider() as provider:
        yield provider


@pytest.fixture
def no_collector() -> Iterator[None]:
    """Disable the garbage collector, which would close connections."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.requirement("stop-closes-provider-stream")
@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("agent", ["deep", "agno", "agno-team", "react", "codact"])
async def test_stop_closes_the_connection_to_the_provider(agent: str, provider: Provider, tmp_path: Path) -> None:
    config = f'[agents.{agent}]\nmodel = "m"\nbase_url = "{provider.url}"\n'
    async with serve_agent(tmp_path / "data", agent, config) as served:
        watching = asyncio.create_task(collect(served.ask("go", session_id="s")))
        await eventually(provider.asked.is_set, 60)  # the framework has to be imported
        run_id = (await served.http.get("/sessions/s")).json()["run_id"]
        began = time.monotonic()
        assert (await served.http.post(f"/runs/{run_id}/cancel")).json()["state"] == "cancelled"
        await eventually(provider.left.is_set)
        assert time.monotonic() - began < SOON
        assert [frame.type for frame in await watching][-2:] == ["cancelled", "done"]
