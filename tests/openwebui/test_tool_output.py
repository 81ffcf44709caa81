"""What tools print while they run: the last line is the label of the row, and much of it costs little."""

import asyncio
import json
import time

import pytest

from tests.openwebui.chat import Chat
from tests.openwebui.display_frames import Shown
from tests.openwebui.frame_server import Stage
from tests.openwebui.function_rules import Json, pipe_module
from tests.openwebui.output import text_of


def running() -> Shown:
    shown = Shown()
    shown.feed("tool_start", tool_id="c", name="build", args={}, agent_depth=0)
    return shown


def printed(shown: Shown, *pieces: str) -> str:
    """What the row says when they have arrived."""
    for piece in pieces:
        shown.feed("tool_output", tool_id="c", stream="stdout", content=piece)
    shown.flush()
    return shown.names[0]


def result(shown: Shown, text: str) -> str:
    shown.feed("tool_end", tool_id="c", name="build", result=text, agent_depth=0)
    shown.close()
    return text_of(next(item for item in shown.items if item["type"] == "function_call_output"))


def test_the_label_is_the_last_line_that_is_not_blank() -> None:
    shown = running()
    assert printed(shown, "\n \n") == "build"
    assert printed(shown, "one\n", "two\n\n  \n") == "build · two"
    assert printed(shown, "thr", "ee") == "build · three"
    assert printed(shown, "\r10%\r20%") == "build · 20%"


def test_labels_are_sent_with_the_next_bundle_only() -> None:
    shown = running()
    shown.flush()
    for number in range(1000):
        shown.feed("tool_output", tool_id="c", stream="stdout", content=f"line {number}\n")
    assert [chunk["item"]["name"] for chunk in shown.flush() if isinstance(chunk, dict)] == ["build · line 999"]


def test_a_question_is_not_hidden_by_what_was_printed_before_it() -> None:
    shown = running()
    shown.feed("tool_output", tool_id="c", stream="stdout", content="line\n")
    shown.feed("approval", tool_id="c", name="build", state="requested", args={})
    shown.flush()
    assert shown.names == ["build · waiting for approval"]


def test_a_chatty_tool_takes_no_time() -> None:
    shown, start = running(), time.monotonic()
    for number in range(0, 50_000, 100):
        printed(shown, *(f"{line:050}\n" for line in range(number, number + 100)))
    text = result(shown, "done")
    assert time.monotonic() - start < 20
    assert text.startswith(f"{0:050}\n{1:050}\n")
    assert text.endswith(f"{49_999:050}\n\ndone")
    assert "characters are left out here" in text
    assert len(text) < 101_000


def test_what_the_result_repeats_is_there_once() -> None:
    shown = running()
    printed(shown, "one\n", "two\n")
    assert result(shown, "Output:\none\ntwo\nLast value: 3") == "Output:\none\ntwo\nLast value: 3"


@pytest.mark.parametrize("length", [99_999, 100_000, 100_001, 150_001, 400_000])
def test_a_long_printout_that_the_result_repeats_is_there_once_too(length: int) -> None:
    shown, text = running(), "".join(f"{number}\n" for number in range(length))[:length]
    for start in range(0, length, 7000):
        shown.feed("tool_output", tool_id="c", stream="stdout", content=text[start : start + 7000])
    assert result(shown, text) == text


@pytest.mark.parametrize("sizes", [(1,), (100_001,), (50_000, 50_000), (30_000, 30_000, 90_000, 1), (250_000, 3)])
def test_a_printout_is_whole_or_says_how_much_is_missing(sizes: tuple[int, ...]) -> None:
    printout = pipe_module().ToolOutput()
    whole = ""
    for number, size in enumerate(sizes):
        piece = chr(ord("a") + number) * size
        printout.add(piece)
        whole += piece
    if len(whole) <= 100_000:
        assert printout.text == whole
    else:
        note = f"\n… ({len(whole) - 100_000:,} characters are left out here)\n"
        assert printout.text == whole[:50_000] + note + whole[-50_000:]


@pytest.mark.asyncio(loop_scope="module")
async def test_a_chatty_tool_takes_no_time_in_the_whole_pipe(stage: Stage) -> None:
    lines = [{"tool_id": "c", "stream": "stdout", "content": f"{number:050}\n"} for number in range(40_000)]
    frames: list[Json] = [{"type": "tool_start", "data": {"tool_id": "c", "name": "build", "args": {}}}]
    frames += [{"type": "tool_output", "data": line} for line in lines]
    frames += [{"type": "tool_end", "data": {"tool_id": "c", "name": "build", "result": "ok"}}, {"type": "done"}]
    stage.frames = [f"id: {place}\ndata: {json.dumps(frame)}\n\n".encode() for place, frame in enumerate(frames)]
    seen = await asyncio.wait_for(Chat(stage.url).say("go"), 30)
    assert len(seen.rows["build"]) < 101_000
