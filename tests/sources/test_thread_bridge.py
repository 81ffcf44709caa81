"""The bridge from a thread to the event loop: order, batches, back-pressure, errors, cancellation."""

import asyncio
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar

import pytest

from limelight.errors import AgentFailed
from limelight.server.process.thread_pool import AgentThreadPool
from limelight.sources.thread_bridge import READ_AHEAD, ThreadBridge, ThreadCancelled
from tests.support.wait import eventually

Work = Callable[[ThreadBridge[int]], None]


def bridge_to(work: Work) -> ThreadBridge[int]:
    return ThreadBridge(work, "test-bridge")


def at_work() -> bool:
    return any(thread.name == "test-bridge" for thread in threading.enumerate())


async def test_items_arrive_in_order_until_the_thread_ends() -> None:
    def work(bridge: ThreadBridge[int]) -> None:
        for number in range(1000):
            bridge.put(number)

    bridge = bridge_to(work)
    assert [item async for item in bridge.items()] == list(range(1000))
    assert await bridge.cancel()


async def test_loop_is_woken_once_for_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    woken: list[object] = []
    call = loop.call_soon_threadsafe

    def counted(callback: Callable[..., object], *args: object) -> object:
        woken.append(callback)
        return call(callback, *args)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(loop, "call_soon_threadsafe", counted)
    released = threading.Event()

    def work(bridge: ThreadBridge[int]) -> None:
        for number in range(READ_AHEAD):
            bridge.put(number)
        released.set()

    bridge = bridge_to(work)
    items = bridge.items()
    first = asyncio.ensure_future(anext(items))
    await asyncio.sleep(0)
    assert released.wait(5)  # it blocks the loop, so that all items wait
    assert await first == 0
    assert [item async for item in items] == list(range(1, READ_AHEAD))
    assert len(woken) <= 3


async def test_thread_that_is_too_far_ahead_waits() -> None:
    put: list[int] = []

    def work(bridge: ThreadBridge[int]) -> None:
        for number in range(10 * READ_AHEAD):
            bridge.put(number)
            put.append(number)

    bridge = bridge_to(work)
    items = bridge.items()
    assert await anext(items) == 0
    await eventually(lambda: len(put) >= READ_AHEAD)
    await asyncio.sleep(0.05)
    assert len(put) <= 2 * READ_AHEAD
    assert [item async for item in items] == list(range(1, 10 * READ_AHEAD))


async def test_exception_of_the_thread_is_raised_after_its_items() -> None:
    def work(bridge: ThreadBridge[int]) -> None:
        bridge.put(1)
        raise ValueError("no more")

    items = bridge_to(work).items()
    assert await anext(items) == 1
    with pytest.raises(ValueError, match="no more"):
        await anext(items)


async def test_several_threads_can_put_items() -> None:
    def work(bridge: ThreadBridge[int]) -> None:
        def some(start: int) -> None:
            for number in range(start, start + 200):
                bridge.put(number)

        threads = [threading.Thread(target=some, args=(start,)) for start in range(0, 800, 200)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert sorted([item async for item in bridge_to(work).items()]) == list(range(800))


async def test_thread_runs_in_the_context_of_the_bridges_creator() -> None:
    variable: ContextVar[int] = ContextVar("variable", default=0)
    variable.set(7)
    bridge = bridge_to(lambda b: b.put(variable.get()))
    variable.set(8)
    assert [item async for item in bridge.items()] == [7]


async def test_cancel_ends_a_thread_at_its_next_put() -> None:
    caught: list[str] = []

    def work(bridge: ThreadBridge[int]) -> None:
        try:
            while True:
                bridge.put(1)
        except Exception:
            caught.append("as an ordinary error")
        except ThreadCancelled:
            caught.append("as ThreadCancelled")
            raise

    bridge = bridge_to(work)
    items = bridge.items()
    assert await anext(items) == 1
    assert await bridge.cancel()
    assert caught == ["as ThreadCancelled"]
    assert not at_work()


async def test_cancel_returns_false_for_a_thread_that_does_not_notice() -> None:
    free = threading.Event()

    def work(bridge: ThreadBridge[int]) -> None:
        bridge.put(1)
        free.wait(10)

    bridge = bridge_to(work)
    assert await anext(bridge.items()) == 1
    begun = time.monotonic()
    assert not await bridge.cancel()
    assert time.monotonic() - begun < 5
    assert bridge.cancelled
    free.set()
    await eventually(lambda: not at_work())


async def test_cancel_before_the_start_returns_true() -> None:
    bridge = bridge_to(lambda b: b.put(1))
    assert await bridge.cancel()
    assert not at_work()


def test_closed_loop_cancels_the_thread() -> None:
    free = threading.Event()

    def work(bridge: ThreadBridge[int]) -> None:
        bridge.put(1)
        free.wait(10)
        while True:
            bridge.put(2)

    async def half() -> None:
        assert await anext(bridge_to(work).items()) == 1

    asyncio.run(half())
    free.set()
    deadline = time.monotonic() + 10
    while at_work():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()])
async def test_exit_in_a_thread_of_the_pool_does_not_end_the_server(error: BaseException) -> None:
    """Raised inside a task, these two would end the event loop itself."""

    def leave() -> None:
        raise error

    threads = AgentThreadPool(1)
    with pytest.raises(AgentFailed, match=type(error).__name__):
        await asyncio.get_running_loop().run_in_executor(threads, leave)
    assert await asyncio.get_running_loop().run_in_executor(threads, lambda: 42) == 42
    threads.shutdown()
