"""A connection that breaks: the run goes on behind the last frame, and nothing is doubled or missing."""

import asyncio
from collections.abc import AsyncIterator
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace

import pytest
from starlette.responses import Response, StreamingResponse

from tests.client.cutting_proxy import cutting_proxy, response, scripted_responses
from tests.openwebui.chat import Chat, Seen
from tests.openwebui.frame_server import Stage
from tests.openwebui.function_rules import pipe_module
from tests.openwebui.output import unanswered
from tests.support import agents
from tests.support.server import serving
from tests.support.wait import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

STREAM = (Path(__file__).parents[1] / "dialects" / "golden" / "sub_agents.typed.sse").read_bytes()
ENDS = [place + 2 for place in range(len(STREAM)) if STREAM.startswith(b"\n\n", place)]
"""Behind each frame."""


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipe_module(), "RETRY_DELAY", 0)
    monkeypatch.setattr(pipe_module(), "MAX_STATUSES_PER_BATCH", 1000)


def shown(seen: Seen) -> object:
    """What a person gets in the end; that the connection was lost and found is left out."""
    others = [event for event in seen.events if event["type"] != "status"]
    lines = [line for line, _ in groupby(line for line in seen.statuses if not line.startswith("Connection"))]
    return seen.items, others, lines, seen.text, seen.errors


async def whole(stage: Stage, display: str) -> object:
    stage.play(STREAM)
    seen = shown(await Chat(stage.url, DISPLAY=display).say("go"))
    stage.asked.clear()
    return seen


@pytest.mark.parametrize("display", ["native", "collapse", "details"])
@pytest.mark.parametrize("frames", [0, 1, 2, 7, len(ENDS) - 1])
@pytest.mark.parametrize("more", [0, 4, 20])
async def test_it_goes_on_behind_the_last_whole_frame(stage: Stage, display: str, frames: int, more: int) -> None:
    straight = await whole(stage, display)
    stage.faults = [[0, *ENDS][frames] + more]
    seen = await Chat(stage.url, DISPLAY=display).say("go")
    assert shown(seen) == straight
    first, second = stage.streams
    assert first.line == "POST /chat/stream"
    assert second.line == "GET /runs/run_0/stream"
    cursor = STREAM[: ENDS[frames - 1]].rpartition(b"id: ")[2].partition(b"\n")[0].decode() if frames else None
    assert second.headers.get("last-event-id") == cursor
    lost = next(place for place, line in enumerate(seen.statuses) if line.startswith("Connection lost ("))
    assert seen.statuses[lost + 1] == (seen.statuses[lost - 1] if lost else "Thinking..."), "as it was before"


async def test_it_breaks_again_and_again(stage: Stage) -> None:
    straight = await whole(stage, "native")
    stage.faults = [300, 0, Response(status_code=502), 250, 90, Response(status_code=503), 400]
    assert shown(await Chat(stage.url).say("go")) == straight
    assert len(stage.streams) == 8


async def test_a_real_server_over_a_bad_line_has_one_run(tmp_path: Path) -> None:
    async with serving(agents.counting(500, 0.001), data=tmp_path) as served:
        async with cutting_proxy(served.url, 12, "pipe") as cutter:
            seen = await Chat(cutter.url).say("go")
            assert cutter.cuts_left < 12
        assert seen.text == "".join(f"{number} " for number in range(500))
        assert (await served.http.get("/sessions/u-1.chat-1")).json()["turns"] == 1


async def test_a_start_that_nobody_answered_is_repeated() -> None:
    head = response(
        'id: 1\ndata: {"type":"token","data":{"content":"hi","agent_depth":0}}\n\ndata: {"type":"done"}\n\n'
    )
    async with scripted_responses(b"", b"HTTP/1.1 200", head) as stage:
        assert (await Chat(stage.url).say("go")).text == "hi"
    assert [line.partition(" HTTP")[0] for line in stage.requests] == ["POST /chat/stream?format=typed"] * 3


@pytest.mark.parametrize("patience", [0, 1])
@pytest.mark.parametrize("fault", [0, Response(status_code=503)])
async def test_when_it_gives_up_what_was_shown_stays(stage: Stage, patience: int, fault: int | Response) -> None:
    """Also when the server lets it in again and again, and then says nothing."""
    stage.play(STREAM)
    stage.faults = [ENDS[4], *[fault] * 1000]
    seen = await Chat(stage.url, RECONNECT_SECONDS=patience).say("go")
    assert seen.rows == {"researcher": "Error: interrupted", "critic": "Error: interrupted"}
    assert unanswered(seen.items) == []
    assert len(seen.errors) == 1
    assert f"The connection to {stage.url} was lost" in seen.errors[0]
    assert "may still be at work" in seen.errors[0]
    assert seen.end == (f"Failed: {seen.errors[0]}", True)


async def test_a_sub_agent_that_no_call_started_is_closed_too(stage: Stage) -> None:
    """Open WebUI would execute a call without a result, and begin again with what comes of it."""
    stage.play(STREAM)
    stage.faults = [ENDS[8]]
    seen = await Chat(stage.url, RECONNECT_SECONDS=0).say("go")
    assert seen.rows["researcher › reader"] == "Error: interrupted"
    assert unanswered(seen.items) == []


async def test_a_run_that_is_gone_is_no_reason_to_wait(stage: Stage) -> None:
    stage.play(STREAM)
    stage.faults = [ENDS[4], Response(b'{"detail": "no such run"}', 404)]
    seen = await Chat(stage.url).say("go")
    assert seen.errors == ["The Limelight server says: no such run"]
    assert list(seen.rows) == ["researcher", "critic"]


def quietly(pieces: AsyncIterator[bytes]) -> Response:
    return StreamingResponse(pieces, headers={"x-run-id": "run_0"}, media_type="text/event-stream")


async def test_a_resumed_connection_that_is_only_quiet_is_not_given_up(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tool that runs for an hour tells nothing, but the server is there."""
    clock = SimpleNamespace(now=1.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(pipe_module(), "time", clock)

    async def heartbeats() -> AsyncIterator[bytes]:
        yield b"retry: 1000\n\n"
        await eventually(lambda: seen.statuses and not seen.statuses[-1].startswith("Connection lost"))
        for _ in range(3):
            clock.now += 1000
            yield b": ping\n\n"
            await asyncio.sleep(0)

    stage.play(STREAM)
    stage.faults = [ENDS[4], quietly(heartbeats())]
    seen, task = Chat(stage.url).start("go")
    await asyncio.wait_for(task, 20)
    assert (seen.errors, seen.end) == ([], ("Complete", True))
    assert len(stage.streams) == 3


async def test_greetings_of_a_server_that_falls_over_again_and_again_are_no_hope(stage: Stage) -> None:
    async def greeting() -> AsyncIterator[bytes]:
        yield b"retry: 1000\n\n"

    stage.play(STREAM)
    stage.faults = [ENDS[4], *(quietly(greeting()) for _ in range(5000))]
    seen = await Chat(stage.url, RECONNECT_SECONDS=1).say("go")
    assert "may still be at work" in seen.errors[0]
