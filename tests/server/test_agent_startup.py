"""Agents are opened concurrently when a server starts; if one fails, the others are closed."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from limelight.config import load_settings
from limelight.errors import SetupError
from limelight.runs.agent_registry import Agent
from limelight.server.app import create_app
from limelight.sources.base import AgentResources
from limelight.sources.function import FunctionSource


async def hello(messages: Any, ctx: Any) -> AsyncIterator[str]:
    yield "hello"


class RecordedSource(FunctionSource):
    """Opens after the barrier, and records its calls."""

    def __init__(self, name: str, calls: list[str], barrier: asyncio.Barrier | None = None, error: str = "") -> None:
        super().__init__(hello)
        self._name, self._story, self._all_here, self._error = name, calls, barrier, error

    async def open(self, resources: AgentResources) -> None:
        if self._all_here is not None:
            await self._all_here.wait()
        if self._error:
            raise SetupError(self._error)
        self._story.append(f"open {self._name}")

    async def close(self) -> None:
        self._story.append(f"close {self._name}")
        raise RuntimeError("it does not want to")


def app_of(data: Path, *sources: RecordedSource) -> Any:
    agents = [Agent(name=f"a{at}", source=source, title="", description="") for at, source in enumerate(sources)]
    return create_app(load_settings(environ={}, overrides={("store", "data"): str(data)}), agents)


async def test_agents_open_concurrently_and_all_are_closed(tmp_path: Path) -> None:
    calls: list[str] = []
    both = asyncio.Barrier(2)
    app = app_of(tmp_path, RecordedSource("one", calls, both), RecordedSource("two", calls, both))
    async with asyncio.timeout(20), app.router.lifespan_context(app):
        assert sorted(calls) == ["open one", "open two"]
    assert sorted(calls[2:]) == ["close one", "close two"], "one that fails to close keeps no other from it"


async def test_failed_open_closes_the_other_agents(tmp_path: Path) -> None:
    calls: list[str] = []
    both = asyncio.Barrier(2)
    app = app_of(tmp_path, RecordedSource("good", calls, both), RecordedSource("bad", calls, both, error="no extra"))
    with pytest.raises(SetupError, match="no extra"):
        await app.state.runtime.start()
    assert calls == ["open good", "close good"]
    again = app_of(tmp_path, RecordedSource("good", calls))
    await again.state.runtime.start()
    await again.state.runtime.stop()
