"""Mistakes of the pipe itself: the chat keeps what it has and is told, and the agent does not go on unseen."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from starlette.responses import StreamingResponse

from tests.openwebui.chat import Chat
from tests.openwebui.frame_server import Stage
from tests.openwebui.function_rules import pipe_module
from tests.openwebui.output import unanswered

pytestmark = pytest.mark.asyncio(loop_scope="module")

SAID = '{"type":"token","data":{"content":"So far. ","agent_depth":0}}'
BEGUN = '{"type":"tool_start","data":{"tool_id":"%s","name":"look","agent_depth":0,"args":{}}}'
ENDED = '{"type":"tool_end","data":{"tool_id":"%s","name":"look","agent_depth":0,"result":"seen"}}'
DONE = '{"type":"done"}'


def play(stage: Stage, *frames: str) -> None:
    """A run that goes on for ever behind these frames, unless they end it."""

    async def pieces() -> AsyncIterator[bytes]:
        for number, frame in enumerate(frames, 1):
            yield f"id: {number}\ndata: {frame}\n\n".encode()
        if frames[-1] != DONE:
            await asyncio.Event().wait()

    headers = {"x-run-id": "run_0"}
    stage.faults = [StreamingResponse(pieces(), headers=headers, media_type="text/event-stream")]


def stopped(stage: Stage) -> bool:
    return "POST /runs/run_0/cancel" in [asked.line for asked in stage.asked]


def broken(*_: object, **__: object) -> Any:
    raise RuntimeError("a wire is loose")


async def test_a_display_that_breaks_ends_the_run_and_says_so(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    play(stage, SAID)
    monkeypatch.setattr(pipe_module().NativeDisplay, "flush", broken)
    monkeypatch.setattr(pipe_module().NativeDisplay, "close", broken)
    seen = await asyncio.wait_for(Chat(stage.url).say("go"), 20)
    assert seen.errors == ["RuntimeError: a wire is loose"]
    assert seen.end == ("Failed: RuntimeError: a wire is loose", True)
    assert stopped(stage)


async def test_a_reader_that_breaks_ends_the_run_and_says_so(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    play(stage, SAID)
    real = pipe_module().parse_frames

    async def breaking(pieces: AsyncIterator[bytes]) -> AsyncIterator[Any]:
        async for frame in real(pieces):
            yield frame
            if frame.type == "token":
                broken()

    monkeypatch.setattr(pipe_module(), "parse_frames", breaking)
    seen = await asyncio.wait_for(Chat(stage.url).say("go"), 20)
    assert (seen.text, seen.errors) == ("So far. ", ["RuntimeError: a wire is loose"])
    assert stopped(stage)


@pytest.mark.parametrize("part", ["FileList", "StatusLine", "Citations", "TaskList"])
async def test_a_part_that_breaks_keeps_no_other_from_the_frame(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    play(stage, SAID, BEGUN % "c", ENDED % "c", DONE)
    monkeypatch.setattr(getattr(pipe_module(), part), "feed", broken)
    seen = await Chat(stage.url).say("go")
    assert (seen.text, seen.rows, seen.errors, seen.end) == ("So far. ", {"look": "seen"}, [], ("Complete", True))


@pytest.mark.parametrize("display", ["native", "collapse", "details", "plain"])
async def test_half_a_sign_in_an_id_is_shown_like_others(stage: Stage, display: str) -> None:
    play(stage, BEGUN % "c\\ud800", ENDED % "c\\ud800", SAID, DONE)
    seen = await Chat(stage.url, DISPLAY=display).say("go")
    assert (seen.errors, seen.end, unanswered(seen.items)) == ([], ("Complete", True), [])
    assert list(seen.sources) == ["🔧 look"]


async def test_half_a_sign_in_a_message_does_not_end_the_chat(stage: Stage) -> None:
    """It comes back with every turn, once a tool has printed it."""
    play(stage, SAID, DONE)
    seen = await Chat(stage.url).say("x\ud800y")
    assert (seen.text, seen.errors) == ("So far. ", [])
    assert stage.streams[0].body["messages"] == [{"role": "user", "content": "x?y"}]
