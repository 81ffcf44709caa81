"""The conversation as the agent hears it on the next turn: without what the pipe itself put into it."""

from pathlib import Path

import pytest

from tests.openwebui.chat import Chat, Seen
from tests.openwebui.frame_server import Stage
from tests.openwebui.function_rules import Json
from tests.openwebui.output import text_of
from tests.support import agents
from tests.support.server import serving

pytestmark = pytest.mark.asyncio(loop_scope="module")

GOLDEN = Path(__file__).parents[1] / "dialects" / "golden"


def history(seen: Seen) -> list[Json]:
    """What Open WebUI sends back of an answer (`convert_output_to_messages`): calls, results and texts."""
    plain = "".join(chunk for chunk in seen.chunks if isinstance(chunk, str))
    messages: list[Json] = [{"role": "assistant", "content": plain}] if plain else []
    for item in seen.items:
        if item["type"] == "function_call":
            function = {"name": item["name"], "arguments": item["arguments"]}
            call = {"id": item["call_id"], "type": "function", "function": function}
            messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
        elif item["type"] == "function_call_output":
            messages.append({"role": "tool", "tool_call_id": item["call_id"], "content": text_of(item)})
        elif item["type"] == "message":
            messages.append({"role": "assistant", "content": text_of(item)})
    return messages


async def heard(stage: Stage, script: str, display: str) -> list[Json]:
    """What the server is told of the first answer when there is a second question."""
    stage.play((GOLDEN / f"{script}.typed.sse").read_bytes())
    chat = Chat(stage.url, DISPLAY=display)
    first = await chat.say("first")
    await chat.say("second", [{"role": "user", "content": "first"}, *history(first)])
    messages: list[Json] = stage.streams[-1].body["messages"]
    assert (messages[0]["content"], messages[-1]) == ("first", {"role": "user", "content": "second"})
    return messages[1:-1]


async def test_calls_have_their_real_names_and_ids_and_sub_agents_calls_are_left_out(stage: Stage) -> None:
    messages = await heard(stage, "sub_agents", "native")
    calls = [call for message in messages for call in message.get("tool_calls", [])]
    assert [(call["id"], call["function"]) for call in calls] == [
        ("c1", {"name": "task", "arguments": '{"subagent": "researcher"}'}),
        ("c2", {"name": "task", "arguments": '{"subagent": "critic"}'}),
    ]
    results = [(message["tool_call_id"], message["content"]) for message in messages if message["role"] == "tool"]
    assert results == [("c1", "A report."), ("c2", "Error: nothing")]
    assert messages[-1] == {"role": "assistant", "content": "They are done."}
    assert len(messages) == 5


@pytest.mark.parametrize("display", ["collapse", "details", "plain"])
@pytest.mark.parametrize("script", ["sub_agents", "one_tool", "tool_error", "code_output"])
async def test_blocks_are_left_out(stage: Stage, script: str, display: str) -> None:
    answers = {"sub_agents": "They are done.", "one_tool": "A stage light.", "tool_error": "That did not work."}
    messages = await heard(stage, script, display)
    assert len(messages) == 1
    said = "I'll search." if (script, display) == ("one_tool", "details") else ""
    content = messages[0]["content"]
    assert [part for part in content.split("\n") if part] == [
        part for part in (said, answers.get(script, "It raised.")) if part
    ]


async def test_details_of_others_stay(stage: Stage) -> None:
    stage.play(b'id: 1\ndata: {"type":"done"}\n\n')
    mine = {"role": "user", "content": "<details>\n<summary>🔍 Execution Steps (2 tools)</summary>\nmine</details>"}
    other = {"role": "assistant", "content": "<details>\n<summary>More</summary>\n\nx\n\n</details>"}
    await Chat(stage.url).say("x", [mine, other])
    assert stage.streams[0].body["messages"][:2] == [mine, other]


async def test_calls_that_are_not_the_pipes_are_left_out(stage: Stage) -> None:
    """Of another model in the same chat: the agent has no such tools."""
    stage.play(b'id: 1\ndata: {"type":"done"}\n\n')
    call = {"id": "call_abc", "type": "function", "function": {"name": "search_web", "arguments": "{}"}}
    said: list[Json] = [
        {"role": "assistant", "content": "Let me see.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_abc", "content": "found"},
    ]
    await Chat(stage.url).say("x", said)
    assert stage.streams[0].body["messages"][0] == {"role": "assistant", "content": "Let me see."}
    assert len(stage.streams[0].body["messages"]) == 2


async def test_names_with_odd_signs_come_back_as_they_were(stage: Stage) -> None:
    name, call_id = "a.b › ü%2E/…", "id.with.dots %"
    frames = [
        f'{{"type":"tool_start","data":{{"tool_id":"{call_id}","name":"{name}","agent_depth":0,"args":{{}}}}}}',
        f'{{"type":"tool_end","data":{{"tool_id":"{call_id}","name":"{name}","result":"r","agent_depth":0}}}}',
        '{"type":"done"}',
    ]
    stage.play("".join(f"id: {n}\ndata: {frame}\n\n" for n, frame in enumerate(frames, 1)).encode())
    chat = Chat(stage.url)
    first = await chat.say("x")
    await chat.say("y", history(first))
    call, result, _ = stage.streams[-1].body["messages"]
    assert (call["tool_calls"][0]["id"], call["tool_calls"][0]["function"]["name"]) == (call_id, name)
    assert result == {"role": "tool", "content": "r", "tool_call_id": call_id}


async def test_a_real_server_takes_the_second_turn_for_the_same_session(tmp_path: Path) -> None:
    async with serving(agents.worker, data=tmp_path) as served:
        chat = Chat(served.url)
        first = await chat.say("one")
        second = await chat.say("two", [{"role": "user", "content": "one"}, *history(first)])
        assert second.end == ("Complete", True)
        assert (await served.http.get("/sessions/u-1.chat-1")).json()["turns"] == 2
