"""Batches of frames and limits of statuses: prompt, but not a chunk per token, which would keep a browser busy."""

import asyncio
import json
from pathlib import Path

import pytest

from limelight.events import TextDelta
from limelight.sources.base import Context
from tests.openwebui.chat import Chat, Output
from tests.openwebui.frame_server import FrameServer
from tests.openwebui.function_rules import Json, pipe_module
from tests.support import agents
from tests.support.server import serving
from tests.support.wait import DEADLINE, eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

DONE = '{"type":"done"}'
TOKEN = '{"type":"token","data":{"content":"%d ","agent_depth":0}}'


@pytest.mark.parametrize("frame_by_frame", [True, False])
@pytest.mark.parametrize("display", ["native", "collapse", "details", "plain"])
async def test_two_thousand_tokens_give_less_than_200_chunks(
    server: FrameServer, display: str, frame_by_frame: bool
) -> None:
    server.frame_by_frame = frame_by_frame
    server.set_payloads(*(TOKEN % number for number in range(2000)), DONE)
    output = await Chat(server.url, DISPLAY=display).send("go")
    assert output.text == "".join(f"{number} " for number in range(2000))
    assert len(output.chunks) < 200


async def test_two_thousand_tokens_of_a_real_server_give_less_than_200_chunks(tmp_path: Path) -> None:
    async with serving(agents.bursting(2000), data=tmp_path) as served:
        output = await Chat(served.url).send("go")
    assert output.text == "".join(f"{number} " for number in range(2000))
    assert len(output.chunks) < 200


async def test_first_token_is_shown_before_the_second_is_sent(tmp_path: Path) -> None:
    resume = asyncio.Event()

    async def thinker(messages: object, ctx: Context):  # pyright: ignore[reportUnknownParameterType]
        yield TextDelta(message_id="m", text="First ")
        await resume.wait()
        yield TextDelta(message_id="m", text="then.")

    async with serving(thinker, data=tmp_path) as served:
        output, task = Chat(served.url).start("go")
        await eventually(lambda: output.text == "First ")
        resume.set()
        await task
        assert output.text == "First then."


@pytest.mark.parametrize("turns", range(6))
async def test_cancellation_together_with_a_frame_is_not_lost(turns: int) -> None:
    queue: asyncio.Queue[object] = asyncio.Queue()
    waiting = asyncio.Event()

    async def read_batches() -> None:
        waiting.set()
        async for _ in pipe_module().batches(queue):
            pass

    task = asyncio.create_task(read_batches())
    await waiting.wait()
    queue.put_nowait("frame")
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    done, _ = await asyncio.wait([task], timeout=DEADLINE)
    task.cancel()
    assert done and task.cancelled()


async def test_idle_queue_gives_empty_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty batch lets a display send deferred changes."""
    monkeypatch.setattr(pipe_module(), "IDLE_SECONDS", 0.01)
    queue: asyncio.Queue[object] = asyncio.Queue()
    batches = pipe_module().batches(queue)
    assert await asyncio.wait_for(anext(batches), DEADLINE) == []
    queue.put_nowait("frame")
    while not (batch := await asyncio.wait_for(anext(batches), DEADLINE)):
        pass
    assert batch == ["frame"]
    queue.put_nowait(None)
    assert [batch async for batch in batches if batch] == []


class OrderedOutput(Output):
    """Records how many chunks had been yielded when an event was emitted."""

    def __init__(self) -> None:
        super().__init__()
        self.order: list[str] = []

    async def emit(self, event: Json) -> None:
        self.order.append(f"{event['type']} after {len(self.chunks)} chunks")
        await super().emit(event)


async def test_chunks_come_before_the_events_of_the_same_batch(server: FrameServer) -> None:
    """Events are slow: Open WebUI stores the complete chat for each status and each source."""
    server.set_payloads(
        '{"type":"tool_start","data":{"tool_id":"c","name":"look","agent_depth":0,"args":{}}}',
        '{"type":"tool_end","data":{"tool_id":"c","name":"look","agent_depth":0,"result":"seen"}}',
        DONE,
    )
    output = OrderedOutput()
    await Chat(server.url).stream_into("go", output)
    assert output.order and "status after 0 chunks" not in output.order


@pytest.mark.parametrize(("tools", "statuses"), [(5, 5), (6, 1), (300, 1)])
async def test_many_statuses_in_a_batch_are_reduced_to_the_last(server: FrameServer, tools: int, statuses: int) -> None:
    tool_start = '{"type":"tool_start","data":{"tool_id":"c%d","name":"look_%d","agent_depth":0,"args":{}}}'
    status = pipe_module().StatusLine(pipe_module().DisplayOptions("native", True, True))
    events = [
        event
        for number in range(tools)
        for event in status.feed(pipe_module().Frame("tool_start", json.loads(tool_start % (number, number))["data"]))
    ]
    source: Json = {"type": "source", "data": {}}
    kept = pipe_module().limit_statuses([source, *events, source])
    assert [event["type"] for event in kept] == ["source", *["status"] * statuses, "source"]
    assert kept[-2]["data"]["description"] == f"🔧 look_{tools - 1}..."
    server.set_payloads(*(tool_start % (number, number) for number in range(tools)), DONE)
    output = await Chat(server.url).send("go")
    assert len(output.statuses) <= 12
    assert output.statuses[-2] == f"🔧 look_{tools - 1}..."
