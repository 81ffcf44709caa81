"""Fixtures that several folders share."""

import asyncio
import logging
import os
import signal
import tempfile
from collections.abc import AsyncGenerator, Callable, Generator
from importlib import import_module
from pathlib import Path
from typing import Any

import hypothesis
import openai
import pytest

from tests.support import agents
from tests.support.checked_loop import CheckedLoop
from tests.support.clock import Clock, ManualLoop
from tests.support.server import Served, serving

# The offline model pauses between words so that people can watch; tests do not need this.
os.environ["LIMELIGHT_UNDERSTUDY_PACE_MS"] = "0"

# Each client of a framework's model loads the certificates of the system twice, 0.05 s of CPU each time. Servers of
# tests speak plain HTTP, so there are none to load.
NO_CERTIFICATES = tempfile.TemporaryDirectory(prefix="no-certificates-")
os.environ.pop("SSL_CERT_FILE", None)
os.environ["SSL_CERT_DIR"] = NO_CERTIFICATES.name

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
    """Give each test a loop that checks its connections, and tests with `loop_clock` one whose clock is stopped."""
    return {"loop": ManualLoop if "loop_clock" in item.fixturenames else CheckedLoop}


@pytest.fixture
async def loop_clock() -> Clock:
    """The clock of the test's event loop, which is stopped until the test moves it."""
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


@pytest.fixture
async def async_model_clients_are_closed(monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[None]:
    """Close the asynchronous clients of models in the loop that has used them.

    Frameworks keep them open. LangChain also keeps them for the next agent, which then fails in the next test's loop.
    """
    made: list[openai.AsyncOpenAI] = []
    begin = openai.AsyncOpenAI.__init__

    def begin_and_note(self: openai.AsyncOpenAI, *args: Any, **kwargs: Any) -> None:
        begin(self, *args, **kwargs)
        made.append(self)

    langchain_clients = import_module("langchain_openai.chat_models._client_utils")._cached_async_httpx_client
    langchain_clients.cache_clear()
    monkeypatch.setattr(openai.AsyncOpenAI, "__init__", begin_and_note)
    yield
    for client in made:
        await client.close()
    langchain_clients.cache_clear()
