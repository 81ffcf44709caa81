"""Lazy sources: traits before the agent is made, runs that wait for it, and failures."""

import asyncio
import logging
import re
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from limelight.errors import SetupError
from limelight.events import FinalAnswer, Status, TextDelta
from limelight.sources.base import NO_OPTIONS, AgentResources, Options, Source, Turn
from limelight.sources.function import FunctionSource
from limelight.sources.lazy_agents import IMPORT_LOCK, LazyAgent, lazy_source
from tests.builtin.agent_runs import serve_agent
from tests.sources.fake_turn import new_turn
from tests.stores.sqlite.files import locked
from tests.support.server import asking
from tests.support.wait import eventually


class NoHome:
    data = Path()

    async def understudy(self) -> tuple[str, str]:
        raise AssertionError("not needed")


async def hello(messages: Any, ctx: Any) -> AsyncIterator[str]:
    """Not shown: the LazyAgent has the description."""
    yield "hello"


class Remembering(FunctionSource):
    """A source with traits that records its calls."""

    framework = "remembering"
    LACKS = {"code": "it has none"}  # noqa: RUF012
    OPTIONS = frozenset({"max_steps"})
    keeps_memory = True

    def __init__(self, target: object, options: Options = NO_OPTIONS) -> None:
        super().__init__(target, options)
        self.seen: list[object] = [options]

    async def open(self, resources: AgentResources) -> None:
        made.append(self)

    async def close(self) -> None:
        self.seen.append("closed")

    async def forget(self, memory_key: str) -> None:
        self.seen.append(("forget", memory_key))

    async def unload(self, memory_key: str) -> None:
        self.seen.append(("unload", memory_key))


made: list[Remembering] = []


def late_agent(make: Callable[[], object], extra: str = "bees", options: Options = NO_OPTIONS) -> Source:
    async def prepare(_: AgentResources) -> Callable[[], object]:
        return make

    return lazy_source(Remembering, LazyAgent(name="bot", description="A bot", extra=extra, prepare=prepare), options)


def test_lazy_source_has_the_traits_of_its_framework_before_the_agent_is_made() -> None:
    source = late_agent(lambda: pytest.fail("made too early"))
    assert (source.framework, source.description, source.keeps_memory) == ("remembering", "A bot", True)
    assert (source.LACKS, source.OPTIONS) == (Remembering.LACKS, Remembering.OPTIONS)
    assert not type(source).accepts(hello)


async def test_lazy_source_delegates_every_method_to_the_framework_source() -> None:
    made.clear()
    source = late_agent(lambda: hello, options=Options(max_steps=3))
    await source.open(NoHome())
    events = [event async for event in source.run(new_turn("hi"))]
    assert [e.text for e in events if isinstance(e, TextDelta)] == ["hello"]
    assert any(isinstance(event, FinalAnswer) for event in events)
    await source.forget("a")
    await source.unload("b")
    await source.close()
    await source.close()
    (real,) = made
    assert real.seen == [Options(max_steps=3), ("forget", "a"), ("unload", "b"), "closed"]


async def test_agent_is_made_in_a_thread_and_an_early_run_waits_for_it() -> None:
    may_end, threads = threading.Event(), list[threading.Thread]()

    def make() -> object:
        threads.append(threading.current_thread())
        assert may_end.wait(20)
        return hello

    source = late_agent(make)
    await source.open(NoHome())
    await eventually(lambda: threads)
    assert threads[0] is not threading.main_thread()
    run = source.run(new_turn("hi"))
    assert await anext(run) == Status(text="Loading bees ...")
    waiting = asyncio.ensure_future(anext(run))
    await asyncio.wait([waiting], timeout=0.05)
    assert not waiting.done()
    may_end.set()
    assert isinstance(await waiting, TextDelta)
    await run.aclose()
    assert Status(text="Loading bees ...") not in [event async for event in source.run(new_turn("hi"))]
    await source.close()


async def test_run_stopped_while_it_waits_does_not_cancel_the_making_of_the_agent() -> None:
    may_end = threading.Event()

    def make() -> object:
        assert may_end.wait(20)
        return hello

    source = late_agent(make)
    await source.open(NoHome())
    run = source.run(new_turn("hi"))
    await anext(run)
    waiting = asyncio.ensure_future(anext(run))
    await asyncio.wait([waiting], timeout=0.05)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    may_end.set()
    assert any([isinstance(event, FinalAnswer) async for event in source.run(new_turn("hi"))])
    await source.close()


async def test_agent_without_an_extra_is_made_in_open() -> None:
    source = late_agent(lambda: hello, extra="")
    await source.open(NoHome())
    first = await anext(source.run(new_turn("hi")))
    assert isinstance(first, TextDelta)
    await source.close()


async def test_close_prevents_the_making_of_an_agent_that_has_not_started() -> None:
    first, second = threading.Event(), list[str]()
    begun = threading.Event()

    def slow() -> object:
        begun.set()
        assert first.wait(20)
        return hello

    slow_one, other = late_agent(slow), late_agent(lambda: second.append("made"))
    await slow_one.open(NoHome())
    await eventually(begun.is_set)
    await other.open(NoHome())
    await asyncio.wait_for(other.close(), 10)  # it does not wait for the lock
    first.set()
    await slow_one.close()
    assert second == []


async def test_unload_before_the_agent_is_made_does_nothing() -> None:
    made.clear()
    source = late_agent(lambda: hello)
    await source.unload("a")
    assert made == []


