"""The button "Continue response": the agent goes on, instead of answering the question again."""

from pathlib import Path

import pytest

from tests.openwebui.chat import Chat, Seen
from tests.openwebui.frame_server import Stage
from tests.openwebui.function_rules import Json
from tests.support import agents
from tests.support.server import serving

pytestmark = pytest.mark.asyncio(loop_scope="module")

QUESTION: Json = {"role": "user", "content": "Tell me a story."}
HALF: Json = {"role": "assistant", "content": "Once upon a"}
CALL = {"id": "run_0.0.look.c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
LOOKED: list[Json] = [
    {"role": "assistant", "content": "", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "run_0.0.look.c1", "content": "seen"},
]
GO_ON: Json = {"role": "user", "content": "Continue."}


async def asked(stage: Stage, messages: list[Json], **metadata: str) -> list[Json]:
    """What the server is asked."""
    stage.play(b'id: 1\ndata: {"type":"done"}\n\n')
    chat = Chat(stage.url)
    chat.metadata |= metadata
    reply = await chat.call(messages, seen := Seen())
    assert not isinstance(reply, str)
    await seen.take(reply)
    return stage.streams[-1].body["messages"]


async def test_it_is_asked_to_go_on(stage: Stage) -> None:
    assert await asked(stage, [QUESTION, HALF], assistant_message_id="m-2") == [QUESTION, HALF, GO_ON]
    assert await asked(stage, [QUESTION, HALF]) == [QUESTION, HALF, GO_ON]


async def test_it_goes_on_behind_a_tool_too(stage: Stage) -> None:
    messages = await asked(stage, [QUESTION, *LOOKED], assistant_message_id="m-2")
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "user"]
    assert messages[-1] == GO_ON


async def test_a_question_stays_the_last_word(stage: Stage) -> None:
    assert await asked(stage, [QUESTION], assistant_message_id="m-2") == [QUESTION]


async def test_a_real_agent_hears_it(tmp_path: Path) -> None:
    async with serving(agents.echo, data=tmp_path) as served:
        chat = Chat(served.url)
        chat.metadata["assistant_message_id"] = "m-2"
        reply = await chat.call([QUESTION, HALF], seen := Seen())
        assert not isinstance(reply, str)
        await seen.take(reply)
    assert "user:Continue." in seen.text
