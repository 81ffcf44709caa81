"""Long conversations: the pipe removes the oldest content above the limit of a request."""

import json
from pathlib import Path

import pytest
from starlette.responses import JSONResponse

from tests.openwebui.chat import Chat
from tests.openwebui.frame_server import FrameServer
from tests.openwebui.function_rules import Json, pipe_module
from tests.support import agents
from tests.support.server import serving

pytestmark = pytest.mark.asyncio(loop_scope="module")

LIMIT = 10 * 1024 * 1024
RESULT = "r" * 100_000
IMAGE: Json = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 1_000_000}}


def turn_with_tool(number: int, result: str = RESULT) -> list[Json]:
    """One turn with one tool."""
    call_id = f"run_{number}.0.look.c{number}"
    call = {"id": call_id, "type": "function", "function": {"name": "look", "arguments": "{}"}}
    return [
        {"role": "user", "content": f"question {number}"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": result},
        {"role": "assistant", "content": f"answer {number}"},
    ]


def turn_with_image(number: int) -> list[Json]:
    """One turn with an image in the question."""
    parts = [{"type": "text", "text": f"question {number}"}, IMAGE]
    return [{"role": "user", "content": parts}, {"role": "assistant", "content": f"answer {number}"}]


async def sent_messages(server: FrameServer, history: list[Json]) -> list[Json]:
    server.set_payloads('{"type":"done"}')
    assert (await Chat(server.url).send("and now?", history)).final_status == ("Complete", True)
    messages: list[Json] = server.stream_requests[-1].body["messages"]
    assert len(json.dumps(messages)) < LIMIT
    assert messages[-1] == {"role": "user", "content": "and now?"}
    return messages


async def test_conversation_below_the_limit_is_unchanged(server: FrameServer) -> None:
    messages = await sent_messages(server, [message for number in range(20) for message in turn_with_tool(number)])
    assert {message["content"] for message in messages if message["role"] == "tool"} == {RESULT}


@pytest.mark.requirement("pipe-long-chats")
async def test_oldest_results_are_shortened_first(server: FrameServer) -> None:
    messages = await sent_messages(server, [message for number in range(120) for message in turn_with_tool(number)])
    results = [message["content"] for message in messages if message["role"] == "tool"]
    assert len(results) == 120
    assert results[0].startswith("rrr") and len(results[0]) < 4_100
    assert "100,000 characters in all" in results[0]
    assert results[-1] == RESULT, "the newest are complete"
    assert results == sorted(results, key=len), "oldest first"


@pytest.mark.requirement("pipe-long-chats")
async def test_oldest_images_are_removed_next(server: FrameServer) -> None:
    messages = await sent_messages(server, [message for number in range(12) for message in turn_with_image(number)])
    questions = [message["content"] for message in messages if message["role"] == "user"]
    assert questions[0] == [
        {"type": "text", "text": "question 0"},
        {"type": "text", "text": "(an image that is not sent any more)"},
    ]
    assert questions[-2][1] == IMAGE


@pytest.mark.requirement("pipe-long-chats")
async def test_oldest_turns_are_removed_last(server: FrameServer) -> None:
    system: Json = {"role": "system", "content": "Be kind."}
    turns = [message for number in range(12) for message in [*turn_with_tool(number, "r"), *turn_with_image(number)]]
    long = [{**message, "content": "x" * 1_000_000} if message["role"] == "assistant" else message for message in turns]
    messages = await sent_messages(server, [system, *long])
    assert messages[:2] == [system, {"role": "system", "content": pipe_module().TRUNCATION_NOTE["content"]}]
    assert messages[2]["role"] == "user"
    assert len(messages) > 4


async def test_real_server_accepts_a_truncated_conversation(tmp_path: Path) -> None:
    async with serving(agents.talker, data=tmp_path) as served:
        history = [message for number in range(120) for message in turn_with_tool(number)]
        assert (await Chat(served.url).send("and now?", history)).text == "".join(agents.WORDS)


async def test_server_with_a_lower_limit_is_an_error_that_says_how_to_fix_it(server: FrameServer) -> None:
    server.faults = [JSONResponse({"title": "Too large", "code": "body_too_large"}, 413)]
    (error,) = (await Chat(server.url).send("hi")).errors
    assert "too long" in error and "start a new one" in error and "LIMELIGHT_BODY_BYTES" in error
