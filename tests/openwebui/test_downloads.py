"""Long results, arguments and files: downloaded up to a limit, otherwise linked."""

import base64
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from limelight.events import AnyEvent, FinalAnswer, ToolFinished, ToolReady, ToolStarted
from limelight.sources.base import Context, FileMade
from tests.openwebui.chat import Chat, Output
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
    """Has a result of which the stream contains a preview."""
    yield ToolStarted(call_id="r/1", name="read", args={})
    yield ToolFinished(call_id="r/1", result=LONG)
    yield "Read."


async def painter(messages: object, ctx: Context) -> AsyncIterator[str | AnyEvent | FileMade]:
    """Makes an image in a tool, an image outside of it, one that is too large, and a text file."""
    yield ToolStarted(call_id="p", name="paint", args={})
    yield FileMade(name="in.png", data=IMAGE, media_type="image/png", call_id="p")
    yield ToolFinished(call_id="p", result="painted")
    yield FileMade(name="out.png", data=IMAGE, media_type="image/png")
    yield FileMade(name="huge.png", data=HUGE_IMAGE, media_type="image/png")
    yield FileMade(name="notes.txt", data=b"notes", media_type="text/plain")
    yield "Painted."


async def lecturer(messages: object, ctx: Context) -> AsyncIterator[AnyEvent]:
    """Has a long answer without deltas."""
    yield FinalAnswer(content=LONG * 10)


async def preacher(messages: object, ctx: Context) -> AsyncIterator[AnyEvent]:
    """Has an answer over the limit, without deltas."""
    yield FinalAnswer(content="x" * 1_200_000)


async def writer(messages: object, ctx: Context) -> AsyncIterator[AnyEvent]:
    """Has long arguments, arguments over the limit, and long arguments after the start of the call."""
    yield ToolStarted(call_id="w/1", name="write", args={"text": LONG})
    yield ToolFinished(call_id="w/1", result="ok")
    yield ToolStarted(call_id="w/2", name="append", args={"text": LONG * 2})
    yield ToolFinished(call_id="w/2", result="ok")
    yield ToolStarted(call_id="w/3", name="insert", args=None)
    yield ToolReady(call_id="w/3", args={"text": LONG})
    yield ToolFinished(call_id="w/3", result="ok")


async def forger(messages: object, ctx: Context) -> AsyncIterator[FileMade]:
    """Makes a page with the type of an image, a photo with a wrong type, and an SVG."""
    yield FileMade(name="page.png", data=b"<html>", media_type="image/png")
    yield FileMade(name="photo.png", data=JPEG, media_type="image/png;x=,<b>")
    yield FileMade(name="drawing.svg", data=SVG, media_type="image/svg+xml")


async def photographer(messages: object, ctx: Context) -> AsyncIterator[FileMade]:
    """Makes more images than a message may have."""
    for number in range(6):
        yield FileMade(name=f"{number}.png", data=PNG + b"x" * 900_000, media_type="image/png")


async def chat_output(target: Callable[..., Any], data: Path, **valves: Any) -> tuple[str, Output]:
    async with serving(target, data=data) as served:
        return served.url, await Chat(served.url, **valves).send("go")


def files_of(output: Output) -> list[Json]:
    return next(event["data"]["files"] for event in output.events if event["type"] == "files")


@pytest.mark.requirement("pipe-complete-results")
async def test_long_result_is_complete(tmp_path: Path) -> None:
    _, output = await chat_output(reader, tmp_path)
    assert output.rows == {"read": LONG}
    assert output.sources["🔧 read"] == f"\u200b{LONG[:32_000]}\n\n… (40,000 characters in all)"


