"""The time for parsing input is divided between connections: small input first, and other tasks run in between."""

import asyncio
from collections.abc import Callable

import pytest

from limelight.server.process import input_scheduler
from limelight.server.process.input_scheduler import (
    SMALL_INPUT,
    TURN_SECONDS,
    InputScheduler,
    Priority,
    priority_of,
    scheduler_of,
)


class Connections:
    """Connections on a clock of their own. Each call of their `parse` takes some time and is noted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.parsed: list[str] = []
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "time", lambda: self.now)
        self.scheduler = InputScheduler(loop)

    def parse(self, name: str, seconds: float = 0, then: Callable[[], None] | None = None) -> Callable[[], None]:
        def parse() -> None:
            self.parsed.append(name)
            self.now += seconds
            if then is not None:
                then()

        return parse


@pytest.fixture
async def connections(monkeypatch: pytest.MonkeyPatch) -> Connections:
    return Connections(monkeypatch)


async def turns(number: int) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


async def test_new_input_is_parsed_at_once_until_the_turn_is_over(connections: Connections) -> None:
    scheduler = connections.scheduler
    assert scheduler.may_parse()
    connections.now += TURN_SECONDS / 2
    assert scheduler.may_parse()
    connections.now += TURN_SECONDS / 2
    assert not scheduler.may_parse()
    await turns(2)
    assert scheduler.may_parse()


async def test_small_input_is_parsed_before_large_and_discarded_input(connections: Connections) -> None:
    for name, priority in [
        ("discarded", Priority.DISCARDED),
        ("large", Priority.LARGE),
        ("small", Priority.SMALL),
        ("small too", Priority.SMALL),
    ]:
        connections.scheduler.add(connections.parse(name), priority)
    await turns(3)
    assert connections.parsed == ["small", "small too", "large", "discarded"]


async def test_turn_that_is_over_parses_one_connection_of_each_priority(connections: Connections) -> None:
    for number in range(3):
        for priority in Priority:
            connections.scheduler.add(connections.parse(f"{priority.name} {number}", TURN_SECONDS), priority)
    await turns(6)
    assert connections.parsed == [f"{priority.name} {number}" for number in range(3) for priority in Priority]


async def test_turn_parses_one_connection_whose_input_is_discarded(connections: Connections) -> None:
    for number in range(3):
        connections.scheduler.add(connections.parse(f"discarded {number}"), Priority.DISCARDED)
    for number in range(3):
        await turns(1)
        assert connections.parsed == [f"discarded {earlier}" for earlier in range(number + 1)]


async def test_other_tasks_run_between_two_turns(connections: Connections) -> None:
    def again() -> None:
        if len(connections.parsed) < 5:
            connections.scheduler.add(endless, Priority.LARGE)

    endless = connections.parse("large", TURN_SECONDS, again)
    connections.scheduler.add(endless, Priority.LARGE)
    for _ in range(20):
        before = len(connections.parsed)
        await asyncio.sleep(0)
        assert len(connections.parsed) - before <= 1
    assert len(connections.parsed) == 5


async def test_connection_that_is_added_again_waits_behind_the_others(connections: Connections) -> None:
    def again() -> None:
        if connections.parsed.count("first") < 2:
            connections.scheduler.add(first, Priority.LARGE)

    first = connections.parse("first", 0, again)
    connections.scheduler.add(first, Priority.LARGE)
    connections.scheduler.add(connections.parse("second"), Priority.LARGE)
    await turns(5)
    assert connections.parsed == ["first", "second", "first"]


async def test_discarded_connection_is_not_parsed(connections: Connections) -> None:
    parse = connections.parse("closed")
    connections.scheduler.add(parse, Priority.SMALL)
    assert connections.scheduler.is_waiting(parse)
    connections.scheduler.discard(parse)
    assert not connections.scheduler.is_waiting(parse)
    await turns(3)
    assert connections.parsed == []


async def test_connection_that_is_closed_by_another_one_in_the_same_turn_is_not_parsed(
    connections: Connections,
) -> None:
    closed = connections.parse("closed")
    connections.scheduler.add(
        connections.parse("closing", 0, lambda: connections.scheduler.discard(closed)), Priority.SMALL
    )
    connections.scheduler.add(closed, Priority.SMALL)
    await turns(3)
    assert connections.parsed == ["closing"]


async def test_connections_of_one_loop_share_a_scheduler() -> None:
    loop = asyncio.get_running_loop()
    assert scheduler_of(loop) is scheduler_of(loop)


@pytest.mark.parametrize(
    ("buffered", "is_discarded", "expected"),
    [
        (SMALL_INPUT, False, Priority.SMALL),
        (SMALL_INPUT + 1, False, Priority.LARGE),
        (1, True, Priority.DISCARDED),
    ],
)
def test_priority_depends_on_the_buffered_bytes(buffered: int, is_discarded: bool, expected: Priority) -> None:
    assert priority_of(buffered, is_discarded=is_discarded) is expected


def test_slice_of_a_connection_is_shorter_than_a_turn() -> None:
    assert input_scheduler.SLICE_SECONDS * 10 < TURN_SECONDS
