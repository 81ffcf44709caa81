"""What a frame only points to: long results and files, fetched if they are small enough, otherwise linked."""

import base64
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from limelight.events import AnyEvent, FinalAnswer, ToolFinished, ToolReady, ToolStarted
from limelight.sources.base import Context, FileMade
from tests.openwebui.chat import Chat, Seen
from tests.openwebui.function_rules import Json, pipe_module
from tests.support import agents
from tests.support.server import serving

LONG = "ä" * 40_000
PNG = b"\x89PNG\r\n\x1a\n"
IMAGE = PNG + b"x" * 1000
HUGE_IMAGE = PNG + b"x" * 1_100_000
JPEG = b"\xff\xd8\xff\xe0"
SVG = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"


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
    yield FinalAnswer(content=LONG * 10)


async def preacher(messages: object, ctx: Context) -> AsyncIterator[AnyEvent]:
    """Answers at too great length."""
    yield FinalAnswer(content="x" * 1_200_000)


async def writer(messages: object, ctx: Context) -> AsyncIterator[AnyEvent]:
    """Has long arguments, longer ones, and long ones that come when the call is there already."""
    yield ToolStarted(call_id="w/1", name="write", args={"text": LONG})
    yield ToolFinished(call_id="w/1", result="ok")
    yield ToolStarted(call_id="w/2", name="append", args={"text": LONG * 2})
    yield ToolFinished(call_id="w/2", result="ok")
    yield ToolStarted(call_id="w/3", name="insert", args=None)
    yield ToolReady(call_id="w/3", args={"text": LONG})
    yield ToolFinished(call_id="w/3", result="ok")


async def forger(messages: object, ctx: Context) -> AsyncIterator[FileMade]:
    """Makes what is called an image and is none, one that is called by a wrong name, and a drawing."""
    yield FileMade(name="page.png", data=b"<html>", media_type="image/png")
    yield FileMade(name="photo.png", data=JPEG, media_type="image/png;x=,<b>")
    yield FileMade(name="drawing.svg", data=SVG, media_type="image/svg+xml")


async def photographer(messages: object, ctx: Context) -> AsyncIterator[FileMade]:
    """Makes more images than a message can hold."""
    for number in range(6):
        yield FileMade(name=f"{number}.png", data=PNG + b"x" * 900_000, media_type="image/png")


async def said(target: Callable[..., Any], data: Path, **valves: Any) -> tuple[str, Seen]:
    async with serving(target, data=data) as served:
        return served.url, await Chat(served.url, **valves).say("go")


def files_of(seen: Seen) -> list[Json]:
    return next(event["data"]["files"] for event in seen.events if event["type"] == "files")


async def test_a_long_result_is_there_whole(tmp_path: Path) -> None:
    _, seen = await said(reader, tmp_path)
    assert seen.rows == {"read": LONG}
    assert seen.sources["🔧 read"] == f"\u200b{LONG[:32_000]}\n\n… (40,000 characters in all)"


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
    assert seen.text == LONG * 10


async def test_a_very_long_answer_that_was_never_streamed_says_where_it_is(tmp_path: Path) -> None:
    _, seen = await said(preacher, tmp_path)
    assert seen.text.startswith("x" * 10_000 + "\n\n… (1,200,000 bytes in all; the whole is at /runs/run_")


async def test_images_are_in_the_row_that_made_them_or_above_the_text(tmp_path: Path) -> None:
    url, seen = await said(painter, tmp_path)
    data = f"data:image/png;base64,{base64.b64encode(IMAGE).decode()}"
    assert seen.of_type("function_call_output")[0]["files"] == [{"type": "image", "url": data}]
    events = [event["data"]["files"] for event in seen.events if event["type"] == "files"]
    assert len(events) == 1
    image, huge, notes = events[0]
    assert image == {"type": "image", "name": "out.png", "url": data}
    assert (huge["type"], huge["name"], huge["size"]) == ("file", "huge.png", len(HUGE_IMAGE))
    assert "url" not in huge
    assert huge["file"]["data"]["content"].startswith("huge.png: 1,100,008 bytes, at /artifacts/art_")
    assert url not in str(seen.events)
    assert (notes["type"], notes["name"], notes["size"]) == ("file", "notes.txt", 5)
    assert notes["file"]["data"] == {"content": "notes"}


@pytest.mark.parametrize("display", ["collapse", "details", "plain"])
async def test_where_there_are_no_rows_all_images_are_above_the_text(tmp_path: Path, display: str) -> None:
    _, seen = await said(painter, tmp_path, DISPLAY=display, PUBLIC_URL="https://agents.example.org")
    files = files_of(seen)
    assert [file["name"] for file in files] == ["in.png", "out.png", "huge.png", "notes.txt"]
    assert files[2]["type"] == "doc"
    assert files[2]["url"].startswith("https://agents.example.org/artifacts/")


async def test_only_what_is_an_image_is_shown_as_one(tmp_path: Path) -> None:
    _, seen = await said(forger, tmp_path)
    page, photo, drawing = files_of(seen)
    assert page["file"]["data"]["content"].startswith("page.png: 6 bytes, at /artifacts/")
    assert photo["url"] == "data:image/jpeg;base64," + base64.b64encode(JPEG).decode()
    assert drawing["file"]["data"]["content"] == SVG.decode()
    assert [file["type"] for file in (page, photo, drawing)] == ["file", "image", "file"]


async def test_images_of_a_message_have_a_limit_together(tmp_path: Path) -> None:
    _, seen = await said(photographer, tmp_path)
    assert [file["type"] for file in files_of(seen)] == ["image"] * 4 + ["file"] * 2


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xdb", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp"),
        (b"\x00\x00\x00\x20ftypavif\x00", "image/avif"),
        (b"RIFF\x00\x00\x00\x00WAVEfmt ", None),
        (b"<svg>", None),
        (b"", None),
    ],
)
async def test_images_are_known_by_their_bytes(data: bytes, kind: str | None) -> None:
    assert pipe_module().image_type(data) == kind


async def test_long_arguments_are_there_whole_or_marked_as_cut(tmp_path: Path) -> None:
    _, seen = await said(writer, tmp_path)
    write, append, insert = (json.loads(item["arguments"]) for item in seen.of_type("function_call"))
    assert write == insert == {"text": LONG}
    assert append["arguments"].startswith('{"text":"ää')
    assert append["cut"].startswith("… (160,011 bytes in all; the whole is at /runs/run_")
