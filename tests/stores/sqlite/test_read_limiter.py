"""Reads of one owner come one after the other, whoever leaves meanwhile, and nobody else waits for them."""

import asyncio
from collections.abc import Callable

import pytest

from limelight.models import LOCAL_OWNER
from limelight.stores.sqlite.read_limiter import Turns

Reading = asyncio.Future[str]


class Desk:
    """Where reads are begun, and end when they are told to."""

    def __init__(self) -> None:
        self.turns = Turns()
        self.begun: list[Reading] = []

    def begin(self) -> Reading:
        self.begun.append(asyncio.get_running_loop().create_future())
        return self.begun[-1]

    async def ask(self, owner: str, begin: Callable[[], Reading] | None = None) -> "asyncio.Task[str]":
        task = asyncio.create_task(self.turns.read(owner, begin or self.begin))
        await passed()
        return task


async def passed() -> None:
    """Whatever can happen has happened."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_one_owner_reads_one_thing_at_a_time_and_another_does_not_wait() -> None:
    desk = Desk()
    first, second = await desk.ask("ann"), await desk.ask("ann")
    assert len(desk.begun) == 1
    other = await desk.ask("ben")
    assert len(desk.begun) == 2
    desk.begun[1].set_result("ben's")
    assert await other == "ben's"
    desk.begun[0].set_result("one")
    assert await first == "one"
    await passed()
    desk.begun[2].set_result("two")
    assert await second == "two"


async def test_the_machines_own_user_stands_for_many() -> None:
    desk = Desk()
    tasks = [await desk.ask(LOCAL_OWNER) for _ in range(3)]
    assert len(desk.begun) == 3
    for reading in desk.begun:
        reading.set_result("")
    assert await asyncio.gather(*tasks) == ["", "", ""]


async def test_who_leaves_while_it_is_read_keeps_the_turn_until_that_is_done() -> None:
    desk = Desk()
    first, second = await desk.ask("ann"), await desk.ask("ann")
    first.cancel()
    await passed()
    assert first.cancelled() and len(desk.begun) == 1  # a thread is at it
    desk.begun[0].set_result("for nobody")
    await passed()
    desk.begun[1].set_result("two")
    assert await second == "two"


async def test_who_leaves_while_waiting_is_passed_over() -> None:
    desk = Desk()
    first, second, third = [await desk.ask("ann") for _ in range(3)]
    second.cancel()
    desk.begun[0].set_result("one")
    await first
    await passed()
    desk.begun[1].set_result("three")
    assert await third == "three" and second.cancelled()


async def test_who_leaves_in_the_moment_of_their_turn_gives_it_on() -> None:
    desk = Desk()
    first, second, third = [await desk.ask("ann") for _ in range(3)]
    desk.begun[0].set_result("one")
    desk.begun[0].add_done_callback(lambda _: second.cancel())  # its turn was given a moment before
    assert await first == "one"
    await passed()
    desk.begun[1].set_result("three")
    assert await third == "three" and second.cancelled()


async def test_what_cannot_begin_or_fails_holds_nobody_up() -> None:
    desk = Desk()

    def broken() -> Reading:
        raise RuntimeError("no thread")

    with pytest.raises(RuntimeError):
        await (await desk.ask("ann", broken))
    failing, after = await desk.ask("ann"), await desk.ask("ann")
    desk.begun[0].set_exception(ValueError("torn"))
    with pytest.raises(ValueError):
        await failing
    await passed()
    desk.begun[1].set_result("two")
    assert await after == "two"
