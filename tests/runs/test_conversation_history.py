"""The earlier turns that an agent without a memory gets: those of the session, as a chat client would send them."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from limelight.events import FinalAnswer, RunStarted, ToolFinished, ToolStarted
from limelight.messages import Message
from limelight.runs import conversation_history
from limelight.runs.conversation_history import chat_from_log
from limelight.sources.base import Context
from limelight.stores.memory import MemoryStore
from tests.server.v2.socket_client import socket
from tests.stores.operations import begin
from tests.support.server import Served, collect, offer, serving

Json = dict[str, Any]
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGVsbG8="}}
PAPER = {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,aGVsbG8="}}
REMOTE = {"type": "image_url", "image_url": {"url": "https://example.org/bee.png"}}


class Recorder:
    """An agent that records the messages of its turns, and answers as the question says."""

    def __init__(self) -> None:
        self.turns: list[list[Json]] = []
        self.speaking = asyncio.Event()

    async def __call__(self, messages: list[Message], ctx: Context) -> AsyncGenerator[object]:
        self.turns.append([dict(message) for message in messages])
        question = messages[-1].text
        if question == "say nothing":
            return
        yield "Let me see. "
        if question == "look":
            yield ToolStarted(call_id="c", name="look", args={})
            yield ToolFinished(call_id="c", result="a bee")
        if question == "value":
            yield FinalAnswer(content={"bees": 3})
        elif question == "fail":
            raise RuntimeError("broken")
        elif question == "hang":
            self.speaking.set()
            await asyncio.Event().wait()
        else:
            yield f"This is about {question}."


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
async def recording(recorder: Recorder, tmp_path: Path) -> AsyncGenerator[Served]:
    async with serve(recorder, tmp_path) as served:
        yield served


def serve(recorder: Recorder, folder: Path, **settings: Any) -> AbstractAsyncContextManager[Served]:
    return serving(agents=[offer(recorder, "recorder")], data=folder, **settings)


def user(content: Any) -> Json:
    return {"role": "user", "content": content}


def assistant(content: str) -> Json:
    return {"role": "assistant", "content": content}


async def ask(served: Served, *messages: Json, **body: Any) -> Json:
    """Send messages and return the agent's message."""
    response = await served.http.post("/chat", json={"messages": [*messages], **({"session_id": "s"} | body)})
    assert response.status_code == 200, response.text
    return response.json()["message"]


CONVERSATIONS: dict[str, list[Any]] = {
    "text": ["bees", "tides", "rivers"],
    "tools": ["look", "bees"],
    "value": ["value", "bees"],
    "unicode": ["Grüße 👩‍👩‍👧", "x" * 50_000, "bees"],
    "files": [[{"type": "text", "text": "see"}, PICTURE, PAPER], [{"type": "text", "text": "and"}, REMOTE], "bees"],
}


@pytest.mark.requirement("function-history")
@pytest.mark.parametrize("name", CONVERSATIONS)
async def test_newest_message_alone_gives_the_messages_that_a_stateless_client_sends(
    name: str, recorder: Recorder, recording: Served
) -> None:
    sent: list[Json] = []
    for content in CONVERSATIONS[name]:
        sent.append(user(content))
        sent.append(await ask(recording, *sent, session_id=None))
    stateless, recorder.turns = recorder.turns, []
    for content in CONVERSATIONS[name]:
        await ask(recording, user(content))
    assert recorder.turns == stateless
    assert recorder.turns[-1] == sent[:-1]


@pytest.mark.requirement("function-history")
async def test_socket_gives_the_earlier_turns(recorder: Recorder, recording: Served) -> None:
    async with socket(recording, "s") as connection:
        await connection.ask("bees")
        await connection.ask("tides")
    assert recorder.turns[-1] == [user("bees"), assistant("Let me see. This is about bees."), user("tides")]


async def test_system_messages_are_those_of_the_request_and_come_first(recorder: Recorder, recording: Served) -> None:
    await ask(recording, {"role": "system", "content": "old"}, user("bees"))
    system = {"role": "system", "content": "new"}
    await ask(recording, system, user("tides"))
    earlier = [user("bees"), assistant("Let me see. This is about bees.")]
    assert recorder.turns[-1] == [system, *earlier, user("tides")]


@pytest.mark.requirement("function-history")
async def test_history_of_a_client_is_passed_on_unchanged_and_continued(recorder: Recorder, recording: Served) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    sent = [
        user("one"),
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "a bee"},
        assistant("A bee."),
        user("two"),
    ]
    await ask(recording, user("other"))
    answer = await ask(recording, *sent)
    assert recorder.turns[-1] == sent
    await ask(recording, user("three"))
    assert recorder.turns[-1] == [*sent, answer, user("three")]


