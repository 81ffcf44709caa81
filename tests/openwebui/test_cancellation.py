"""The Stop button: the agent stops too, and the line above the text comes to rest."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from starlette.responses import HTMLResponse, Response, StreamingResponse

from tests.openwebui.chat import Chat
from tests.openwebui.frame_server import Stage
from tests.openwebui.function_rules import Json, pipe_module
from tests.support import agents
from tests.support.server import serving
from tests.support.wait import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

NOT_REACHED = "Stopped here; the server was not reached, so the agent may go on"


async def test_stop_stops_the_run(tmp_path: Path) -> None:
    async with serving(agents.patient, data=tmp_path) as served:
        seen, task = Chat(served.url).start("go")
        await eventually(lambda: "wait" in [item["name"] for item in seen.of_type("function_call")])
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert seen.end == ("Stopped", True)
        assert seen.text == "Working"
        run_id = (await served.http.get("/sessions/u-1.chat-1")).json()["run_id"]
        assert (await served.http.get(f"/runs/{run_id}")).json()["state"] == "cancelled"


async def test_stop_takes_an_open_question_away(tmp_path: Path) -> None:
    closed: list[Json] = []

    async def ask(event: Json) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            closed.append(event)

    async with serving(agents.asker, data=tmp_path) as served:
        seen, task = Chat(served.url, ask=ask).start("go")
        await eventually(lambda: "⏸ delete is waiting for approval" in seen.statuses)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [event["type"] for event in closed] == ["request:user_input"]
        assert seen.end == ("Stopped", True)


async def test_stop_before_there_is_an_answer_only_ends(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipe_module(), "CANCEL_SECONDS", 0.2)
    stage.hold = True
    seen, task = Chat(stage.url).start("go")
    await eventually(lambda: stage.asked)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen.end == (NOT_REACHED, True)
    assert not [asked for asked in stage.asked if asked.line.endswith("/cancel")]


async def test_a_run_that_somebody_else_stops_is_stopped_here_too(tmp_path: Path) -> None:
    async with serving(agents.patient, data=tmp_path) as served:
        seen, task = Chat(served.url).start("go")
        await eventually(lambda: "wait" in [item["name"] for item in seen.of_type("function_call")])
        run_id = (await served.http.get("/sessions/u-1.chat-1")).json()["run_id"]
        await served.http.post(f"/runs/{run_id}/cancel")
        await asyncio.wait_for(task, 20)
        assert seen.end == ("Stopped", True)
        assert seen.errors == []


async def test_an_agent_that_breaks_says_so_and_keeps_what_was_shown(tmp_path: Path) -> None:
    async with serving(agents.crasher, data=tmp_path) as served:
        seen = await Chat(served.url).say("go")
    assert seen.text == "So far so good"
    assert list(seen.rows) == ["crash"]
    assert "the wheel came off" in seen.errors[0]
    assert seen.end == (f"Failed: {seen.errors[0]}", True)


async def test_stop_before_the_server_has_answered_stops_the_run_all_the_same(tmp_path: Path) -> None:
    async with serving(agents.patient, data=tmp_path) as served:
        begun = asyncio.Event()
        real = httpx.AsyncHTTPTransport.handle_async_request

        async def answers_late(self: httpx.AsyncHTTPTransport, request: httpx.Request) -> httpx.Response:
            response = await real(self, request)
            if request.url.path == "/chat/stream":
                begun.set()
                await asyncio.Event().wait()
            return response

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(httpx.AsyncHTTPTransport, "handle_async_request", answers_late)
            _, task = Chat(served.url).start("go")
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        run_id = (await served.http.get("/sessions/u-1.chat-1")).json()["run_id"]
        assert (await served.http.get(f"/runs/{run_id}")).json()["state"] == "cancelled"


def working() -> Response:
    """A run that has said something and goes on for ever."""

    async def pieces() -> AsyncIterator[bytes]:
        yield b'id: 1\ndata: {"type":"token","data":{"content":"Working","agent_depth":0}}\n\n'
        await asyncio.Event().wait()

    return StreamingResponse(pieces(), headers={"x-run-id": "run_0"}, media_type="text/event-stream")


def stops(stage: Stage) -> int:
    return sum(asked.line == "POST /runs/run_0/cancel" for asked in stage.asked)


async def test_stop_is_told_again_to_a_server_that_was_away(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipe_module(), "CANCEL_RETRY_DELAY", 0)
    stage.faults = [working()]
    stage.cancels = [HTMLResponse("<html>", 502), HTMLResponse("<html>", 503)]
    seen, task = Chat(stage.url).start("go")
    await eventually(lambda: seen.text == "Working")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (seen.end, stops(stage)) == (("Stopped", True), 3)


async def test_a_stop_that_nobody_hears_is_not_claimed(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipe_module(), "CANCEL_SECONDS", 0.2)
    stage.faults = [working()]
    seen, task = Chat(stage.url).start("go")
    await eventually(lambda: seen.text == "Working")

    async def is_down(self: httpx.AsyncHTTPTransport, request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("All connection attempts failed", request=request)

    monkeypatch.setattr(httpx.AsyncHTTPTransport, "handle_async_request", is_down)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (seen.end, seen.text) == ((NOT_REACHED, True), "Working")


async def test_a_second_cancel_does_not_undo_the_stop(stage: Stage) -> None:
    stage.faults = [working()]
    seen, task = Chat(stage.url).start("go")
    await eventually(lambda: seen.text == "Working")
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await eventually(lambda: stops(stage) == 1)
    await eventually(lambda: not pipe_module().CANCEL_TASKS)
    assert seen.end == ("Stopped", True)
