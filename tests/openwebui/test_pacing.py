"""How often Open WebUI is told: soon, but not for every token, because each chunk costs the browser time."""

import asyncio
from pathlib import Path

import pytest

from limelight.events import TextDelta
from limelight.sources.base import Context
from tests import agents
from tests.openwebui.chat import Chat
from tests.openwebui.stage import Stage
from tests.serving import serving
from tests.waiting import eventually

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
