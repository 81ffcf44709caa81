"""Frames on the pipes between the server and a worker."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limelight.sandbox import message_framing
from limelight.sandbox.message_framing import FrameReader, InvalidFrame, Message, encode_frame

JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**63), st.text()),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(), inner)),
    max_leaves=10,
)


@st.composite
def messages(draw: st.DrawFn) -> Message:
    return {**draw(st.dictionaries(st.text(), JSON)), "type": draw(st.text())}


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def read(data: bytes, sizes: list[int]) -> list[Message]:
    """Feed a reader with pieces of these sizes, then with the rest."""
    reader, found = FrameReader(), list[Message]()
    for size in sizes:
        found += reader.feed(data[:size])
        data = data[size:]
    return found + list(reader.feed(data))


@given(st.lists(messages(), max_size=5), st.lists(st.integers(0, 50)))
def test_messages_arrive_in_order_however_their_bytes_are_split(sent: list[Message], sizes: list[int]) -> None:
    assert read(b"".join(map(encode_frame, sent)), sizes) == sent


@pytest.mark.requirement("sandbox-values")
@given(st.binary(), st.lists(st.integers(0, 20)))
def test_any_bytes_are_messages_or_an_invalid_frame(body: bytes, sizes: list[int]) -> None:
    for data in (body, framed(body)):
        try:
            found = read(data, sizes)
        except InvalidFrame:
            continue
        assert all(isinstance(message["type"], str) for message in found)


@pytest.mark.requirement("sandbox-values")
@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"\xff", "not JSON"),
        (b"9" * 5000, "not JSON"),
        (b"5", "not an object with a type"),
        (b"{}", "not an object with a type"),
        (b'{"type": null}', "not an object with a type"),
    ],
)
def test_invalid_body_is_refused(body: bytes, message: str) -> None:
    with pytest.raises(InvalidFrame, match=message):
        read(framed(body), [])


def test_length_over_the_limit_is_refused_before_the_body_comes() -> None:
    with pytest.raises(InvalidFrame, match="more than the limit"):
        read(b"\xff\xff\xff\xff", [])


def test_message_over_a_limit_is_neither_sent_nor_received(monkeypatch: pytest.MonkeyPatch) -> None:
    many: Any = {"type": "x", "values": [1] * 200}
    long: Any = {"type": "x", "text": "x" * 2000}
    sent = [framed(json.dumps(message).encode()) for message in (many, long)]
    monkeypatch.setattr(message_framing, "MAX_ITEMS", 100)
    monkeypatch.setattr(message_framing, "MAX_BYTES", 1000)
    for message, data in zip((many, long), sent, strict=True):
        with pytest.raises(InvalidFrame, match="more than"):
            encode_frame(message)
        with pytest.raises(InvalidFrame, match="more than"):
            read(data, [])


def test_incomplete_frame_waits_for_its_rest() -> None:
    data = encode_frame({"type": "x"})
    reader = FrameReader()
    assert list(reader.feed(data[:-1])) == []
    assert list(reader.feed(data[-1:] + data)) == [{"type": "x"}, {"type": "x"}]
