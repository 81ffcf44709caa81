"""Fixtures that several folders share."""

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

# The offline model pauses between words so that people can watch; tests do not need this.
os.environ["LIMELIGHT_UNDERSTUDY_PACE_MS"] = "0"

# A shell starts background jobs with SIGINT ignored, and child processes inherit this; tests send SIGINT to processes.
signal.signal(signal.SIGINT, signal.default_int_handler)


def _ignore_hangup(*_: object) -> None:
    pass


# The same for SIGHUP, which nohup ignores. Child processes get the default action in place of a handler.
signal.signal(signal.SIGHUP, _ignore_hangup)

# The load of the machine must not fail a test, and a failure must be reproducible. HYPOTHESIS_PROFILE=explore searches
# for new cases.
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
    """asyncio for uvicorn's server with short pauses: its polls of 0.1 s would add 0.2 s to each server of a test."""

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(min(seconds, 0.005))


pytest.MonkeyPatch().setattr("uvicorn.server.asyncio", QuickAsyncio())


@pytest.fixture(autouse=True)
def quiet_expected_errors() -> None:
    """Do not log the errors of runs that fail on purpose."""
    logging.getLogger("limelight.runs.engine").setLevel(logging.CRITICAL)


@pytest.fixture(autouse=True)
def clients_of_frameworks_are_closed(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """Close the model clients of frameworks, which do not: garbage collection would warn in a later test."""
    made: list[openai.OpenAI] = []
    begin = openai.OpenAI.__init__

    def begin_and_note(self: openai.OpenAI, *args: Any, **kwargs: Any) -> None:
        begin(self, *args, **kwargs)
        made.append(self)

    monkeypatch.setattr(openai.OpenAI, "__init__", begin_and_note)
    yield
    for client in made:
        client.close()
