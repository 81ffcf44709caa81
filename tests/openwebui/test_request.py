"""The request to the server: user, session, agent, request id, "Continue response", and files and knowledge."""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.openwebui.chat import Chat, Output
from tests.openwebui.frame_server import FrameServer
from tests.openwebui.function_rules import Json
from tests.support import agents
from tests.support.server import serving

pytestmark = pytest.mark.asyncio(loop_scope="module")

SESSION_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
DONE = '{"type":"done"}'


async def read_reply(chat: Chat, messages: list[Json]) -> Output:
    reply = await chat.call(messages, output := Output())
    assert not isinstance(reply, str)
    await output.read(reply)
    return output


async def sent_messages(server: FrameServer, messages: list[Json], **metadata: Any) -> list[Json]:
    """The messages that the server receives."""
    server.set_payloads(DONE)
    chat = Chat(server.url)
    chat.metadata |= metadata
    await read_reply(chat, messages)
    return server.stream_requests[-1].body["messages"]


# User, session and agent


async def test_requests_with_a_key_name_the_user(server: FrameServer) -> None:
    server.set_payloads(DONE)
    await Chat(server.url, API_KEY="sesame", user={"id": "ü/1", "name": "Änn & Co\r\nX: y"}).send("hi")
    assert server.requests
    for request in server.requests:
        assert request.headers["authorization"] == "Bearer sesame"
        assert request.headers["x-limelight-user-id"] == "%C3%BC%2F1"
        assert request.headers["x-limelight-user-name"] == "%C3%84nn%20%26%20Co%0D%0AX%3A%20y"


@pytest.mark.parametrize("name", ["Ann Bee", " Ann Bee ", ""])
async def test_user_whose_name_has_spaces_is_served_by_a_real_server(name: str, tmp_path: Path) -> None:
    """Open WebUI's user id is the owner; the name is only shown to the agent."""
    user = {"id": "3f2c9a9e-2f5e-4d0e-a2f1-0a8f4c1a7b11", "name": name}
    async with serving(agents.echo, data=tmp_path, auth__api_key="sesame") as served:
        output = await Chat(served.url, API_KEY="sesame", user=user).send("hi")
        assert f"for {user['id']}/{name.strip()} in" in output.text
        mine = {"authorization": "Bearer sesame", "x-limelight-user-id": user["id"]}
        assert len((await served.http.get("/sessions", headers=mine)).json()["sessions"]) == 1


async def test_requests_without_a_key_name_no_user(server: FrameServer) -> None:
    server.set_payloads(DONE)
    await Chat(server.url).send("hi")
    names = {name for request in server.requests for name in request.headers}
    assert not [name for name in names if name.startswith("x-limelight") or name == "authorization"]


@pytest.mark.requirement("pipe-users")
async def test_agent_receives_id_and_name_of_the_user(tmp_path: Path) -> None:
    async with serving(agents.echo, data=tmp_path, auth__api_key="sesame") as served:
        assert (await Chat(served.url, API_KEY="sesame").send("hi")).text.startswith("user:hi for u-1/Änn & Co in ")


async def session_ids(server: FrameServer, *chats: tuple[str, str]) -> list[str]:
    """The session of each pair of a user id and a chat id."""
    server.set_payloads(DONE)
    for user_id, chat_id in chats:
        chat = Chat(server.url, user={"id": user_id})
        chat.metadata["chat_id"] = chat_id
        assert (await chat.send("hi")).final_status == ("Complete", True)
    return [request.body["chat_id"] for request in server.stream_requests]


async def test_session_id_contains_user_and_chat_if_they_are_valid(server: FrameServer) -> None:
    first, second = await session_ids(server, ("u-1", "chat-1"), ("ü/2", "chat-1"))
    assert first == "u-1.chat-1"
    assert SESSION_ID.fullmatch(second) and "chat-1" not in second


@pytest.mark.requirement("pipe-sessions")
async def test_session_ids_of_similar_chats_are_distinct_and_stable(server: FrameServer) -> None:
    long = "c" * 200
    chats = [("ü/2", "c"), ("ö/2", "c"), ("u", f"{long}1"), ("u", f"{long}2"), ("a.b", "c"), ("a", "b.c"), ("u", "ä b")]
    sessions = await session_ids(server, *chats)
    assert len(set(sessions)) == len(chats)
    assert all(SESSION_ID.fullmatch(session) for session in sessions)
    server.clear()
    assert await session_ids(server, *chats) == sessions


async def test_temporary_chats_are_sessions(server: FrameServer) -> None:
    sessions = await session_ids(server, ("u", "local:Ab-1_x"), ("u", "temporary:7f"))
    assert sessions == ["u.local:Ab-1_x", "u.temporary:7f"]


async def test_each_mention_in_a_channel_is_a_session(server: FrameServer) -> None:
    """In one session, a second mention would stop the run of the first."""
    server.set_payloads(DONE)
    for message_id in ("m-1", "m-2"):
        chat = Chat(server.url)
        chat.metadata = {"session_id": "s", "chat_id": "channel:7", "message_id": message_id}
        await chat.send("hi")
    sessions = [request.body["chat_id"] for request in server.stream_requests]
    assert sessions == ["u-1.channel:7.m-1", "u-1.channel:7.m-2"]


