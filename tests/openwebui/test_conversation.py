"""The conversation that the next turn sends to the agent, without what the pipe has added to it."""

from pathlib import Path

import pytest

from tests.openwebui.chat import Chat, Output
from tests.openwebui.frame_server import FrameServer
from tests.openwebui.function_rules import Json
from tests.openwebui.output_items import item_text
from tests.support import agents
from tests.support.server import serving

pytestmark = pytest.mark.asyncio(loop_scope="module")

GOLDEN = Path(__file__).parents[1] / "dialects" / "golden"


def history(output: Output) -> list[Json]:
    """The messages of an answer that Open WebUI sends with the next turn (`convert_output_to_messages`)."""
    plain = "".join(chunk for chunk in output.chunks if isinstance(chunk, str))
    messages: list[Json] = [{"role": "assistant", "content": plain}] if plain else []
    for item in output.items:
        if item["type"] == "function_call":
            function = {"name": item["name"], "arguments": item["arguments"]}
            call = {"id": item["call_id"], "type": "function", "function": function}
            messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
        elif item["type"] == "function_call_output":
            messages.append({"role": "tool", "tool_call_id": item["call_id"], "content": item_text(item)})
        elif item["type"] == "message":
            messages.append({"role": "assistant", "content": item_text(item)})
    return messages


async def sent_history(server: FrameServer, script: str, display: str) -> list[Json]:
    """The messages of the first answer that the server receives with the second question."""
    server.set_stream((GOLDEN / f"{script}.typed.sse").read_bytes())
    chat = Chat(server.url, DISPLAY=display)
    first = await chat.send("first")
    await chat.send("second", [{"role": "user", "content": "first"}, *history(first)])
    messages: list[Json] = server.stream_requests[-1].body["messages"]
    assert (messages[0]["content"], messages[-1]) == ("first", {"role": "user", "content": "second"})
    return messages[1:-1]


async def test_calls_have_original_names_and_ids_without_those_of_sub_agents(server: FrameServer) -> None:
    messages = await sent_history(server, "sub_agents", "native")
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
async def test_blocks_of_displays_are_removed(server: FrameServer, script: str, display: str) -> None:
    answers = {"sub_agents": "They are done.", "one_tool": "A stage light.", "tool_error": "That did not work."}
    messages = await sent_history(server, script, display)
    assert len(messages) == 1
    before = "I'll search." if (script, display) == ("one_tool", "details") else ""
    content = messages[0]["content"]
    assert [part for part in content.split("\n") if part] == [
        part for part in (before, answers.get(script, "It raised.")) if part
    ]


async def test_other_details_blocks_are_kept(server: FrameServer) -> None:
    server.set_payloads('{"type":"done"}')
    quoted = {"role": "user", "content": "<details>\n<summary>🔍 Execution Steps (2 tools)</summary>\nmine</details>"}
    other = {"role": "assistant", "content": "<details>\n<summary>More</summary>\n\nx\n\n</details>"}
    await Chat(server.url).send("x", [quoted, other])
    assert server.stream_requests[0].body["messages"][:2] == [quoted, other]


async def test_calls_of_another_model_are_removed(server: FrameServer) -> None:
    """The agent does not have the tools of another model in the same chat."""
    server.set_payloads('{"type":"done"}')
    call = {"id": "call_abc", "type": "function", "function": {"name": "search_web", "arguments": "{}"}}
    history: list[Json] = [
        {"role": "assistant", "content": "Let me see.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_abc", "content": "found"},
    ]
    await Chat(server.url).send("x", history)
    assert server.stream_requests[0].body["messages"][0] == {"role": "assistant", "content": "Let me see."}
    assert len(server.stream_requests[0].body["messages"]) == 2


async def test_names_with_special_characters_are_restored(server: FrameServer) -> None:
    name, call_id = "a.b › ü%2E/…", "id.with.dots %"
    server.set_payloads(
        f'{{"type":"tool_start","data":{{"tool_id":"{call_id}","name":"{name}","agent_depth":0,"args":{{}}}}}}',
        f'{{"type":"tool_end","data":{{"tool_id":"{call_id}","name":"{name}","result":"r","agent_depth":0}}}}',
        '{"type":"done"}',
    )
    chat = Chat(server.url)
    first = await chat.send("x")
    await chat.send("y", history(first))
    call, result, _ = server.stream_requests[-1].body["messages"]
    assert (call["tool_calls"][0]["id"], call["tool_calls"][0]["function"]["name"]) == (call_id, name)
    assert result == {"role": "tool", "content": "r", "tool_call_id": call_id}


async def test_second_turn_continues_the_session_of_a_real_server(tmp_path: Path) -> None:
    async with serving(agents.worker, data=tmp_path) as served:
        chat = Chat(served.url)
        first = await chat.send("one")
        second = await chat.send("two", [{"role": "user", "content": "one"}, *history(first)])
        assert second.final_status == ("Complete", True)
        assert (await served.http.get("/sessions/u-1.chat-1")).json()["turns"] == 2
