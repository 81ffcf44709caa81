"""Open WebUI's own tasks (titles, tags, …): answered in the expected form, without a run."""

import json

import pytest

from tests.openwebui.chat import Chat, Output
from tests.openwebui.frame_server import FrameServer
from tests.openwebui.function_rules import Json

pytestmark = pytest.mark.asyncio(loop_scope="module")

LONG = "How  do bees\nfind their way home over many kilometres when it is dark and rains?"
PROMPT: Json = {"role": "user", "content": "### Task: Generate a concise title for the chat history"}


async def task_reply(server: FrameServer, task: str, *messages: Json) -> str:
    """The reply to a task. Open WebUI sends its prompt as the message and the chat in the body of the task."""
    body = {"messages": list(messages)} if messages else None
    metadata = {"chat_id": "chat-1", "session_id": "socket-1", "task": task, "task_body": body}
    reply = await Chat(server.url).call([PROMPT], Output(), stream=False, metadata=metadata)
    assert isinstance(reply, str)
    assert server.requests == []
    return reply


async def test_title_is_the_beginning_of_the_first_question(server: FrameServer) -> None:
    reply = await task_reply(
        server, "title_generation", {"role": "system", "content": "x"}, {"role": "user", "content": LONG}
    )
    assert json.loads(reply) == {"title": "How do bees find their way home over many kilometres when it"}
    assert len(json.loads(reply)["title"]) == 60


async def test_title_of_a_question_with_an_image_is_its_text(server: FrameServer) -> None:
    parts = [
        {"type": "image_url", "image_url": {"url": "data:x"}},
        {"type": "text", "text": "Was ist das für ein Käfer?"},
    ]
    reply = await task_reply(server, "title_generation", {"role": "user", "content": parts})
    assert json.loads(reply) == {"title": "Was ist das für ein Käfer?"}


async def test_title_of_an_empty_question_is_new_chat(server: FrameServer) -> None:
    assert json.loads(await task_reply(server, "title_generation", {"role": "user", "content": ""})) == {
        "title": "New chat"
    }


@pytest.mark.parametrize(
    ("task", "key"),
    [("tags_generation", "tags"), ("follow_up_generation", "follow_ups"), ("query_generation", "queries")],
)
async def test_tags_follow_ups_and_queries_are_empty_lists(server: FrameServer, task: str, key: str) -> None:
    assert json.loads(await task_reply(server, task, {"role": "user", "content": "x"})) == {key: []}


@pytest.mark.parametrize("task", ["emoji_generation", "autocomplete_generation", "something_new"])
async def test_other_task_has_an_empty_reply(server: FrameServer, task: str) -> None:
    assert await task_reply(server, task, {"role": "user", "content": "x"}) == ""


async def test_merge_of_answers_is_refused(server: FrameServer) -> None:
    reply = await task_reply(server, "moa_response_generation", {"role": "user", "content": "x"})
    assert reply.startswith("The Deep Agent Pipe cannot merge answers: take one of them")


async def test_call_with_a_tool_result_of_open_webui_starts_no_run(server: FrameServer) -> None:
    """Open WebUI calls the pipe with the result of a call that it has executed; an answer would make it loop."""
    messages: list[Json] = [{"role": "user", "content": "x"}, {"role": "tool", "tool_call_id": "c", "content": "y"}]
    assert await Chat(server.url).call(messages, Output()) == ""
    assert server.requests == []
