"""Fixtures that several families of tests share."""

import asyncio
import logging
import os
import signal
from collections.abc import AsyncGenerator, Callable, Generator
from pathlib import Path
from typing import Any

import hypothesis
import openai
import pytest

from tests.support import agents
from tests.support.clock import Clock, ManualLoop
from tests.support.server import Served, serving

# The stand-in model of a server takes its time for those who watch; nobody watches here.
os.environ["LIMELIGHT_UNDERSTUDY_PACE_MS"] = "0"

# A shell starts what it puts into the background with Ctrl-C ignored, and whatever is started from there inherits that;
# tests press Ctrl-C in processes of their own.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A machine that is busy with something else is no reason to fail, and what fails once has to fail again: new cases are
# looked for with HYPOTHESIS_PROFILE=explore.
hypothesis.settings.register_profile("limelight", deadline=None, derandomize=True)
hypothesis.settings.register_profile("explore", deadline=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "limelight"))


@pytest.fixture
async def served(tmp_path: Path) -> AsyncGenerator[Served]:
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
    agents.stubborn_may_end.clear()
    async with serving(*usual, data=tmp_path / "data") as live:
        yield live
    agents.stubborn_may_end.set()


def pytest_asyncio_loop_factories(item: pytest.Function) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Give tests with the fixture `loop_clock` a loop whose clock stands still."""
    return {"loop": ManualLoop if "loop_clock" in item.fixturenames else asyncio.new_event_loop}


@pytest.fixture
async def loop_clock() -> Clock:
    """The clock of the test's event loop, which stands still until the test moves it."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, ManualLoop)
    return Clock(loop)


class QuickAsyncio:
    """asyncio for uvicorn's server, whose polls and pauses of 0.1 s would add 0.2 s to each server that a test
    starts."""

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(min(seconds, 0.005))


pytest.MonkeyPatch().setattr("uvicorn.server.asyncio", QuickAsyncio())


@pytest.fixture(autouse=True)
def quiet_expected_errors() -> None:
    """Runs that fail on purpose write their story to the log; tests look at what clients get."""
    logging.getLogger("limelight.runs.engine").setLevel(logging.CRITICAL)


@pytest.fixture(autouse=True)
def clients_of_frameworks_are_closed(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """Frameworks never close their model's client; garbage collection would warn of its socket in some later test."""
    made: list[openai.OpenAI] = []
    begin = openai.OpenAI.__init__

    def begin_and_note(self: openai.OpenAI, *args: Any, **kwargs: Any) -> None:
        begin(self, *args, **kwargs)
        made.append(self)

    monkeypatch.setattr(openai.OpenAI, "__init__", begin_and_note)
    yield
    for client in made:
        client.close()