@pytest.mark.parametrize(
    ("error", "extra", "message"),
    [
        (
            ModuleNotFoundError("x", name="bees_core"),
            "bees",
            "agent 'bot' needs the bees extra: pip install 'limelight[bees]'",
        ),
        (ModuleNotFoundError("x", name="bees_core"), "", "agent 'bot' needs the package bees_core"),
        (ValueError("no honey"), "bees", "agent 'bot' cannot be created: ValueError: no honey"),
    ],
)
async def test_failure_to_make_an_agent_is_a_one_line_setup_error(error: Exception, extra: str, message: str) -> None:
    def make() -> object:
        raise error

    source = late_agent(make, extra)
    with pytest.raises(SetupError) as caught:
        await source.open(NoHome())
        assert extra, "without a framework it is known at once"
        [event async for event in source.run(new_turn("hi"))]
    assert caught.value.detail == message
    with pytest.raises(SetupError, match=re.escape(message)):
        await source.forget("a")
    await source.close()


async def test_failure_to_make_an_agent_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    source = late_agent(lambda: 1 / 0)
    with caplog.at_level(logging.ERROR):
        await source.open(NoHome())
        await eventually(lambda: caplog.messages)
    (line,) = caplog.messages
    assert line.startswith("agent 'bot' cannot be created: ZeroDivisionError: division by zero; ")
    assert source.failed
    await source.close()


async def test_next_run_after_a_failure_makes_the_agent_again(caplog: pytest.LogCaptureFixture) -> None:
    wrong = [ZeroDivisionError("for now")]

    def make() -> object:
        if wrong:
            raise wrong.pop()
        return hello

    source = late_agent(make)
    await source.open(NoHome())
    await eventually(lambda: source.failed)
    events = [event async for event in source.run(new_turn("hi"))]
    assert events[0] == Status(text="Loading bees ...")
    assert any(isinstance(event, FinalAnswer) for event in events)
    assert not source.failed
    assert len(caplog.messages) == 1
    await source.close()


async def test_concurrent_runs_after_a_failure_make_the_agent_once(caplog: pytest.LogCaptureFixture) -> None:
    tries: list[int] = []

    def make() -> object:
        tries.append(1)
        raise ValueError("no honey")

    async def ask() -> None:
        [event async for event in source.run(new_turn("hi"))]

    source = late_agent(make)
    await source.open(NoHome())
    await eventually(lambda: source.failed)
    ends = await asyncio.gather(*(ask() for _ in range(5)), return_exceptions=True)
    assert [str(end) for end in ends] == ["agent 'bot' cannot be created: ValueError: no honey"] * 5
    assert len(tries) == 2
    await source.close()
    await eventually(lambda: len(caplog.messages) == 2)  # one line for each time


@pytest.mark.requirement("start-without-agent")
async def test_agent_with_a_locked_database_is_opened_by_a_later_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    checkpoints = await asyncio.to_thread(import_module, "limelight.sources.langgraph.checkpointer")
    monkeypatch.setattr(checkpoints, "LOCK_SECONDS", 0.05)
    message = "agent 'deep' cannot be opened: another program has locked the graph's database"
    with ExitStack() as lock:
        lock.enter_context(locked(data / "langgraph.db", "EXCLUSIVE"))
        async with serve_agent(data, "deep") as served:
            await eventually(lambda: caplog.messages, 60)
            refused = await served.http.post("/chat", json=asking("bees"))
            assert (refused.status_code, refused.json()["detail"]) == (502, message)
            ready = (await served.http.get("/ready")).json()
            assert (ready["status"], ready["checks"]["agents_failed"]) == ("ready", "deep")
            lock.close()
            answer = await served.http.post("/chat", json=asking("bees"))
            assert answer.status_code == 200, answer.text
            assert "agents_failed" not in (await served.http.get("/ready")).json()["checks"]
    first = caplog.messages[0]
    assert first.startswith(message) and f"{data / 'langgraph.db'} cannot be opened" in first
    assert "end the program that uses it" in first


async def test_failure_to_make_an_agent_runs_its_cleanups() -> None:
    closed: list[str] = []

    async def prepare(_: AgentResources) -> Callable[[], object]:
        agent.cleanups.append(close)
        return lambda: 1 / 0

    async def close() -> None:
        closed.append("client")

    agent = LazyAgent(name="bot", description="", extra="", prepare=prepare, cleanups=[])
    source = lazy_source(Remembering, agent, Options())
    with pytest.raises(SetupError, match="ZeroDivisionError"):
        await source.open(NoHome())
    assert closed == ["client"]


async def test_run_before_open_raises() -> None:
    turn: Turn = new_turn("hi")
    with pytest.raises(RuntimeError, match="agent 'bot' is not open"):
        await anext(late_agent(lambda: hello).run(turn))


async def test_server_answers_requests_while_frameworks_are_imported(tmp_path: Path) -> None:
    loading = IMPORT_LOCK.acquire(timeout=20)
    try:
        async with serve_agent(tmp_path / "data", "react") as served:
            listed = (await served.http.get("/agents")).json()["agents"]
            assert [(agent["name"], agent["framework"]) for agent in listed] == [("react", "smolagents")]
            kinds: list[str] = []
            async for frame in served.ask("bees", format="records"):
                event = frame.data["event"]
                kinds.append(event["kind"])
                if loading and event.get("text") == "Loading smolagents ...":
                    IMPORT_LOCK.release()
                    loading = False
            assert kinds[-1] == "run_finished"
    finally:
        if loading:
            IMPORT_LOCK.release()
