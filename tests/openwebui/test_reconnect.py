"""Lost connections: the pipe resumes after the last frame, without repeated or missing frames."""

import asyncio
from collections.abc import AsyncIterator
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace

import pytest
from starlette.responses import Response, StreamingResponse

from tests.client.cutting_proxy import cutting_proxy, response, scripted_responses
from tests.openwebui.chat import Chat, Output
from tests.openwebui.frame_server import FrameServer
from tests.openwebui.function_rules import pipe_module
from tests.openwebui.output_items import calls_without_output
from tests.support import agents
from tests.support.server import serving
from tests.support.wait import DEADLINE, eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

STREAM = (Path(__file__).parents[1] / "dialects" / "golden" / "sub_agents.typed.sse").read_bytes()
ENDS = [index + 2 for index in range(len(STREAM)) if STREAM.startswith(b"\n\n", index)]
"""The position after each frame."""


@pytest.fixture(autouse=True)
def no_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipe_module(), "RETRY_DELAY", 0)
    monkeypatch.setattr(pipe_module(), "MAX_STATUSES_PER_BATCH", 1000)


def final_output(output: Output) -> object:
    """The output that the user keeps, without statuses about the connection."""
    others = [event for event in output.events if event["type"] != "status"]
    statuses = [text for text, _ in groupby(text for text in output.statuses if not text.startswith("Connection"))]
    return output.items, others, statuses, output.text, output.errors


async def uninterrupted_output(server: FrameServer, display: str) -> object:
    server.set_stream(STREAM)
    output = final_output(await Chat(server.url, DISPLAY=display).send("go"))
    server.requests.clear()
    return output


@pytest.mark.parametrize("display", ["native", "collapse", "details"])
@pytest.mark.parametrize("frames", [0, 1, 2, 7, len(ENDS) - 1])
@pytest.mark.parametrize("extra_bytes", [0, 4, 20])
async def test_stream_resumes_after_the_last_complete_frame(
    server: FrameServer, display: str, frames: int, extra_bytes: int
) -> None:
    expected = await uninterrupted_output(server, display)
    server.faults = [[0, *ENDS][frames] + extra_bytes]
    output = await Chat(server.url, DISPLAY=display).send("go")
    assert final_output(output) == expected
    first, second = server.stream_requests
    assert first.route == "POST /chat/stream"
    assert second.route == "GET /runs/run_0/stream"
    cursor = STREAM[: ENDS[frames - 1]].rpartition(b"id: ")[2].partition(b"\n")[0].decode() if frames else None
    assert second.headers.get("last-event-id") == cursor
    lost = next(index for index, text in enumerate(output.statuses) if text.startswith("Connection lost ("))
    assert output.statuses[lost + 1] == (output.statuses[lost - 1] if lost else "Thinking..."), "the status before it"


@pytest.mark.requirement("pipe-reconnect")
async def test_repeated_faults_do_not_change_the_output(server: FrameServer) -> None:
    expected = await uninterrupted_output(server, "native")
    server.faults = [300, 0, Response(status_code=502), 250, 90, Response(status_code=503), 400]
    assert final_output(await Chat(server.url).send("go")) == expected
    assert len(server.stream_requests) == 8


@pytest.mark.requirement("pipe-reconnect")
async def test_cut_connections_to_a_real_server_give_one_run(tmp_path: Path) -> None:
    async with serving(agents.counting(500, 0.001), data=tmp_path) as served:
        async with cutting_proxy(served.url, 12, "pipe") as cutter:
            output = await Chat(cutter.url).send("go")
            assert cutter.cuts_left < 12
        assert output.text == "".join(f"{number} " for number in range(500))
        assert (await served.http.get("/sessions/u-1.chat-1")).json()["turns"] == 1


async def test_first_request_without_a_response_is_repeated() -> None:
    head = response(
        'id: 1\ndata: {"type":"token","data":{"content":"hi","agent_depth":0}}\n\ndata: {"type":"done"}\n\n'
    )
    async with scripted_responses(b"", b"HTTP/1.1 200", head) as server:
        assert (await Chat(server.url).send("go")).text == "hi"
    assert [line.partition(" HTTP")[0] for line in server.requests] == ["POST /chat/stream?format=typed"] * 3


@pytest.mark.parametrize("reconnect_seconds", [0, 1])
@pytest.mark.parametrize("fault", [0, Response(status_code=503)])
async def test_message_is_kept_after_the_time_limit(
    server: FrameServer, reconnect_seconds: int, fault: int | Response
) -> None:
    """Connections that are accepted and bring no data do not extend the limit."""
    server.set_stream(STREAM)
    server.faults = [ENDS[4], *[fault] * 1000]
    output = await Chat(server.url, RECONNECT_SECONDS=reconnect_seconds).send("go")
    assert output.rows == {"researcher": "Error: interrupted", "critic": "Error: interrupted"}
    assert calls_without_output(output.items) == []
    assert len(output.errors) == 1
    assert f"The connection to {server.url} was lost" in output.errors[0]
    assert "may still be at work" in output.errors[0]
    assert output.final_status == (f"Failed: {output.errors[0]}", True)


async def test_sub_agent_without_a_call_is_interrupted_too(server: FrameServer) -> None:
    """Open WebUI would execute a row without an output, and call the pipe again with the result."""
    server.set_stream(STREAM)
    server.faults = [ENDS[8]]
    output = await Chat(server.url, RECONNECT_SECONDS=0).send("go")
    assert output.rows["researcher › reader"] == "Error: interrupted"
    assert calls_without_output(output.items) == []


async def test_missing_run_is_an_error_without_retries(server: FrameServer) -> None:
    server.set_stream(STREAM)
    server.faults = [ENDS[4], Response(b'{"detail": "no such run"}', 404)]
    output = await Chat(server.url).send("go")
    assert output.errors == ["The Limelight server says: no such run"]
    assert list(output.rows) == ["researcher", "critic"]


def stream_response(chunks: AsyncIterator[bytes]) -> Response:
    return StreamingResponse(chunks, headers={"x-run-id": "run_0"}, media_type="text/event-stream")


async def test_heartbeats_of_a_resumed_connection_reset_the_time_limit(
    server: FrameServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tool may run for an hour without frames."""
    clock = SimpleNamespace(now=1.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(pipe_module(), "time", clock)

    async def heartbeats() -> AsyncIterator[bytes]:
        yield b"retry: 1000\n\n"
        await eventually(lambda: output.statuses and not output.statuses[-1].startswith("Connection lost"))
        for _ in range(3):
            clock.now += 1000
            yield b": ping\n\n"
            await asyncio.sleep(0)

    server.set_stream(STREAM)
    server.faults = [ENDS[4], stream_response(heartbeats())]
    output, task = Chat(server.url).start("go")
    await asyncio.wait_for(task, DEADLINE)
    assert (output.errors, output.final_status) == ([], ("Complete", True))
    assert len(server.stream_requests) == 3


async def test_first_chunk_of_a_resumed_connection_does_not_reset_the_time_limit(server: FrameServer) -> None:
    async def first_chunk() -> AsyncIterator[bytes]:
        yield b"retry: 1000\n\n"

    server.set_stream(STREAM)
    server.faults = [ENDS[4], *(stream_response(first_chunk()) for _ in range(5000))]
    output = await Chat(server.url, RECONNECT_SECONDS=1).send("go")
    assert "may still be at work" in output.errors[0]
