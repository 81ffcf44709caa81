"""The read limiter runs the reads of one owner one after the other, also when callers are cancelled."""

import asyncio
from collections.abc import Callable

import pytest

from limelight.models import LOCAL_OWNER
from limelight.stores.sqlite.read_limiter import ReadLimiter

Reading = asyncio.Future[str]


class Reads:
    """Starts reads that end when the test sets their result."""

    def __init__(self) -> None:
        self.limiter = ReadLimiter()
        self.started: list[Reading] = []

    def start(self) -> Reading:
        self.started.append(asyncio.get_running_loop().create_future())
        return self.started[-1]

    async def request(self, owner: str, start: Callable[[], Reading] | None = None) -> "asyncio.Task[str]":
        task = asyncio.create_task(self.limiter.read(owner, start or self.start))
        await settle()
        return task


async def settle() -> None:
    """Let all tasks run until each of them waits."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_reads_of_one_owner_are_sequential_and_do_not_delay_others() -> None:
    reads = Reads()
    first, second = await reads.request("ann"), await reads.request("ann")
    assert len(reads.started) == 1
    other = await reads.request("ben")
    assert len(reads.started) == 2
    reads.started[1].set_result("ben's")
    assert await other == "ben's"
    reads.started[0].set_result("one")
    assert await first == "one"
    await settle()
    reads.started[2].set_result("two")
    assert await second == "two"


async def test_local_owner_is_not_limited() -> None:
    reads = Reads()
    tasks = [await reads.request(LOCAL_OWNER) for _ in range(3)]
    assert len(reads.started) == 3
    for reading in reads.started:
        reading.set_result("")
    assert await asyncio.gather(*tasks) == ["", "", ""]


async def test_cancelled_caller_keeps_the_lock_until_its_read_is_done() -> None:
    reads = Reads()
    first, second = await reads.request("ann"), await reads.request("ann")
    first.cancel()
    await settle()
    assert first.cancelled() and len(reads.started) == 1  # its thread still works
    reads.started[0].set_result("unused")
    await settle()
    reads.started[1].set_result("two")
    assert await second == "two"


async def test_cancelled_waiter_is_skipped() -> None:
    reads = Reads()
    first, second, third = [await reads.request("ann") for _ in range(3)]
    second.cancel()
    reads.started[0].set_result("one")
    await first
    await settle()
    reads.started[1].set_result("three")
    assert await third == "three" and second.cancelled()


async def test_waiter_cancelled_when_it_gets_the_lock_passes_it_on() -> None:
    reads = Reads()
    first, second, third = [await reads.request("ann") for _ in range(3)]
    reads.started[0].set_result("one")
    reads.started[0].add_done_callback(lambda _: second.cancel())  # after it got the lock
    assert await first == "one"
    await settle()
    reads.started[1].set_result("three")
    assert await third == "three" and second.cancelled()


async def test_read_that_fails_releases_the_lock() -> None:
    reads = Reads()

    def broken() -> Reading:
        raise RuntimeError("no thread")

    with pytest.raises(RuntimeError):
        await (await reads.request("ann", broken))
    failing, after = await reads.request("ann"), await reads.request("ann")
    reads.started[0].set_exception(ValueError("failed"))
    with pytest.raises(ValueError):
        await failing
    await settle()
    reads.started[1].set_result("two")
    assert await after == "two"
