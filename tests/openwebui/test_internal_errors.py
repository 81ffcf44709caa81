"""Errors of the pipe itself: the chat keeps the message and shows the error, and the run is cancelled."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from starlette.responses import StreamingResponse

from tests.openwebui.chat import Chat
from tests.openwebui.frame_server import FrameServer
from tests.openwebui.function_rules import pipe_module
from tests.openwebui.output_items import calls_without_output
from tests.support.wait import DEADLINE

pytestmark = pytest.mark.asyncio(loop_scope="module")

TOKEN = '{"type":"token","data":{"content":"So far. ","agent_depth":0}}'
TOOL_START = '{"type":"tool_start","data":{"tool_id":"%s","name":"look","agent_depth":0,"args":{}}}'
TOOL_END = '{"type":"tool_end","data":{"tool_id":"%s","name":"look","agent_depth":0,"result":"seen"}}'
DONE = '{"type":"done"}'


def send_frames(server: FrameServer, *frames: str) -> None:
    """Send these frames in a stream that stays open unless the last of them ends the run."""

    async def chunks() -> AsyncIterator[bytes]:
        for number, frame in enumerate(frames, 1):
            yield f"id: {number}\ndata: {frame}\n\n".encode()
        if frames[-1] != DONE:
            await asyncio.Event().wait()

    headers = {"x-run-id": "run_0"}
    server.faults = [StreamingResponse(chunks(), headers=headers, media_type="text/event-stream")]


def is_cancelled(server: FrameServer) -> bool:
    return "POST /runs/run_0/cancel" in [request.route for request in server.requests]


def fail(*_: object, **__: object) -> Any:
    raise RuntimeError("a wire is loose")


async def test_failing_display_cancels_the_run_and_shows_the_error(
    server: FrameServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    send_frames(server, TOKEN)
    monkeypatch.setattr(pipe_module().NativeDisplay, "flush", fail)
    monkeypatch.setattr(pipe_module().NativeDisplay, "close", fail)
    output = await asyncio.wait_for(Chat(server.url).send("go"), DEADLINE)
    assert output.errors == ["RuntimeError: a wire is loose"]
    assert output.final_status == ("Failed: RuntimeError: a wire is loose", True)
    assert is_cancelled(server)


async def test_failing_parser_cancels_the_run_and_shows_the_error(
    server: FrameServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    send_frames(server, TOKEN)
    real = pipe_module().parse_frames

    async def failing_parser(chunks: AsyncIterator[bytes]) -> AsyncIterator[Any]:
        async for frame in real(chunks):
            yield frame
            if frame.type == "token":
                fail()

    monkeypatch.setattr(pipe_module(), "parse_frames", failing_parser)
    output = await asyncio.wait_for(Chat(server.url).send("go"), DEADLINE)
    assert (output.text, output.errors) == ("So far. ", ["RuntimeError: a wire is loose"])
    assert is_cancelled(server)


@pytest.mark.parametrize("part", ["FileList", "StatusLine", "Citations", "TaskList"])
async def test_failing_part_does_not_keep_the_others_from_a_frame(
    server: FrameServer, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    send_frames(server, TOKEN, TOOL_START % "c", TOOL_END % "c", DONE)
    monkeypatch.setattr(getattr(pipe_module(), part), "feed", fail)
    output = await Chat(server.url).send("go")
    assert (output.text, output.rows, output.errors, output.final_status) == (
        "So far. ",
        {"look": "seen"},
        [],
        ("Complete", True),
    )


@pytest.mark.parametrize("display", ["native", "collapse", "details", "plain"])
async def test_lone_surrogate_in_an_id_is_accepted(server: FrameServer, display: str) -> None:
    send_frames(server, TOOL_START % "c\\ud800", TOOL_END % "c\\ud800", TOKEN, DONE)
    output = await Chat(server.url, DISPLAY=display).send("go")
    assert (output.errors, output.final_status, calls_without_output(output.items)) == ([], ("Complete", True), [])
    assert list(output.sources) == ["🔧 look"]


async def test_lone_surrogate_in_a_message_is_replaced(server: FrameServer) -> None:
    """Once a tool has printed it, Open WebUI sends it with every turn."""
    send_frames(server, TOKEN, DONE)
    output = await Chat(server.url).send("x\ud800y")
    assert (output.text, output.errors) == ("So far. ", [])
    assert server.stream_requests[0].body["messages"] == [{"role": "user", "content": "x?y"}]
