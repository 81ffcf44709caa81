"""Agents that are made late: what is known before, what happens in `open`, and what goes wrong there."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from limelight.builtin.late import Maker, late
from limelight.errors import SetupError
from limelight.events import FinalAnswer, TextDelta
from limelight.sources.base import NO_OPTIONS, Home, Options, Source, Turn
from limelight.sources.function import FunctionSource
from tests.sources.turns import new_turn
from tests.waiting import eventually


class NoHome:
    data = Path()

    async def understudy(self) -> tuple[str, str]:
        raise AssertionError("nobody needs it")


async def hello(messages: Any, ctx: Any) -> AsyncIterator[str]:
    """Never shown: the maker says what the agent is."""
    yield "hello"


class Remembering(FunctionSource):
    """A source with traits and habits that can be seen."""

    framework = "remembering"
    LACKS = {"code": "it has none"}  # noqa: RUF012
    OPTIONS = frozenset({"max_steps"})
    keeps_memory = True

    def __init__(self, target: object, options: Options = NO_OPTIONS) -> None:
        super().__init__(target, options)
        self.seen: list[object] = [options]

    async def open(self, home: Home) -> None:
        made.append(self)

    async def close(self) -> None:
        self.seen.append("closed")

    async def forget(self, memory_key: str) -> None:
        self.seen.append(("forget", memory_key))

    async def rest(self, memory_key: str) -> None:
        self.seen.append(("rest", memory_key))


made: list[Remembering] = []


def late_agent(make: Callable[[], object], extra: str = "bees", options: Options = NO_OPTIONS) -> Source:
    async def prepare(_: Home) -> Callable[[], object]:
        return make

    return late(Remembering, Maker(name="bot", description="A bot", extra=extra, prepare=prepare), options)


def test_its_traits_are_known_before() -> None:
    source = late_agent(lambda: pytest.fail("made too early"))
    assert (source.framework, source.description, source.keeps_memory) == ("remembering", "A bot", True)
    assert (source.LACKS, source.OPTIONS) == (Remembering.LACKS, Remembering.OPTIONS)
    assert not type(source).accepts(hello)


async def test_everything_is_left_to_the_real_source() -> None:
    made.clear()
    source = late_agent(lambda: hello, options=Options(max_steps=3))
    await source.open(NoHome())
    events = [event async for event in source.run(new_turn("hi"))]
    assert [e.text for e in events if isinstance(e, TextDelta)] == ["hello"]
    assert any(isinstance(event, FinalAnswer) for event in events)
    await source.forget("a")
    await source.rest("b")
    await source.close()
    await source.close()
    (real,) = made
    assert real.seen == [Options(max_steps=3), ("forget", "a"), ("rest", "b"), "closed"]


async def test_it_is_made_in_a_thread_while_the_loop_goes_on() -> None:
    may_end, threads = threading.Event(), list[threading.Thread]()

    def make() -> object:
        threads.append(threading.current_thread())
        assert may_end.wait(20)
        return hello

    opening = asyncio.create_task(late_agent(make).open(NoHome()))
    await eventually(lambda: threads)
    assert not opening.done()
    may_end.set()
    await opening
    assert threads[0] is not threading.main_thread()


@pytest.mark.parametrize(
    ("error", "extra", "told"),
    [
        (
            ModuleNotFoundError("x", name="bees_core"),
            "bees",
            "agent 'bot' needs the bees extra: pip install 'limelight[bees]'",
        ),
        (ModuleNotFoundError("x", name="bees_core"), "", "agent 'bot' needs the package bees_core"),
        (ValueError("no honey"), "bees", "agent 'bot' cannot be made: ValueError: no honey"),
    ],
)
async def test_what_goes_wrong_is_one_line(error: Exception, extra: str, told: str) -> None:
    def make() -> object:
        raise error

    source = late_agent(make, extra)
    with pytest.raises(SetupError) as caught:
        await source.open(NoHome())
    assert caught.value.detail == told
    await source.close()


async def test_what_was_opened_for_an_agent_that_fails_is_closed_again() -> None:
    closed: list[str] = []

    async def prepare(_: Home) -> Callable[[], object]:
        maker.closing.append(close)
        return lambda: 1 / 0

    async def close() -> None:
        closed.append("client")

    maker = Maker(name="bot", description="", extra="", prepare=prepare, closing=[])
    with pytest.raises(SetupError, match="ZeroDivisionError"):
        await late(Remembering, maker, Options()).open(NoHome())
    assert closed == ["client"]


def test_before_it_is_open_it_does_not_run() -> None:
    turn: Turn = new_turn("hi")
    with pytest.raises(RuntimeError, match="agent 'bot' is not open"):
        late_agent(lambda: hello).run(turn)
