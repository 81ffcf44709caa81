"""The SSE parser: any chunking gives the same frames; corner cases of the standard."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limelight.client.sse import Frame, SseParser

LINE = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=20)
ID = LINE.filter(lambda line: "\0" not in line)


def read(data: bytes, *cuts: int) -> list[Frame]:
    parser, found = SseParser(), list[Frame]()
    for start, end in zip((0, *cuts), (*cuts, len(data)), strict=True):
        found += parser.feed(data[start:end])
    return found


@st.composite
def streams(draw: st.DrawFn) -> tuple[str, list[Frame]]:
    """A stream, and the frames that are in it."""
    text, frames, last_id = draw(st.sampled_from(["", "\ufeff"])), list[Frame](), ""
    end = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    for _ in range(draw(st.integers(0, 6))):
        data, id_, event = draw(st.lists(LINE, max_size=3)), draw(st.none() | ID), draw(LINE)
        lines = [f"data: {line}" for line in data] + [f":{line}" for line in draw(st.lists(LINE, max_size=2))]
        if id_ is not None:
            last_id = id_
            lines.insert(draw(st.integers(0, len(lines))), f"id: {id_}")
        lines.insert(draw(st.integers(0, len(lines))), f"event: {event}")
        text += end.join([*lines, "", ""])
        if data:
            frames.append(Frame("\n".join(data), last_id, event or "message"))
    return text, frames


@given(streams(), st.lists(st.integers(0, 400), max_size=20))
def test_parser_yields_the_same_frames_for_any_chunks(stream: tuple[str, list[Frame]], cuts: list[int]) -> None:
    text, frames = stream
    data = text.encode()
    assert read(data, *sorted(min(cut, len(data)) for cut in cuts)) == frames
    assert read(data, *range(1, len(data))) == frames


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=10))
def test_parser_reads_any_bytes_the_same_for_any_chunks(data: bytes, cuts: list[int]) -> None:
    assert read(data, *sorted(min(cut, len(data)) for cut in cuts)) == read(data)


@pytest.mark.parametrize(
    ("data", "frames"),
    [
        (b"data: a\n\n", [Frame("a")]),
        (b"data:a\n\n", [Frame("a")]),
        (b"data:  a\n\n", [Frame(" a")]),
        (b"data\n\n", [Frame("")]),
        (b"data: a\ndata:\ndata: b\n\n", [Frame("a\n\nb")]),
        (b"data: a\n", []),
        (b"id: 7\n\ndata: a\n\n", [Frame("a", "7")]),
        (b"id: 7\ndata: a\n\nid\ndata: b\n\n", [Frame("a", "7"), Frame("b", "")]),
        (b"id: 7\ndata: a\n\nid: 8\0\ndata: b\n\n", [Frame("a", "7"), Frame("b", "7")]),
        (b"event: x\n\ndata: a\n\n", [Frame("a")]),
        (b"event: x\ndata: a\n\ndata: b\n\n", [Frame("a", "", "x"), Frame("b")]),
        (b"unknown: x\nDATA: y\n data: z\n\n", []),
        (b"data: \xff\n\n", [Frame("\ufffd")]),
        ("data: \u2028\u0085x\n\n".encode(), [Frame("\u2028\u0085x")]),
        (b"data: a\r\r\ndata: b\n\r\n", [Frame("a"), Frame("b")]),
    ],
)
def test_parser_follows_the_html_standard(data: bytes, frames: list[Frame]) -> None:
    assert read(data) == frames
    assert read(data, *range(1, len(data))) == frames


def test_parser_counts_comments_and_yields_no_frame_for_them() -> None:
    parser = SseParser()
    assert parser.feed(b": ping\n\nretry: 1000\n\n:\n") == []
    assert parser.comments == 2