@pytest.mark.requirement("pipe-complete-results")
async def test_result_over_the_limit_is_a_preview_with_a_link(tmp_path: Path) -> None:
    url, output = await chat_output(agents.big, tmp_path / "a", PUBLIC_URL="https://agents.example.org/")
    preview, _, note = output.rows["dump"].partition("\n\n")
    assert preview == "x" * 10_000
    assert note.startswith("… (300,000 bytes in all; the whole is at https://agents.example.org/runs/run_")
    assert note.endswith("/tools/big%2F1?raw=1)")
    _, output = await chat_output(agents.big, tmp_path / "b")
    assert "/tools/big%2F1 on the Limelight server)" in output.rows["dump"]
    assert url not in output.rows["dump"]


async def test_long_answer_without_deltas_is_complete(tmp_path: Path) -> None:
    _, output = await chat_output(lecturer, tmp_path)
    assert output.text == LONG * 10


async def test_answer_over_the_limit_is_a_preview_with_a_link(tmp_path: Path) -> None:
    _, output = await chat_output(preacher, tmp_path)
    assert output.text.startswith("x" * 10_000 + "\n\n… (1,200,000 bytes in all; the whole is at /runs/run_")


async def test_images_in_native_are_in_their_row_or_above_the_text(tmp_path: Path) -> None:
    url, output = await chat_output(painter, tmp_path)
    data = f"data:image/png;base64,{base64.b64encode(IMAGE).decode()}"
    assert output.items_of_type("function_call_output")[0]["files"] == [{"type": "image", "url": data}]
    events = [event["data"]["files"] for event in output.events if event["type"] == "files"]
    assert len(events) == 1
    image, huge, notes = events[0]
    assert image == {"type": "image", "name": "out.png", "url": data}
    assert (huge["type"], huge["name"], huge["size"]) == ("file", "huge.png", len(HUGE_IMAGE))
    assert "url" not in huge
    assert huge["file"]["data"]["content"].startswith("huge.png: 1,100,008 bytes, at /artifacts/art_")
    assert url not in str(output.events)
    assert (notes["type"], notes["name"], notes["size"]) == ("file", "notes.txt", 5)
    assert notes["file"]["data"] == {"content": "notes"}


@pytest.mark.parametrize("display", ["collapse", "details", "plain"])
async def test_images_in_other_displays_are_above_the_text(tmp_path: Path, display: str) -> None:
    _, output = await chat_output(painter, tmp_path, DISPLAY=display, PUBLIC_URL="https://agents.example.org")
    files = files_of(output)
    assert [file["name"] for file in files] == ["in.png", "out.png", "huge.png", "notes.txt"]
    assert files[2]["type"] == "doc"
    assert files[2]["url"].startswith("https://agents.example.org/artifacts/")


async def test_file_is_an_image_only_if_its_bytes_are_one(tmp_path: Path) -> None:
    _, output = await chat_output(forger, tmp_path)
    page, photo, drawing = files_of(output)
    assert page["file"]["data"]["content"].startswith("page.png: 6 bytes, at /artifacts/")
    assert photo["url"] == "data:image/jpeg;base64," + base64.b64encode(JPEG).decode()
    assert drawing["file"]["data"]["content"] == SVG.decode()
    assert [file["type"] for file in (page, photo, drawing)] == ["file", "image", "file"]


async def test_images_beyond_the_limit_of_a_message_are_files(tmp_path: Path) -> None:
    _, output = await chat_output(photographer, tmp_path)
    assert [file["type"] for file in files_of(output)] == ["image"] * 4 + ["file"] * 2


@pytest.mark.parametrize(
    ("data", "media_type"),
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
async def test_image_type_is_determined_by_the_bytes(data: bytes, media_type: str | None) -> None:
    assert pipe_module().image_type(data) == media_type


async def test_long_arguments_are_complete_or_marked_as_truncated(tmp_path: Path) -> None:
    _, output = await chat_output(writer, tmp_path)
    write, append, insert = (json.loads(item["arguments"]) for item in output.items_of_type("function_call"))
    assert write == insert == {"text": LONG}
    assert append["arguments"].startswith('{"text":"ää')
    assert append["cut"].startswith("… (160,011 bytes in all; the whole is at /runs/run_")
