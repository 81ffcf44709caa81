"""Open WebUI's own chores (titles, tags, …): answered at once, in the form it wants, without a run."""

import json

import pytest

from tests.openwebui.chat import Chat, Seen
from tests.openwebui.frame_server import Stage
from tests.openwebui.function_rules import Json

pytestmark = pytest.mark.asyncio(loop_scope="module")

LONG = "How  do bees\nfind their way home over many kilometres when it is dark and rains?"
PROMPT: Json = {"role": "user", "content": "### Task: Generate a concise title for the chat history"}


async def asked(stage: Stage, task: str, *messages: Json) -> str:
    """A task as Open WebUI calls it: its own prompt as the message, the chat in the task's body, nobody to tell."""
    body = {"messages": list(messages)} if messages else None
    metadata = {"chat_id": "chat-1", "session_id": "socket-1", "task": task, "task_body": body}
    reply = await Chat(stage.url).call([PROMPT], Seen(), stream=False, metadata=metadata)
    assert isinstance(reply, str)
    assert stage.asked == []
    return reply


async def test_a_title_is_the_first_question_of_the_chat(stage: Stage) -> None:
    reply = await asked(
        stage, "title_generation", {"role": "system", "content": "x"}, {"role": "user", "content": LONG}
    )
    assert json.loads(reply) == {"title": "How do bees find their way home over many kilometres when it"}
    assert len(json.loads(reply)["title"]) == 60


async def test_a_title_comes_from_the_text_beside_an_image_too(stage: Stage) -> None:
    parts = [
        {"type": "image_url", "image_url": {"url": "data:x"}},
        {"type": "text", "text": "Was ist das für ein Käfer?"},
    ]
    reply = await asked(stage, "title_generation", {"role": "user", "content": parts})
    assert json.loads(reply) == {"title": "Was ist das für ein Käfer?"}


async def test_a_chat_without_words_has_a_title(stage: Stage) -> None:
    assert json.loads(await asked(stage, "title_generation", {"role": "user", "content": ""})) == {"title": "New chat"}


@pytest.mark.parametrize(
    ("task", "key"),
    [("tags_generation", "tags"), ("follow_up_generation", "follow_ups"), ("query_generation", "queries")],
)
async def test_lists_are_empty(stage: Stage, task: str, key: str) -> None:
    assert json.loads(await asked(stage, task, {"role": "user", "content": "x"})) == {key: []}


@pytest.mark.parametrize("task", ["emoji_generation", "autocomplete_generation", "something_new"])
async def test_other_chores_get_nothing(stage: Stage, task: str) -> None:
    assert await asked(stage, task, {"role": "user", "content": "x"}) == ""


async def test_answers_are_not_merged_and_it_says_so(stage: Stage) -> None:
    reply = await asked(stage, "moa_response_generation", {"role": "user", "content": "x"})
    assert reply.startswith("The Deep Agent Pipe cannot merge answers: take one of them")


async def test_a_round_with_a_result_of_open_webuis_own_starts_no_run(stage: Stage) -> None:
    """Open WebUI calls again with what it made of a call; answering would make it go round for ever."""
    messages: list[Json] = [{"role": "user", "content": "x"}, {"role": "tool", "tool_call_id": "c", "content": "y"}]
    assert await Chat(stage.url).call(messages, Seen()) == ""
    assert stage.asked == []
