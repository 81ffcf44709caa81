"""The one block of `collapse`: it is sent whole with each change, so it must not be sent with each of many."""

import asyncio
import json

import pytest

from tests.openwebui.output import text_of
from tests.openwebui.shown import Shown
from tests.openwebui.webui import Chunk, pipe_module


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def step(shown: Shown, number: int) -> None:
    about = {"tool_id": f"c{number}", "name": "search", "agent_depth": 0}
    shown.feed("tool_start", args={}, **about)
    shown.feed("tool_end", result="x" * 200, **about)


def size(chunks: list[Chunk]) -> int:
    return len(json.dumps(chunks))


def test_many_steps_are_sent_a_few_times() -> None:
    clock = Clock()
    shown = Shown("collapse", clock)
    for number in range(2000):
        step(shown, number)
        clock.now += 0.04
        shown.flush()
    shown.close()
    final = size([shown.items[0]])
    assert "Execution Steps (2000 tools)" in text_of(shown.items[0])
    assert size(shown.chunks) < 100 * final
    assert len(shown.chunks) < 200


def test_the_first_step_is_there_at_once_and_the_next_ones_soon() -> None:
    clock = Clock()
    shown = Shown("collapse", clock)
    step(shown, 1)
    shown.flush()
    step(shown, 2)
    shown.flush()
    assert "(1 tool)" in text_of(shown.items[0])
    clock.now += 0.5
    shown.flush()
    assert "(2 tools)" in text_of(shown.items[0])


def test_a_large_block_waits_longer() -> None:
    clock = Clock()
    shown = Shown("collapse", clock)
    for number in range(2000):
        step(shown, number)
    shown.flush()
    step(shown, 2000)
    clock.now += 0.6
    shown.flush()
    assert "(2000 tools)" in text_of(shown.items[0])
    clock.now += 3
    shown.flush()
    assert "(2001 tools)" in text_of(shown.items[0])


async def test_what_was_put_off_comes_without_more_news(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipe_module(), "IDLE", 0.01)
    queue: asyncio.Queue[object] = asyncio.Queue()
    bundles = pipe_module().paced(queue)
    assert await asyncio.wait_for(anext(bundles), 30) == []
    queue.put_nowait("news")
    while not (bundle := await asyncio.wait_for(anext(bundles), 30)):
        pass
    assert bundle == ["news"]
    queue.put_nowait(None)
    assert [found async for found in bundles if found] == []
