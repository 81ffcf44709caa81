"""Chats with files or knowledge: Open WebUI writes passages around the question, and only for this turn."""

from typing import Any

import pytest

from tests.openwebui.chat import Chat, Seen
from tests.openwebui.frame_server import Stage
from tests.openwebui.function_rules import Json

pytestmark = pytest.mark.asyncio(loop_scope="module")

QUESTION = "What does the contract say?"
CONTEXT = '### Task: answer with citations [id].\n<context>\n<source id="1">42 pages</source>\n</context>'
IMAGE: Json = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


async def asked(stage: Stage, content: Any, question: Any = QUESTION) -> list[Json]:
    stage.play(b'id: 1\ndata: {"type":"done"}\n\n')
    chat = Chat(stage.url)
    chat.metadata["user_message"] = {"id": "m-1", "role": "user", "content": question}
    before: list[Json] = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]
    reply = await chat.call([*before, {"role": "user", "content": content}], seen := Seen())
    assert not isinstance(reply, str)
    await seen.take(reply)
    messages: list[Json] = stage.streams[-1].body["messages"]
    assert messages[:2] == before
    return messages[2:]


async def test_the_question_is_sent_as_it_was_asked(stage: Stage) -> None:
    plain: list[Json] = [{"role": "system", "content": CONTEXT}, {"role": "user", "content": QUESTION}]
    assert await asked(stage, f"{CONTEXT}\n{QUESTION}") == plain
    assert await asked(stage, f"{CONTEXT}\n\n{QUESTION}\n", f"{QUESTION}\n") == [
        plain[0],
        {**plain[1], "content": f"{QUESTION}\n"},
    ]


async def test_a_template_around_the_question_stays_whole(stage: Stage) -> None:
    template = f"<user_query>{QUESTION}</user_query>\n{CONTEXT}"
    assert await asked(stage, template) == [
        {"role": "system", "content": template},
        {"role": "user", "content": QUESTION},
    ]


async def test_images_stay_with_the_question(stage: Stage) -> None:
    content = [{"type": "text", "text": f"{CONTEXT}\n{QUESTION}"}, IMAGE]
    system, question = await asked(stage, content)
    assert system == {"role": "system", "content": CONTEXT}
    assert question["content"] == [{"type": "text", "text": QUESTION}, IMAGE]


@pytest.mark.parametrize("known", [QUESTION, "", None, "Something else", [{"type": "text", "text": QUESTION}]])
async def test_a_question_without_anything_around_it_stays_as_it_is(stage: Stage, known: Any) -> None:
    assert await asked(stage, QUESTION, known) == [{"role": "user", "content": QUESTION}]
