"""Frames with a special treatment: fallback frames, which repeat an added type in a documented one, and gaps."""

from pathlib import Path

import pytest

from tests.openwebui.chat import Chat
from tests.openwebui.frame_server import FrameServer
from tests.openwebui.function_rules import pipe_module

pytestmark = pytest.mark.asyncio(loop_scope="module")

GOLDEN = Path(__file__).parents[1] / "dialects" / "golden"
MARK = b"fallback_for"
DONE = '{"type":"done"}'


def golden_stream(script: str) -> bytes:
    stream = (GOLDEN / f"{script}.typed.sse").read_bytes()
    assert MARK in stream
    return stream


def end_of_fallback(stream: bytes) -> int:
    """The position between the first fallback frame and the frame that it repeats."""
    return stream.index(b"\n\n", stream.index(MARK)) + 2


@pytest.fixture(autouse=True)
def no_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipe_module(), "RETRY_DELAY", 0)
    monkeypatch.setattr(pipe_module(), "MAX_STATUSES_PER_BATCH", 1000)


@pytest.mark.parametrize("is_cut", [False, True])
@pytest.mark.parametrize("display", ["native", "collapse", "details", "plain"])
async def test_failure_is_an_error_and_not_text_also_if_the_stream_is_cut_at_it(
    server: FrameServer, display: str, is_cut: bool
) -> None:
    stream = golden_stream("failed")
    server.set_stream(stream)
    server.faults = [end_of_fallback(stream)] if is_cut else []
    output = await Chat(server.url, DISPLAY=display).send("go")
    assert output.text == "I will"
    assert output.errors == ["ValueError: no"]
    assert output.final_status == ("Failed: ValueError: no", True)
    assert server.stream_requests[-1].headers.get("last-event-id") == ("4.1" if is_cut else None)


async def test_cancelled_run_has_one_status_for_it(server: FrameServer) -> None:
    server.set_stream(golden_stream("cancelled"))
    output = await Chat(server.url).send("go")
    assert output.statuses == ["Thinking...", "🔧 sleep...", "Stopped"]
    assert output.final_status == ("Stopped", True)


async def test_approval_has_only_the_status_of_the_pipe(server: FrameServer) -> None:
    server.set_stream(golden_stream("approval"))
    output = await Chat(server.url).send("go")
    assert not [text for text in output.statuses if text.startswith(("Waiting for approval", "Approved", "Rejected"))]
    assert "⏸ rm is waiting for approval" in output.statuses


async def test_fallback_for_a_type_that_the_pipe_does_not_know_is_shown(server: FrameServer) -> None:
    data = '{"description":"Three of four done","agent_depth":0,"fallback_for":"progress"}'
    server.set_payloads(f'{{"type":"status","data":{data}}}', DONE)
    output = await Chat(server.url).send("go")
    assert output.statuses == ["Three of four done", "Complete"]


@pytest.mark.parametrize("display", ["native", "collapse", "details", "plain"])
async def test_gap_is_a_status(server: FrameServer, display: str) -> None:
    token = '{"type":"token","data":{"content":"The end.","agent_depth":0}}'
    server.set_payloads('{"type":"gap","data":{"from":3,"to":1202}}', token, DONE)
    output = await Chat(server.url, DISPLAY=display).send("go")
    assert "1,200 events are no longer kept" in output.statuses
    assert (output.text, output.final_status) == ("The end.", ("Complete", True))