async def test_agent_with_the_name_default_has_a_model_besides_the_default_agent(tmp_path: Path) -> None:
    async def default(messages: object, ctx: object) -> AsyncIterator[str]:
        yield "My name is default."

    async with serving(agents.talker, default, data=tmp_path) as served:
        chat = Chat(served.url)
        models = {model["name"]: model["id"] for model in await chat.webui.models()}
        assert list(models) == ["Deep Agent Pipe", "Deep Agent Pipe · default"]
        assert (await chat.send("hi")).text == "".join(agents.WORDS)
        chat.model = models["Deep Agent Pipe · default"]
        assert (await chat.send("hi")).text == "My name is default."


async def test_request_ids_of_one_question_differ_after_its_id(server: FrameServer) -> None:
    """A regenerated answer needs a new run; a repeated request id would return the old one."""
    server.set_payloads(DONE)
    chat = Chat(server.url)
    await chat.send("hi")
    await chat.send("hi")
    first, second = (request.body["request_id"] for request in server.stream_requests)
    assert first != second
    assert first.startswith("m-1.") and second.startswith("m-1.")


# "Continue response"

STORY: Json = {"role": "user", "content": "Tell me a story."}
BEGINNING: Json = {"role": "assistant", "content": "Once upon a"}
CALL = {"id": "run_0.0.look.c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
TOOL_ROUND: list[Json] = [
    {"role": "assistant", "content": "", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "run_0.0.look.c1", "content": "seen"},
]
CONTINUE: Json = {"role": "user", "content": "Continue."}


async def test_continue_adds_a_message_after_an_answer(server: FrameServer) -> None:
    expected = [STORY, BEGINNING, CONTINUE]
    assert await sent_messages(server, [STORY, BEGINNING], assistant_message_id="m-2") == expected
    assert await sent_messages(server, [STORY, BEGINNING]) == expected


async def test_continue_adds_a_message_after_a_tool_result(server: FrameServer) -> None:
    messages = await sent_messages(server, [STORY, *TOOL_ROUND], assistant_message_id="m-2")
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "user"]
    assert messages[-1] == CONTINUE


async def test_continue_adds_nothing_after_a_question(server: FrameServer) -> None:
    assert await sent_messages(server, [STORY], assistant_message_id="m-2") == [STORY]


async def test_agent_receives_the_message_to_continue(tmp_path: Path) -> None:
    async with serving(agents.echo, data=tmp_path) as served:
        chat = Chat(served.url)
        chat.metadata["assistant_message_id"] = "m-2"
        output = await read_reply(chat, [STORY, BEGINNING])
    assert "user:Continue." in output.text


# Files and knowledge: Open WebUI adds passages to the question, and only for the current turn

QUESTION = "What does the contract say?"
CONTEXT = '### Task: answer with citations [id].\n<context>\n<source id="1">42 pages</source>\n</context>'
IMAGE: Json = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


async def sent_question(server: FrameServer, content: Any, question: Any = QUESTION) -> list[Json]:
    """The messages that the server receives after two older ones, for a message with this content."""
    before: list[Json] = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]
    user_message = {"id": "m-1", "role": "user", "content": question}
    messages = await sent_messages(server, [*before, {"role": "user", "content": content}], user_message=user_message)
    assert messages[:2] == before
    return messages[2:]


async def test_context_before_the_question_becomes_a_system_message(server: FrameServer) -> None:
    system: Json = {"role": "system", "content": CONTEXT}
    assert await sent_question(server, f"{CONTEXT}\n{QUESTION}") == [system, {"role": "user", "content": QUESTION}]
    assert await sent_question(server, f"{CONTEXT}\n\n{QUESTION}\n", f"{QUESTION}\n") == [
        system,
        {"role": "user", "content": f"{QUESTION}\n"},
    ]


async def test_template_around_the_question_becomes_a_system_message(server: FrameServer) -> None:
    template = f"<user_query>{QUESTION}</user_query>\n{CONTEXT}"
    assert await sent_question(server, template) == [
        {"role": "system", "content": template},
        {"role": "user", "content": QUESTION},
    ]


async def test_images_stay_with_the_question(server: FrameServer) -> None:
    content = [{"type": "text", "text": f"{CONTEXT}\n{QUESTION}"}, IMAGE]
    system, question = await sent_question(server, content)
    assert system == {"role": "system", "content": CONTEXT}
    assert question["content"] == [{"type": "text", "text": QUESTION}, IMAGE]


@pytest.mark.parametrize("original", [QUESTION, "", None, "Something else", [{"type": "text", "text": QUESTION}]])
async def test_question_without_context_is_unchanged(server: FrameServer, original: Any) -> None:
    assert await sent_question(server, QUESTION, original) == [{"role": "user", "content": QUESTION}]
