"""Clients of Open WebUI's API get text, with or without a stream."""

import asyncio
from pathlib import Path

import pytest

from tests.openwebui.chat import Chat, Output
from tests.openwebui.frame_server import running_frame_server
from tests.openwebui.function_rules import pipe_module
from tests.support import agents
from tests.support.server import Served, serving
from tests.support.wait import eventually
from tests.system.processes.server_process import free_port

QUESTION = [{"role": "user", "content": "go"}]


async def text_reply(url: str, model: str) -> str:
    reply = await Chat(url, model=model).call(QUESTION, Output(), stream=False, metadata={})
    assert isinstance(reply, str)
    return reply


async def streamed_output(url: str, model: str) -> Output:
    output = Output()
    reply = await Chat(url, model=model).call(QUESTION, output, metadata={})
    assert not isinstance(reply, str)
    await output.read(reply)
    assert output.events == []
    return output


async def test_reply_without_stream_is_text(served: Served) -> None:
    assert await text_reply(served.url, "default") == "".join(agents.WORDS)
    assert await text_reply(served.url, "worker") == "I begin. \n\nDone."


async def test_failure_without_stream_is_text(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    crashed = await text_reply(served.url, "crasher")
    assert crashed.startswith("So far so good\n\nError: ") and "the wheel came off" in crashed
    monkeypatch.setattr(pipe_module(), "CONNECT_SECONDS", 0)
    down = await text_reply(f"http://127.0.0.1:{free_port()}", "default")
    assert down.startswith("Error: The Limelight server at http://127.0.0.1:")


async def test_stream_is_text(served: Served) -> None:
    output = await streamed_output(served.url, "worker")
    assert output.text == "I begin. \n\nDone."
    assert [chunk for chunk in output.chunks if not isinstance(chunk, str)] == []


async def test_failure_of_a_stream_is_an_error(served: Served) -> None:
    output = await streamed_output(served.url, "crasher")
    assert output.text == "So far so good"
    assert "the wheel came off" in output.errors[0]


@pytest.mark.parametrize("stream", [True, False])
async def test_refused_key_is_an_error_that_names_the_valve(tmp_path: Path, stream: bool) -> None:
    async with serving(agents.talker, data=tmp_path, auth__api_key="sesame") as served:
        if stream:
            assert "valve API_KEY" in (await streamed_output(served.url, "default")).errors[0]
        else:
            assert "valve API_KEY" in await text_reply(served.url, "default")


async def test_cancelled_call_without_stream_cancels_the_run(tmp_path: Path) -> None:
    async with serving(agents.patient, data=tmp_path) as served:
        chat = Chat(served.url)
        task = asyncio.create_task(chat.call(QUESTION, output := Output(), stream=False))
        await eventually(lambda: output.statuses)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        run_id = (await served.http.get("/sessions/u-1.chat-1")).json()["run_id"]
        assert (await served.http.get(f"/runs/{run_id}")).json()["state"] == "cancelled"


async def test_lost_connection_without_stream_is_resumed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipe_module(), "RETRY_DELAY", 0)
    async with running_frame_server() as server:
        token = '{"type":"token","data":{"content":"%d ","agent_depth":0}}'
        server.set_payloads(*(token % number for number in range(9)), '{"type":"done"}')
        server.faults = [300, 90]
        assert await text_reply(server.url, "default") == "0 1 2 3 4 5 6 7 8 "
        assert len(server.stream_requests) == 3
