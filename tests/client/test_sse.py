"""The SSE parser: any chunking gives the same events; corner cases of the standard."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limelight.client.sse import SseParser

LINE = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=20)


def read(data: bytes, *cuts: int) -> list[str]:
    parser, found = SseParser(), list[str]()
    for start, end in zip((0, *cuts), (*cuts, len(data)), strict=True):
        found += parser.feed(data[start:end])
    return found


@st.composite
def streams(draw: st.DrawFn) -> tuple[str, list[str]]:
    """A stream, and the data of its events."""
    text, events = draw(st.sampled_from(["", "\ufeff"])), list[str]()
    end = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    for _ in range(draw(st.integers(0, 6))):
        data = draw(st.lists(LINE, max_size=3))
        lines = [f"data: {line}" for line in data] + [f":{line}" for line in draw(st.lists(LINE, max_size=2))]
        for name in ("id", "event"):
            lines.insert(draw(st.integers(0, len(lines))), f"{name}: {draw(LINE)}")
        text += end.join([*lines, "", ""])
        if data:
            events.append("\n".join(data))
    return text, events


@given(streams(), st.lists(st.integers(0, 400), max_size=20))
def test_parser_yields_the_same_events_for_any_chunks(stream: tuple[str, list[str]], cuts: list[int]) -> None:
    text, events = stream
    data = text.encode()
    assert read(data, *sorted(min(cut, len(data)) for cut in cuts)) == events
    assert read(data, *range(1, len(data))) == events


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=10))
def test_parser_reads_any_bytes_the_same_for_any_chunks(data: bytes, cuts: list[int]) -> None:
    assert read(data, *sorted(min(cut, len(data)) for cut in cuts)) == read(data)


@pytest.mark.parametrize(
    ("data", "events"),
    [
        (b"data: a\n\n", ["a"]),
        (b"data:a\n\n", ["a"]),
        (b"data:  a\n\n", [" a"]),
        (b"data\n\n", [""]),
        (b"data: a\ndata:\ndata: b\n\n", ["a\n\nb"]),
        (b"data: a\n", []),
        (b"id: 7\nevent: x\n\ndata: a\n\n", ["a"]),
        (b"unknown: x\nDATA: y\n data: z\n\n", []),
        (b"data: \xff\n\n", ["\ufffd"]),
        ("data: \u2028\u0085x\n\n".encode(), ["\u2028\u0085x"]),
        (b"data: a\r\r\ndata: b\n\r\n", ["a", "b"]),
    ],
)
def test_parser_follows_the_html_standard(data: bytes, events: list[str]) -> None:
    assert read(data) == events
    assert read(data, *range(1, len(data))) == events


def test_parser_counts_comments_and_yields_no_event_for_them() -> None:
    parser = SseParser()
    assert parser.feed(b": ping\n\nretry: 1000\n\n:\n") == []
    assert parser.comments == 2
