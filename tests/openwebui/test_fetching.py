"""What a frame only points to: long results and files, fetched if they are small enough, otherwise linked."""

import base64
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from limelight.events import AnyEvent, FinalAnswer, ToolFinished, ToolStarted
from limelight.sources.base import Context, FileMade
from tests import agents
from tests.openwebui.chat import Chat, Seen
from tests.serving import serving

LONG = "ä" * 40_000
IMAGE = b"\x89PNG" + b"x" * 1000
HUGE_IMAGE = b"\x89PNG" + b"x" * 1_100_000


async def reader(messages: object, ctx: Context) -> AsyncIterator[str | AnyEvent]:
    """Has a result that the stream only shows the beginning of."""
    yield ToolStarted(call_id="r/1", name="read", args={})
    yield ToolFinished(call_id="r/1", result=LONG)
    yield "Read."


async def painter(messages: object, ctx: Context) -> AsyncIterator[str | AnyEvent | FileMade]:
    """Makes an image in a tool, one outside of it, one that is too large, and a text."""
    yield ToolStarted(call_id="p", name="paint", args={})
    yield FileMade(name="in.png", data=IMAGE, media_type="image/png", call_id="p")
    yield ToolFinished(call_id="p", result="painted")
    yield FileMade(name="out.png", data=IMAGE, media_type="image/png")
    yield FileMade(name="huge.png", data=HUGE_IMAGE, media_type="image/png")
    yield FileMade(name="notes.txt", data=b"notes", media_type="text/plain")
    yield "Painted."


async def lecturer(messages: object, ctx: Context) -> AsyncIterator[AnyEvent]:
    """Answers at length, all at once."""
    yield FinalAnswer(content=LONG)


async def preacher(messages: object, ctx: Context) -> AsyncIterator[AnyEvent]:
    """Answers at too great length."""
    yield FinalAnswer(content="x" * 200_000)


async def said(target: Callable[..., Any], data: Path, **valves: Any) -> tuple[str, Seen]:
    async with serving(target, data=data) as served:
        return served.url, await Chat(served.url, **valves).say("go")


async def test_a_long_result_is_there_whole(tmp_path: Path) -> None:
    _, seen = await said(reader, tmp_path)
    assert seen.rows == {"read": LONG}
    assert seen.sources["🔧 read"] == f"{LONG[:32_000]}\n\n… (40,000 characters in all)"


async def test_a_very_long_result_is_a_preview_and_says_where_the_rest_is(tmp_path: Path) -> None:
    url, seen = await said(agents.big, tmp_path / "a", PUBLIC_URL="https://agents.example.org/")
    preview, _, note = seen.rows["dump"].partition("\n\n")
    assert preview == "x" * 10_000
    assert note.startswith("… (300,000 bytes in all; the whole is at https://agents.example.org/runs/run_")
    assert note.endswith("/tools/big%2F1?raw=1)")
    _, seen = await said(agents.big, tmp_path / "b")
    assert "/tools/big%2F1 on the Limelight server)" in seen.rows["dump"]
    assert url not in seen.rows["dump"]


async def test_a_long_answer_that_was_never_streamed_is_there_whole(tmp_path: Path) -> None:
    _, seen = await said(lecturer, tmp_path)
    assert seen.text == LONG


async def test_a_very_long_answer_that_was_never_streamed_says_where_it_is(tmp_path: Path) -> None:
    _, seen = await said(preacher, tmp_path)
    assert seen.text.startswith("x" * 10_000 + "\n\n… (200,000 bytes in all; the whole is at /runs/run_")


async def test_images_are_in_the_row_that_made_them_or_above_the_text(tmp_path: Path) -> None:
    url, seen = await said(painter, tmp_path)
    data = f"data:image/png;base64,{base64.b64encode(IMAGE).decode()}"
    assert seen.of_type("function_call_output")[0]["files"] == [{"type": "image", "url": data}]
    events = [event["data"]["files"] for event in seen.events if event["type"] == "files"]
    assert len(events) == 1
    image, huge, notes = events[0]
    assert image == {"type": "image", "name": "out.png", "url": data}
    assert (huge["type"], huge["name"], huge["size"]) == ("doc", "huge.png", len(HUGE_IMAGE))
    assert huge["url"].startswith(f"{url}/artifacts/")
    assert (notes["type"], notes["name"], notes["size"]) == ("file", "notes.txt", 5)
    assert notes["file"]["data"] == {"content": "notes"}


@pytest.mark.parametrize("display", ["collapse", "details", "plain"])
async def test_where_there_are_no_rows_all_images_are_above_the_text(tmp_path: Path, display: str) -> None:
    _, seen = await said(painter, tmp_path, DISPLAY=display, PUBLIC_URL="https://agents.example.org")
    files = next(event["data"]["files"] for event in seen.events if event["type"] == "files")
    assert [file["name"] for file in files] == ["in.png", "out.png", "huge.png", "notes.txt"]
    assert files[2]["url"].startswith("https://agents.example.org/artifacts/")
