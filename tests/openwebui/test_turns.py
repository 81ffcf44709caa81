"""Two calls in one chat: two models that answer the same question wait for each other, a new question goes first."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path

import pytest

from limelight.sources.base import Context
from tests.openwebui.chat import Chat
from tests.openwebui.function_rules import pipe_module
from tests.support import agents
from tests.support.server import Served, collect, serving
from tests.support.wait import eventually

gate = asyncio.Event()


async def slow(messages: object, ctx: Context) -> AsyncIterator[str]:
    """Begins, and waits for the gate."""
    yield "Slow "
    await gate.wait()
    yield "and sure."


@pytest.fixture
async def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Served]:
    global gate
    gate = asyncio.Event()
    monkeypatch.setattr(pipe_module(), "RETRY_DELAY", 0.01)
    async with serving(slow, agents.talker, data=tmp_path) as live:
        yield live


def asking(served: Served, model: str, question: str) -> Chat:
    chat = Chat(served.url, model=model)
    chat.metadata["user_message_id"] = question
    return chat


async def test_two_models_answer_one_question_one_after_the_other(served: Served) -> None:
    first, first_task = asking(served, "default", "q1").start("go")
    await eventually(lambda: first.text == "Slow ")
    second, second_task = asking(served, "talker", "q1").start("go")
    await eventually(lambda: "Waiting for the answer of the other model..." in second.statuses)
    assert second.text == ""
    gate.set()
    await asyncio.wait_for(asyncio.gather(first_task, second_task), 30)
    assert (first.text, first.end) == ("Slow and sure.", ("Complete", True))
    assert (second.text, second.end) == ("".join(agents.WORDS), ("Complete", True))


async def test_one_model_twice_answers_one_question_one_after_the_other(served: Served) -> None:
    first, first_task = asking(served, "default", "q1").start("go")
    await eventually(lambda: first.text == "Slow ")
    second, second_task = asking(served, "default", "q1").start("go")
    await eventually(lambda: "Waiting for the answer of the other model..." in second.statuses)
    gate.set()
    await asyncio.wait_for(asyncio.gather(first_task, second_task), 30)
    assert (first.text, second.text) == ("Slow and sure.", "Slow and sure.")


@pytest.mark.parametrize("model", ["default", "slow"])
async def test_a_question_asked_again_does_not_wait_for_a_run_that_was_left_behind(served: Served, model: str) -> None:
    """When Open WebUI is killed, its run goes on, and nobody looks at it any more."""
    left = served.ask("go", chat_id="u-1.chat-1", request_id="q1.before")
    behind = await collect(left, until=lambda frame: frame.type == "token")
    run_id = (await served.http.get("/sessions/u-1.chat-1")).json()["run_id"]
    seen, task = asking(served, model, "q1").start("go")
    await eventually(lambda: seen.text == "Slow ")
    assert behind and (await served.http.get(f"/runs/{run_id}")).json()["state"] == "cancelled"
    gate.set()
    await asyncio.wait_for(task, 30)
    assert (seen.text, seen.end) == ("Slow and sure.", ("Complete", True))
    assert not any("other model" in line for line in seen.statuses)


async def test_another_question_stops_what_the_chat_has_left_behind(served: Served) -> None:
    first, first_task = asking(served, "default", "q1").start("go")
    await eventually(lambda: first.text == "Slow ")
    second = await asyncio.wait_for(asking(served, "talker", "q2").say("go on"), 30)
    assert (second.text, second.end) == ("".join(agents.WORDS), ("Complete", True))
    await asyncio.wait_for(first_task, 30)
    assert (first.text, first.end, first.errors) == ("Slow ", ("Stopped", True), [])


async def test_chats_do_not_wait_for_each_other(served: Served) -> None:
    first, first_task = asking(served, "default", "q1").start("go")
    await eventually(lambda: first.text == "Slow ")
    other = asking(served, "talker", "q2")
    other.metadata["chat_id"] = "chat-2"
    assert (await asyncio.wait_for(other.say("go"), 30)).text == "".join(agents.WORDS)
    gate.set()
    await asyncio.wait_for(first_task, 30)
    assert first.text == "Slow and sure."
