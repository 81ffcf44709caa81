"""Stop, other cancellations and failures of a run: the run ends on the server, and the chat has a final status."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from starlette.responses import HTMLResponse, Response, StreamingResponse

from tests.openwebui.chat import Chat
from tests.openwebui.frame_server import FrameServer
from tests.openwebui.function_rules import Json, pipe_module
from tests.support import agents
from tests.support.server import serving
from tests.support.wait import DEADLINE, eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

NOT_REACHED = "Stopped here; the server was not reached, so the agent may continue"


async def test_stop_cancels_the_run(tmp_path: Path) -> None:
    async with serving(agents.patient, data=tmp_path) as served:
        output, task = Chat(served.url).start("go")
        await eventually(lambda: "wait" in [item["name"] for item in output.items_of_type("function_call")])
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert output.final_status == ("Stopped", True)
        assert output.text == "Working"
        run_id = (await served.http.get("/sessions/u-1.chat-1")).json()["run_id"]
        assert (await served.http.get(f"/runs/{run_id}")).json()["state"] == "cancelled"


async def test_stop_closes_an_open_dialog(tmp_path: Path) -> None:
    closed: list[Json] = []

    async def ask(event: Json) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            closed.append(event)

    async with serving(agents.asker, data=tmp_path) as served:
        output, task = Chat(served.url, ask=ask).start("go")
        await eventually(lambda: "⏸ delete is waiting for approval" in output.statuses)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [event["type"] for event in closed] == ["request:user_input"]
        assert output.final_status == ("Stopped", True)


async def test_stop_of_a_server_that_does_not_answer_ends_with_a_status(
    server: FrameServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipe_module(), "CANCEL_SECONDS", 0.2)
    server.hangs = True
    output, task = Chat(server.url).start("go")
    await eventually(lambda: server.requests)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert output.final_status == (NOT_REACHED, True)
    assert not [request for request in server.requests if request.route.endswith("/cancel")]


async def test_run_cancelled_elsewhere_is_stopped_in_the_chat(tmp_path: Path) -> None:
    async with serving(agents.patient, data=tmp_path) as served:
        output, task = Chat(served.url).start("go")
        await eventually(lambda: "wait" in [item["name"] for item in output.items_of_type("function_call")])
        run_id = (await served.http.get("/sessions/u-1.chat-1")).json()["run_id"]
        await served.http.post(f"/runs/{run_id}/cancel")
        await asyncio.wait_for(task, DEADLINE)
        assert output.final_status == ("Stopped", True)
        assert output.errors == []


async def test_failing_agent_gives_an_error_and_keeps_the_message(tmp_path: Path) -> None:
    async with serving(agents.crasher, data=tmp_path) as served:
        output = await Chat(served.url).send("go")
    assert output.text == "So far so good"
    assert list(output.rows) == ["crash · stopped"]
    assert "the wheel came off" in output.errors[0]
    assert output.final_status == (f"Failed: {output.errors[0]}", True)


async def test_stop_before_the_first_response_cancels_the_run(tmp_path: Path) -> None:
    async with serving(agents.patient, data=tmp_path) as served:
        started = asyncio.Event()
        real = httpx.AsyncHTTPTransport.handle_async_request

        async def respond_never(self: httpx.AsyncHTTPTransport, request: httpx.Request) -> httpx.Response:
            response = await real(self, request)
            if request.url.path == "/chat/stream":
                started.set()
                await asyncio.Event().wait()
            return response

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(httpx.AsyncHTTPTransport, "handle_async_request", respond_never)
            _, task = Chat(served.url).start("go")
            await started.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        run_id = (await served.http.get("/sessions/u-1.chat-1")).json()["run_id"]
        assert (await served.http.get(f"/runs/{run_id}")).json()["state"] == "cancelled"


def endless_stream() -> Response:
    """A stream with one token that does not end."""

    async def chunks() -> AsyncIterator[bytes]:
        yield b'id: 1\ndata: {"type":"token","data":{"content":"Working","agent_depth":0}}\n\n'
        await asyncio.Event().wait()

    return StreamingResponse(chunks(), headers={"x-run-id": "run_0"}, media_type="text/event-stream")


def cancel_count(server: FrameServer) -> int:
    return sum(request.route == "POST /runs/run_0/cancel" for request in server.requests)


async def test_cancel_request_is_repeated_until_it_succeeds(
    server: FrameServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipe_module(), "CANCEL_RETRY_DELAY", 0)
    server.faults = [endless_stream()]
    server.cancel_responses = [HTMLResponse("<html>", 502), HTMLResponse("<html>", 503)]
    output, task = Chat(server.url).start("go")
    await eventually(lambda: output.text == "Working")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (output.final_status, cancel_count(server)) == (("Stopped", True), 3)


async def test_failed_cancel_request_is_in_the_status(server: FrameServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipe_module(), "CANCEL_SECONDS", 0.2)
    server.faults = [endless_stream()]
    output, task = Chat(server.url).start("go")
    await eventually(lambda: output.text == "Working")

    async def refuse_connection(self: httpx.AsyncHTTPTransport, request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("All connection attempts failed", request=request)

    monkeypatch.setattr(httpx.AsyncHTTPTransport, "handle_async_request", refuse_connection)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (output.final_status, output.text) == ((NOT_REACHED, True), "Working")


async def test_refused_search_for_the_run_is_in_the_status(
    server: FrameServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the first response the pipe does not know the id of its run, and has to search for it."""
    server.hangs = True
    output, task = Chat(server.url).start("go")
    await eventually(lambda: server.requests)

    async def refuse(self: httpx.AsyncHTTPTransport, request: httpx.Request) -> httpx.Response:
        return httpx.Response(403, json={"detail": "this machine may not read sessions"}, request=request)

    monkeypatch.setattr(httpx.AsyncHTTPTransport, "handle_async_request", refuse)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert output.final_status == (NOT_REACHED, True)


async def test_second_cancellation_of_the_task_does_not_stop_the_cancel_request(server: FrameServer) -> None:
    server.faults = [endless_stream()]
    output, task = Chat(server.url).start("go")
    await eventually(lambda: output.text == "Working")
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await eventually(lambda: cancel_count(server) == 1)
    await eventually(lambda: not pipe_module().CANCEL_TASKS)
    assert output.final_status == ("Stopped", True)
