"""For whom the pipe speaks: the user of Open WebUI, and one session for each of their chats."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.openwebui.chat import Chat
from tests.openwebui.frame_server import Stage
from tests.support import agents
from tests.support.server import serving

pytestmark = pytest.mark.asyncio(loop_scope="module")

SESSION_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
DONE = b'id: 1\ndata: {"type":"done"}\n\n'


async def test_with_a_key_every_request_names_the_user(stage: Stage) -> None:
    stage.play(DONE)
    await Chat(stage.url, API_KEY="sesame", user={"id": "ü/1", "name": "Änn & Co\r\nX: y"}).say("hi")
    assert stage.asked
    for asked in stage.asked:
        assert asked.headers["authorization"] == "Bearer sesame"
        assert asked.headers["x-limelight-user-id"] == "%C3%BC%2F1"
        assert asked.headers["x-limelight-user-name"] == "%C3%84nn%20%26%20Co%0D%0AX%3A%20y"


async def test_without_a_key_nobody_is_named(stage: Stage) -> None:
    stage.play(DONE)
    await Chat(stage.url).say("hi")
    names = {name for asked in stage.asked for name in asked.headers}
    assert not [name for name in names if name.startswith("x-limelight") or name == "authorization"]


async def test_the_agent_knows_who_asks(tmp_path: Path) -> None:
    async with serving(agents.echo, data=tmp_path, auth__api_key="sesame") as served:
        assert (await Chat(served.url, API_KEY="sesame").say("hi")).text.startswith("user:hi for u-1/Änn & Co in ")


async def test_a_chat_of_a_user_is_a_session(stage: Stage) -> None:
    stage.play(DONE)
    await Chat(stage.url).say("hi")
    await Chat(stage.url, user={"id": "ü/2"}).say("hi")
    first, second = (asked.body["chat_id"] for asked in stage.streams)
    assert first == "u-1.chat-1"
    assert SESSION_ID.fullmatch(second) and "chat-1" not in second


async def sessions(stage: Stage, *chats: tuple[str, str]) -> list[str]:
    """The sessions of a user's id and a chat's id each."""
    stage.play(DONE)
    for user_id, chat_id in chats:
        chat = Chat(stage.url, user={"id": user_id})
        chat.metadata["chat_id"] = chat_id
        assert (await chat.say("hi")).end == ("Complete", True)
    return [asked.body["chat_id"] for asked in stage.streams]


async def test_ids_that_look_alike_are_not_the_same_session(stage: Stage) -> None:
    long = "c" * 200
    chats = [("ü/2", "c"), ("ö/2", "c"), ("u", f"{long}1"), ("u", f"{long}2"), ("a.b", "c"), ("a", "b.c"), ("u", "ä b")]
    found = await sessions(stage, *chats)
    assert len(set(found)) == len(chats)
    assert all(SESSION_ID.fullmatch(session) for session in found)
    stage.clear()
    assert await sessions(stage, *chats) == found, "a chat stays the same session"


async def test_chats_that_open_webui_does_not_keep_are_sessions_too(stage: Stage) -> None:
    found = await sessions(stage, ("u", "local:Ab-1_x"), ("u", "temporary:7f"))
    assert found == ["u.local:Ab-1_x", "u.temporary:7f"]


async def test_in_a_channel_each_mention_is_a_session(stage: Stage) -> None:
    """All of them have the channel's id: in one session the second would stop the first."""
    stage.play(DONE)
    for message_id in ("m-1", "m-2"):
        chat = Chat(stage.url)
        chat.metadata = {"session_id": "s", "chat_id": "channel:7", "message_id": message_id}
        await chat.say("hi")
    assert [asked.body["chat_id"] for asked in stage.streams] == ["u-1.channel:7.m-1", "u-1.channel:7.m-2"]


async def test_an_agent_called_default_is_not_taken_for_the_default_one(tmp_path: Path) -> None:
    async def default(messages: object, ctx: object) -> AsyncIterator[str]:
        yield "My name is default."

    async with serving(agents.talker, default, data=tmp_path) as served:
        chat = Chat(served.url)
        models = {model["name"]: model["id"] for model in await chat.webui.models()}
        assert list(models) == ["Deep Agent Pipe", "Deep Agent Pipe · default"]
        assert (await chat.say("hi")).text == "".join(agents.WORDS)
        chat.model = models["Deep Agent Pipe · default"]
        assert (await chat.say("hi")).text == "My name is default."


async def test_each_question_has_an_id_of_its_own(stage: Stage) -> None:
    """Asking again makes a new answer; only a repeated request gets the same one."""
    stage.play(DONE)
    chat = Chat(stage.url)
    await chat.say("hi")
    await chat.say("hi")
    first, second = (asked.body["request_id"] for asked in stage.streams)
    assert first != second
    assert first.startswith("m-1.") and second.startswith("m-1.")
