"""The key of the server: people in a chat never see it, whatever is wrong with it."""

import json

import pytest

from tests.openwebui.chat import Chat, Seen
from tests.openwebui.frame_server import Stage
from tests.openwebui.function_rules import Json, pipe_module

pytestmark = pytest.mark.asyncio(loop_scope="module")

DEFAULT = [{"id": "deep_agent_pipe.default", "name": "Deep Agent Pipe"}]
DONE = b'id: 1\ndata: {"type":"done"}\n\n'
QUESTION: list[Json] = [{"role": "user", "content": "hi"}]


async def test_a_pasted_line_break_is_no_part_of_the_key(stage: Stage) -> None:
    stage.play(DONE)
    assert (await Chat(stage.url, API_KEY="sesame\n").say("hi")).end == ("Complete", True)
    assert stage.streams[0].headers["authorization"] == "Bearer sesame"


@pytest.mark.parametrize("key", ["ses\name", "sesäme", "“sesame”", "ses\x00ame"])
async def test_a_key_that_cannot_be_sent_is_advice_without_the_key(stage: Stage, key: str) -> None:
    chat = Chat(stage.url, API_KEY=key)
    seen = await chat.say("hi")
    assert "valve API_KEY" in seen.errors[0]
    assert seen.end[0].startswith("Failed: ") and seen.end[1]
    for said in (repr(seen.chunks), json.dumps([seen.chunks, seen.events], ensure_ascii=False)):
        assert "ses" not in said and repr(key)[1:-1] not in said
    reply = await chat.call(QUESTION, Seen(), stream=False, metadata={})
    assert isinstance(reply, str)
    assert "valve API_KEY" in reply and "ses" not in reply
    assert await chat.webui.models() == DEFAULT
    assert stage.asked == []


async def test_what_a_library_says_of_a_header_is_not_shown(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its words hold the whole header."""

    def unchecked(*_: object) -> dict[str, str]:
        return {"Authorization": "Bearer ses\name"}

    monkeypatch.setattr(pipe_module(), "request_headers", unchecked)
    chat = Chat(stage.url)
    seen = await chat.say("hi")
    assert "valve" in seen.errors[0]
    assert "ses" not in repr([seen.chunks, seen.events])
    assert await chat.webui.models() == DEFAULT
