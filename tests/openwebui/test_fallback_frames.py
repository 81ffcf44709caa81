"""Frames that repeat an added type in a documented one: the pipe knows the added types and shows each thing once."""

from pathlib import Path

import pytest

from tests.openwebui.chat import Chat
from tests.openwebui.frame_server import Stage
from tests.openwebui.function_rules import pipe_module

pytestmark = pytest.mark.asyncio(loop_scope="module")

GOLDEN = Path(__file__).parents[1] / "dialects" / "golden"
MARK = b"fallback_for"


def stream_of(script: str) -> bytes:
    sent = (GOLDEN / f"{script}.typed.sse").read_bytes()
    assert MARK in sent
    return sent


def behind_the_fallback(sent: bytes) -> int:
    """The place between the first marked frame and the frame that it repeats."""
    return sent.index(b"\n\n", sent.index(MARK)) + 2


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipe_module(), "RETRY_DELAY", 0)
    monkeypatch.setattr(pipe_module(), "MAX_STATUSES_PER_BATCH", 1000)


@pytest.mark.parametrize("is_cut", [False, True])
@pytest.mark.parametrize("display", ["native", "collapse", "details", "plain"])
async def test_a_failure_is_an_error_and_not_text_also_if_the_stream_is_cut_at_it(
    stage: Stage, display: str, is_cut: bool
) -> None:
    sent = stream_of("failed")
    stage.play(sent)
    stage.faults = [behind_the_fallback(sent)] if is_cut else []
    seen = await Chat(stage.url, DISPLAY=display).say("go")
    assert seen.text == "I will"
    assert seen.errors == ["ValueError: no"]
    assert seen.end == ("Failed: ValueError: no", True)
    assert stage.streams[-1].headers.get("last-event-id") == ("4.1" if is_cut else None)


async def test_a_stop_has_one_status(stage: Stage) -> None:
    stage.play(stream_of("cancelled"))
    seen = await Chat(stage.url).say("go")
    assert seen.statuses == ["Thinking...", "🔧 sleep...", "Stopped"]
    assert seen.end == ("Stopped", True)


async def test_an_approval_has_only_the_status_of_the_pipe(stage: Stage) -> None:
    stage.play(stream_of("approval"))
    seen = await Chat(stage.url).say("go")
    assert not [line for line in seen.statuses if line.startswith(("Waiting for approval", "Approved", "Rejected"))]
    assert "⏸ rm is waiting for approval" in seen.statuses


async def test_a_fallback_for_a_type_that_the_pipe_does_not_know_is_shown(stage: Stage) -> None:
    data = '{"description":"Three of four done","agent_depth":0,"fallback_for":"progress"}'
    stage.play(f'id: 1\ndata: {{"type":"status","data":{data}}}\n\nid: 2\ndata: {{"type":"done"}}\n\n'.encode())
    seen = await Chat(stage.url).say("go")
    assert seen.statuses == ["Three of four done", "Complete"]
