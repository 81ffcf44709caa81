"""One agent does not block another, neither by blocking its thread nor by flooding."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from limelight.server.process.thread_pool import THREADS_PER_RUN
from limelight.server.process.uvicorn_server import THREADS
from tests.support import agents
from tests.support.server import asking, collect, serving, text_of
from tests.support.wait import DEADLINE, eventually


@pytest.mark.requirement("agents-do-not-block-each-other")
@pytest.mark.parametrize("name", ["blocking", "bursting"])
async def test_busy_agent_does_not_block_others(tmp_path: Path, name: str) -> None:
    may_end = threading.Event()

    def blocking(messages: object, ctx: object) -> Iterator[str]:
        yield "begun "
        may_end.wait(DEADLINE)
        yield "ended"

    async def bursting(messages: object, ctx: object) -> AsyncIterator[str]:
        while not may_end.is_set():
            yield "word "
        yield "ended"

    async with serving(agents.talker, blocking, bursting, data=tmp_path) as served:
        busy = asyncio.create_task(collect(served.ask("go", agent=name)))
        await eventually(lambda: served.runtime.sessions.count == 1)
        for _ in range(3):
            assert (await served.http.get("/health")).status_code == 200
            other = (await served.http.post("/chat", json=asking("hi"))).json()
            assert other["message"]["content"] == "".join(agents.WORDS)
        assert not busy.done()
        may_end.set()
        assert text_of(await busy).endswith("ended")


async def test_slow_tools_in_threads_leave_threads_for_others(tmp_path: Path) -> None:
    may_end = threading.Event()

    async def slow(messages: object, ctx: object) -> AsyncIterator[str]:
        await asyncio.to_thread(may_end.wait, DEADLINE)
        yield "slow"

    async def quick(messages: object, ctx: object) -> AsyncIterator[str]:
        yield await asyncio.to_thread(lambda: "quick")

    async with serving(slow, quick, data=tmp_path) as served:
        slow_ones = [asyncio.create_task(collect(served.ask("go", agent="slow"))) for _ in range(20)]
        await eventually(lambda: served.runtime.sessions.count == 20)
        assert text_of(await collect(served.ask("go", agent="quick"))) == "quick"
        assert not any(task.done() for task in slow_ones)
        may_end.set()
        assert {text_of(await task) for task in slow_ones} == {"slow"}


async def test_run_with_many_slow_tools_leaves_threads_for_others(tmp_path: Path) -> None:
    """A run has a share of the threads; further calls wait until one of these is free."""
    may_end, begun, ended = threading.Event(), threading.Semaphore(0), list[int]()

    def work(number: int) -> None:
        begun.release()
        may_end.wait(DEADLINE)
        ended.append(number)

    async def greedy(messages: object, ctx: object) -> AsyncIterator[str]:
        await asyncio.gather(*(asyncio.to_thread(work, number) for number in range(THREADS)))
        yield "done"

    async def quick(messages: object, ctx: object) -> AsyncIterator[str]:
        yield await asyncio.to_thread(lambda: "quick")

    async with serving(greedy, quick, data=tmp_path) as served:
        busy = [asyncio.create_task(collect(served.ask("go", agent="greedy"))) for _ in range(3)]
        await asyncio.to_thread(lambda: [begun.acquire(timeout=DEADLINE) for _ in range(3 * THREADS_PER_RUN)])
        assert text_of(await collect(served.ask("go", agent="quick"))) == "quick"
        assert not begun.acquire(blocking=False), "a run has more threads than its share"
        may_end.set()
        assert {text_of(await task) for task in busy} == {"done"}
    assert sorted(ended) == sorted([*range(THREADS)] * 3)


async def test_call_that_is_stopped_before_it_gets_a_thread_never_runs(tmp_path: Path) -> None:
    may_end, begun = threading.Event(), list[int]()

    def work(number: int) -> None:
        begun.append(number)
        may_end.wait(DEADLINE)

    async def greedy(messages: object, ctx: object) -> AsyncIterator[str]:
        yield "begun"
        await asyncio.gather(*(asyncio.to_thread(work, number) for number in range(THREADS_PER_RUN + 10)))

    async with serving(greedy, data=tmp_path) as served:
        async for frame in served.ask("go", format="records"):
            if frame.data["event"]["kind"] == "text_delta":
                await eventually(lambda: len(begun) == THREADS_PER_RUN)
                await served.http.post(f"/runs/{frame.data['run_id']}/cancel", json={})
        may_end.set()
    assert len(begun) == THREADS_PER_RUN
