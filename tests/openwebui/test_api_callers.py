"""Who is not in front of a chat: callers of Open WebUI's API get text, with or without a stream."""

import asyncio
from pathlib import Path

import pytest

from tests.openwebui.chat import Chat, Seen
from tests.openwebui.frame_server import playing
from tests.openwebui.function_rules import pipe_module
from tests.support import agents
from tests.support.server import Served, serving
from tests.support.wait import eventually
from tests.system.processes.server_process import free_port

QUESTION = [{"role": "user", "content": "go"}]


async def whole(url: str, model: str) -> str:
    reply = await Chat(url, model=model).call(QUESTION, Seen(), stream=False, metadata={})
    assert isinstance(reply, str)
    return reply


async def streamed(url: str, model: str) -> Seen:
    seen = Seen()
    reply = await Chat(url, model=model).call(QUESTION, seen, metadata={})
    assert not isinstance(reply, str)
    await seen.take(reply)
    assert seen.events == []
    return seen


async def test_without_a_stream_the_answer_is_a_text(served: Served) -> None:
    assert await whole(served.url, "default") == "".join(agents.WORDS)
    assert await whole(served.url, "worker") == "I begin. \n\nDone."


async def test_without_a_stream_a_failure_is_a_text_too(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    crashed = await whole(served.url, "crasher")
    assert crashed.startswith("So far so good\n\nError: ") and "the wheel came off" in crashed
    monkeypatch.setattr(pipe_module(), "CONNECT_SECONDS", 0)
    down = await whole(f"http://127.0.0.1:{free_port()}", "default")
    assert down.startswith("Error: The Limelight server at http://127.0.0.1:")


async def test_a_stream_without_a_chat_is_plain_text(served: Served) -> None:
    seen = await streamed(served.url, "worker")
    assert seen.text == "I begin. \n\nDone."
    assert [chunk for chunk in seen.chunks if not isinstance(chunk, str)] == []


async def test_a_stream_without_a_chat_says_that_it_failed(served: Served) -> None:
    seen = await streamed(served.url, "crasher")
    assert seen.text == "So far so good"
    assert "the wheel came off" in seen.errors[0]


@pytest.mark.parametrize("stream", [True, False])
async def test_a_key_that_is_refused_is_said_to_them_too(tmp_path: Path, stream: bool) -> None:
    async with serving(agents.talker, data=tmp_path, auth__api_key="sesame") as served:
        if stream:
            assert "valve API_KEY" in (await streamed(served.url, "default")).errors[0]
        else:
            assert "valve API_KEY" in await whole(served.url, "default")


async def test_without_a_stream_it_can_be_stopped(tmp_path: Path) -> None:
    async with serving(agents.patient, data=tmp_path) as served:
        chat = Chat(served.url)
        task = asyncio.create_task(chat.call(QUESTION, seen := Seen(), stream=False))
        await eventually(lambda: seen.statuses)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        run_id = (await served.http.get("/sessions/u-1.chat-1")).json()["run_id"]
        assert (await served.http.get(f"/runs/{run_id}")).json()["state"] == "cancelled"


async def test_without_a_stream_a_lost_connection_is_taken_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipe_module(), "RETRY_DELAY", 0)
    async with playing() as stage:
        token = '{"type":"token","data":{"content":"%d ","agent_depth":0}}'
        frames = [*(token % number for number in range(9)), '{"type":"done"}']
        stage.play("".join(f"id: {n}\ndata: {frame}\n\n" for n, frame in enumerate(frames, 1)).encode())
        stage.faults = [300, 90]
        assert await whole(stage.url, "default") == "0 1 2 3 4 5 6 7 8 "
        assert len(stage.streams) == 3
