"""How often Open WebUI is told: soon, but not for every token, because each chunk costs the browser time."""

import asyncio
import json
from pathlib import Path

import pytest

from limelight.events import TextDelta
from limelight.sources.base import Context
from tests.openwebui.chat import Chat, Seen
from tests.openwebui.frame_server import Stage
from tests.openwebui.function_rules import Json, pipe_module
from tests.support import agents
from tests.support.server import serving
from tests.support.wait import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

TOKEN = '{"type":"token","data":{"content":"%d ","agent_depth":0}}'


@pytest.mark.parametrize("one_by_one", [True, False])
@pytest.mark.parametrize("display", ["native", "collapse", "details", "plain"])
async def test_two_thousand_tokens_are_few_chunks(stage: Stage, display: str, one_by_one: bool) -> None:
    stage.one_by_one = one_by_one
    frames = [*(TOKEN % number for number in range(2000)), '{"type":"done"}']
    stage.play("".join(f"id: {n}\ndata: {frame}\n\n" for n, frame in enumerate(frames, 1)).encode())
    seen = await Chat(stage.url, DISPLAY=display).say("go")
    assert seen.text == "".join(f"{number} " for number in range(2000))
    assert len(seen.chunks) < 200


async def test_tokens_of_a_real_server_are_few_chunks_too(tmp_path: Path) -> None:
    async with serving(agents.bursting(2000), data=tmp_path) as served:
        seen = await Chat(served.url).say("go")
    assert seen.text == "".join(f"{number} " for number in range(2000))
    assert len(seen.chunks) < 200


async def test_what_there_is_is_shown_while_the_agent_thinks(tmp_path: Path) -> None:
    go_on = asyncio.Event()

    async def thinker(messages: object, ctx: Context):  # pyright: ignore[reportUnknownParameterType]
        yield TextDelta(message_id="m", text="First ")
        await go_on.wait()
        yield TextDelta(message_id="m", text="then.")

    async with serving(thinker, data=tmp_path) as served:
        seen, task = Chat(served.url).start("go")
        await eventually(lambda: seen.text == "First ")
        go_on.set()
        await task
        assert seen.text == "First then."


@pytest.mark.parametrize("turns", range(6))
async def test_a_stop_that_comes_together_with_a_frame_is_not_lost(turns: int) -> None:
    queue: asyncio.Queue[object] = asyncio.Queue()
    waiting = asyncio.Event()

    async def listen() -> None:
        waiting.set()
        async for _ in pipe_module().batches(queue):
            pass

    task = asyncio.create_task(listen())
    await waiting.wait()
    queue.put_nowait("news")
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    done, _ = await asyncio.wait([task], timeout=5)
    task.cancel()
    assert done and task.cancelled()


class Ordered(Seen):
    """Which came first: a chunk is drawn when it is taken, an event when it is emitted."""

    def __init__(self) -> None:
        super().__init__()
        self.order: list[str] = []

    async def emit(self, event: Json) -> None:
        self.order.append(f"{event['type']} after {len(self.chunks)} chunks")
        await super().emit(event)


async def test_what_is_drawn_does_not_wait_for_what_is_stored(stage: Stage) -> None:
    """Open WebUI writes the whole chat for each status and each source."""
    frames = [
        '{"type":"tool_start","data":{"tool_id":"c","name":"look","agent_depth":0,"args":{}}}',
        '{"type":"tool_end","data":{"tool_id":"c","name":"look","agent_depth":0,"result":"seen"}}',
        '{"type":"done"}',
    ]
    stage.play("".join(f"id: {n}\ndata: {frame}\n\n" for n, frame in enumerate(frames, 1)).encode())
    seen = Ordered()
    await Chat(stage.url).follow("go", seen)
    assert seen.order and "status after 0 chunks" not in seen.order


@pytest.mark.parametrize(("tools", "lines"), [(5, 5), (6, 1), (300, 1)])
async def test_of_many_statuses_at_once_the_last_is_told(stage: Stage, tools: int, lines: int) -> None:
    begun = '{"type":"tool_start","data":{"tool_id":"c%d","name":"look_%d","agent_depth":0,"args":{}}}'
    status = pipe_module().StatusLine(pipe_module().DisplayOptions("native", True, True))
    told = [
        event
        for number in range(tools)
        for event in status.feed(pipe_module().Frame("tool_start", json.loads(begun % (number, number))["data"]))
    ]
    source: Json = {"type": "source", "data": {}}
    kept = pipe_module().limit_statuses([source, *told, source])
    assert [event["type"] for event in kept] == ["source", *["status"] * lines, "source"]
    assert kept[-2]["data"]["description"] == f"🔧 look_{tools - 1}..."
    frames = [*(begun % (number, number) for number in range(tools)), '{"type":"done"}']
    stage.play("".join(f"id: {n}\ndata: {frame}\n\n" for n, frame in enumerate(frames, 1)).encode())
    seen = await Chat(stage.url).say("go")
    assert len(seen.statuses) <= 12
    assert seen.statuses[-2] == f"🔧 look_{tools - 1}..."
