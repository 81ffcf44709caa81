"""Two calls in one chat: models that answer one question wait for each other; a new question cancels the old run."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path

import httpx
import pytest

from limelight.models import SessionRef
from limelight.sources.base import Context
from tests.openwebui.chat import Chat
from tests.openwebui.function_rules import pipe_module
from tests.support import agents
from tests.support.server import Served, collect, serving
from tests.support.wait import DEADLINE, eventually

gate = asyncio.Event()


async def slow(messages: object, ctx: Context) -> AsyncIterator[str]:
    """Sends one text, then waits for the gate."""
    yield "Slow "
    await gate.wait()
    yield "and sure."


@pytest.fixture
async def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Served]:
    global gate
    gate = asyncio.Event()
    monkeypatch.setattr(pipe_module(), "RETRY_DELAY", 0.01)
    async with serving(slow, agents.talker, data=tmp_path) as served:
        yield served


def chat_with_question(served: Served, model: str, question: str) -> Chat:
    chat = Chat(served.url, model=model)
    chat.metadata["user_message_id"] = question
    return chat


async def test_two_models_answer_one_question_in_sequence(served: Served) -> None:
    first, first_task = chat_with_question(served, "default", "q1").start("go")
    await eventually(lambda: first.text == "Slow ")
    second, second_task = chat_with_question(served, "talker", "q1").start("go")
    await eventually(lambda: "Waiting for the answer of the other model..." in second.statuses)
    assert second.text == ""
    gate.set()
    await asyncio.wait_for(asyncio.gather(first_task, second_task), DEADLINE)
    assert (first.text, first.final_status) == ("Slow and sure.", ("Complete", True))
    assert (second.text, second.final_status) == ("".join(agents.WORDS), ("Complete", True))


class HeldResponse:
    """Holds the response to the request that waits for the session, until `release` is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.arrived, self.release = asyncio.Event(), asyncio.Event()
        real = httpx.AsyncHTTPTransport.handle_async_request

        async def hold(transport: httpx.AsyncHTTPTransport, request: httpx.Request) -> httpx.Response:
            response = await real(transport, request)
            if request.url.path == "/chat/stream" and b'"if_busy": "wait"' in request.content:
                self.arrived.set()
                await self.release.wait()
            return response

        monkeypatch.setattr(httpx.AsyncHTTPTransport, "handle_async_request", hold)


async def test_stop_before_the_id_of_a_queued_run_is_known_cancels_it(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipe_module(), "CANCEL_RETRY_DELAY", 0.01)
    held = HeldResponse(monkeypatch)
    first, first_task = chat_with_question(served, "default", "q1").start("go")
    await eventually(lambda: first.text == "Slow ")
    second, second_task = chat_with_question(served, "talker", "q1").start("go")
    await held.arrived.wait()
    second_task.cancel()
    await eventually(lambda: pipe_module().CANCEL_TASKS)
    held.release.set()
    with pytest.raises(asyncio.CancelledError):
        await second_task
    assert second.final_status == ("Stopped", True)
    assert len(served.runtime.queues) == 0
    gate.set()
    await asyncio.wait_for(first_task, DEADLINE)
    assert first.text == "Slow and sure."
    assert [run.agent for run in await served.runtime.store.runs(SessionRef("local", "u-1.chat-1"))] == ["slow"]


async def test_stop_of_a_queued_run_whose_id_stays_unknown_says_that_it_may_continue(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipe_module(), "CANCEL_SECONDS", 0.2)
    held = HeldResponse(monkeypatch)
    first, first_task = chat_with_question(served, "default", "q1").start("go")
    await eventually(lambda: first.text == "Slow ")
    second, second_task = chat_with_question(served, "talker", "q1").start("go")
    await held.arrived.wait()
    second_task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second_task
    assert second.final_status == ("Stopped here; the server was not reached, so the agent may continue", True)
    gate.set()
    await asyncio.wait_for(first_task, DEADLINE)


async def test_one_model_selected_twice_answers_one_question_in_sequence(served: Served) -> None:
    first, first_task = chat_with_question(served, "default", "q1").start("go")
    await eventually(lambda: first.text == "Slow ")
    second, second_task = chat_with_question(served, "default", "q1").start("go")
    await eventually(lambda: "Waiting for the answer of the other model..." in second.statuses)
    gate.set()
    await asyncio.wait_for(asyncio.gather(first_task, second_task), DEADLINE)
    assert (first.text, second.text) == ("Slow and sure.", "Slow and sure.")


@pytest.mark.parametrize("model", ["default", "slow"])
async def test_repeated_question_cancels_a_run_that_is_not_followed(served: Served, model: str) -> None:
    """Such a run remains when Open WebUI is killed."""
    stream = served.ask("go", chat_id="u-1.chat-1", request_id="q1.before")
    frames = await collect(stream, until=lambda frame: frame.type == "token")
    run_id = (await served.http.get("/sessions/u-1.chat-1")).json()["run_id"]
    output, task = chat_with_question(served, model, "q1").start("go")
    await eventually(lambda: output.text == "Slow ")
    assert frames and (await served.http.get(f"/runs/{run_id}")).json()["state"] == "cancelled"
    gate.set()
    await asyncio.wait_for(task, DEADLINE)
    assert (output.text, output.final_status) == ("Slow and sure.", ("Complete", True))
    assert not any("other model" in text for text in output.statuses)


async def test_new_question_cancels_the_run_of_the_old_one(served: Served) -> None:
    first, first_task = chat_with_question(served, "default", "q1").start("go")
    await eventually(lambda: first.text == "Slow ")
    second = await asyncio.wait_for(chat_with_question(served, "talker", "q2").send("go on"), DEADLINE)
    assert (second.text, second.final_status) == ("".join(agents.WORDS), ("Complete", True))
    await asyncio.wait_for(first_task, DEADLINE)
    assert (first.text, first.final_status, first.errors) == ("Slow ", ("Stopped", True), [])


async def test_chats_do_not_wait_for_each_other(served: Served) -> None:
    first, first_task = chat_with_question(served, "default", "q1").start("go")
    await eventually(lambda: first.text == "Slow ")
    other = chat_with_question(served, "talker", "q2")
    other.metadata["chat_id"] = "chat-2"
    assert (await asyncio.wait_for(other.send("go"), DEADLINE)).text == "".join(agents.WORDS)
    gate.set()
    await asyncio.wait_for(first_task, DEADLINE)
    assert first.text == "Slow and sure."