async def test_chat_client_with_one_message_starts_afresh(recorder: Recorder, recording: Served) -> None:
    await ask(recording, user("bees"), session_id=None, chat_id="c")
    await ask(recording, user("tides"), session_id=None, chat_id="c")
    assert recorder.turns[-1] == [user("tides")]


@pytest.mark.parametrize(("question", "said"), [("fail", [assistant("Let me see. ")]), ("say nothing", [])])
async def test_turn_without_an_answer_has_the_text_that_was_written(
    question: str, said: list[Json], recorder: Recorder, recording: Served
) -> None:
    await recording.http.post("/chat", json={"messages": [user(question)], "session_id": "s"})
    await ask(recording, user("bees"))
    assert recorder.turns[-1] == [user(question), *said, user("bees")]


async def stop(served: Served, run_id: str) -> None:
    (await served.http.post(f"/runs/{run_id}/cancel", json={})).raise_for_status()


async def hang(served: Served, recorder: Recorder, end: Callable[[str], Awaitable[None]]) -> None:
    """Begin a run that hangs after its first text, and end it."""
    reading = asyncio.create_task(collect(served.ask("hang", format="records", session_id="s")))
    await recorder.speaking.wait()
    session = (await served.http.get("/sessions/s")).json()
    await end(session["run_id"])
    await asyncio.wait([reading])


@pytest.mark.requirement("function-history")
async def test_stopped_turn_has_the_text_that_was_written(recorder: Recorder, recording: Served) -> None:
    await hang(recording, recorder, lambda run_id: stop(recording, run_id))
    await ask(recording, user("bees"))
    assert recorder.turns[-1] == [user("hang"), assistant("Let me see. "), user("bees")]


@pytest.mark.requirement("function-history")
async def test_interrupted_turn_has_the_text_that_was_written_after_a_restart(
    recorder: Recorder, tmp_path: Path
) -> None:
    async with serve(recorder, tmp_path, server__grace_seconds=0) as served:
        reading = asyncio.create_task(collect(served.ask("hang", format="records", session_id="s")))
        await recorder.speaking.wait()
        await ask(served, user("bees"), session_id="other")  # the text is committed before this answer
    await asyncio.wait([reading])
    async with serve(recorder, tmp_path) as served:
        await ask(served, user("bees"))
    assert recorder.turns[-1] == [user("hang"), assistant("Let me see. "), user("bees")]


# The limits


async def log(store: MemoryStore, *questions: str) -> list[str]:
    """Write a run for each question, with the answer "A.", and return their ids."""
    run_ids: list[str] = []
    for number, question in enumerate(questions):
        run = await begin(store, f"r{number}")
        await run.write(RunStarted(agent="a", input=question), FinalAnswer(content="A."))
        await run.end()
        run_ids.append(f"r{number}")
    return run_ids


@pytest.fixture
async def store() -> AsyncGenerator[MemoryStore]:
    store = MemoryStore()
    await store.open()
    yield store
    await store.close()


async def questions(store: MemoryStore, run_ids: list[str]) -> list[str]:
    return [message.text for message in await chat_from_log(store, run_ids) if message.role == "user"]


async def test_only_the_newest_turns_of_a_long_session_are_returned(store: MemoryStore) -> None:
    run_ids = await log(store, *(str(number) for number in range(conversation_history.CHAT_TURNS + 3)))
    assert await questions(store, run_ids) == [str(number) for number in range(3, len(run_ids))]


async def test_only_the_newest_text_is_returned_and_at_least_one_turn(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_ids = await log(store, "first", "second", "third")
    monkeypatch.setattr(conversation_history, "CHAT_CHARACTERS", len("secondA.thirdA."))
    assert await questions(store, run_ids) == ["second", "third"]
    monkeypatch.setattr(conversation_history, "CHAT_CHARACTERS", 1)
    assert await questions(store, run_ids) == ["third"]


async def test_deleted_runs_are_left_out(store: MemoryStore) -> None:
    run_ids = await log(store, "first", "second")
    assert await questions(store, [run_ids[0], "", "deleted", run_ids[1]]) == ["first", "second"]


async def test_oldest_files_beyond_the_limit_are_left_out(
    recorder: Recorder, recording: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation_history, "CHAT_FILE_BYTES", len(b"hello") + 1)
    for text in ("first", "second"):
        await ask(recording, user([{"type": "text", "text": text}, PICTURE]))
    await ask(recording, user("bees"))
    first, _, second, *_ = recorder.turns[-1]
    assert (first, second) == (user("first"), user([{"type": "text", "text": "second"}, PICTURE]))
