"""One agent never blocks another: neither by sleeping without asyncio nor by flooding."""

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests import agents
from tests.serving import asking, collect, serving, text_of
from tests.waiting import eventually


@pytest.mark.parametrize("name", ["sleeper", "burster"])
async def test_others_go_on_meanwhile(tmp_path: Path, name: str) -> None:
    async with serving(agents.talker, agents.sleeper, agents.bursting(20_000), data=tmp_path) as served:
        busy = asyncio.create_task(collect(served.ask("go", agent=name)))
        answered = 0
        while not busy.done() and answered < 200:
            assert (await served.http.get("/health")).status_code == 200
            other = (await served.http.post("/chat", json=asking("hi"))).json()
            assert other["message"]["content"] == "".join(agents.WORDS)
            answered += 1
        assert answered >= 3
        assert text_of(await busy).endswith(" awake" if name == "sleeper" else "19999 ")


async def test_slow_tools_in_threads_leave_threads_for_others(tmp_path: Path) -> None:
    may_end = threading.Event()

    async def slow(messages: object, ctx: object) -> AsyncIterator[str]:
        await asyncio.to_thread(may_end.wait, 30)
        yield "slow"

    async def quick(messages: object, ctx: object) -> AsyncIterator[str]:
        yield await asyncio.to_thread(lambda: "quick")

    async with serving(slow, quick, data=tmp_path) as served:
        slow_ones = [asyncio.create_task(collect(served.ask("go", agent="slow"))) for _ in range(20)]
        await eventually(lambda: served.parts.sessions.count == 20)
        assert text_of(await collect(served.ask("go", agent="quick"))) == "quick"
        assert not any(task.done() for task in slow_ones)
        may_end.set()
        assert {text_of(await task) for task in slow_ones} == {"slow"}
