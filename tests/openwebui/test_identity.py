"""For whom the pipe speaks: the user of Open WebUI, and one session for each of their chats."""

from pathlib import Path

import pytest

from tests import agents
from tests.openwebui.chat import Chat
from tests.openwebui.stage import Stage
from tests.serving import serving

pytestmark = pytest.mark.asyncio(loop_scope="module")

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
    assert [asked.body["chat_id"] for asked in stage.streams] == ["u-1.chat-1", "--2.chat-1"]


async def test_each_question_has_an_id_of_its_own(stage: Stage) -> None:
    """Asking again makes a new answer; only a repeated request gets the same one."""
    stage.play(DONE)
    chat = Chat(stage.url)
    await chat.say("hi")
    await chat.say("hi")
    first, second = (asked.body["request_id"] for asked in stage.streams)
    assert first != second
    assert first.startswith("m-1.") and second.startswith("m-1.")
