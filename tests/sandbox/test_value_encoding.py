"""Values on the way between the server and a sandbox: what arrives is what was sent, and hostile input is refused."""

import base64
import io
import math
import pickle
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from limelight.sandbox import value_encoding
from limelight.sandbox.message_framing import encode_frame
from limelight.sandbox.value_encoding import LONG_TEXT, MAX_DEPTH, MAX_EQUAL_HASHES, NotEncodable, decode, encode

HASHABLE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=2**62, max_value=2**300),
    st.floats(allow_nan=False),
    st.text(),
    st.binary(),
    st.complex_numbers(allow_nan=False),
    st.datetimes(),
    st.datetimes(timezones=st.just(UTC)),
    st.dates(),
    st.times(),
    st.timedeltas(),
    st.decimals(allow_nan=False),
    st.text(alphabet="abc./", min_size=1).map(Path),
)
PLAIN = st.recursive(
    st.one_of(HASHABLE, st.text(alphabet=st.characters()), st.sets(HASHABLE), st.frozensets(HASHABLE)),
    lambda inner: st.one_of(
        st.lists(inner), st.lists(inner).map(tuple), st.dictionaries(HASHABLE, inner), st.frozensets(HASHABLE)
    ),
    max_leaves=20,
)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text()),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(), inner)),
    max_leaves=20,
)
TAGS = [*value_encoding._CONTAINERS, *value_encoding._MAKERS, "dict", "image", "pickle", "object", ""]  # pyright: ignore[reportPrivateUsage]
ENCODED = st.recursive(JSON, lambda inner: st.tuples(st.sampled_from(TAGS), inner).map(list), max_leaves=10)


@pytest.mark.requirement("sandbox-values")
@given(PLAIN)
def test_plain_value_arrives_as_it_was_sent(value: Any) -> None:
    arrived = decode(encode(value))
    assert arrived == value
    assert type(arrived) is type(value) or isinstance(value, Path)
    encode_frame({"type": "result", "value": encode(value)})


@pytest.mark.requirement("sandbox-values")
@given(ENCODED)
def test_hostile_input_becomes_a_plain_value_or_a_value_error(encoded: Any) -> None:
    try:
        decoded = decode(encoded)
    except ValueError:
        return
    encode(decoded)  # only types of the closed list


def test_long_and_special_values_arrive() -> None:
    long = "text, with commas " * 1000
    for value in (long, "\ud800", 2**5000, -(2**64), bytearray(b"x"), range(3), math.inf, -0.0, Decimal("1E+999")):
        arrived = decode(encode(value))
        assert arrived == (list(value) if isinstance(value, range) else value)
    assert math.isnan(decode(encode(math.nan)))
    moments = (datetime(2026, 1, 2, tzinfo=UTC), date(2026, 1, 2), time(1, 2), timedelta(days=-1, microseconds=7))
    assert decode(encode(moments)) == moments


def test_image_arrives() -> None:
    arrived = decode(encode(Image.new("RGB", (3, 2), "red")))
    assert arrived.size == (3, 2) and arrived.getpixel((0, 0)) == (255, 0, 0)


class Class:
    """A class of the server's."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Class)

    def __hash__(self) -> int:
        return 1


def test_object_is_sent_only_by_the_server() -> None:
    with pytest.raises(NotEncodable, match="a value of type Class cannot be sent"):
        encode(Class())
    assert decode(encode(Class(), with_pickle=True), with_pickle=True) == Class()
    with pytest.raises(NotEncodable):
        encode(lambda: 1, with_pickle=True)


@pytest.mark.requirement("sandbox-values")
def test_pickle_of_a_sandbox_is_refused_wherever_it_is() -> None:
    hostile = ["pickle", [base64.b64encode(pickle.dumps(Class())).decode(), "text"]]
    for encoded in (hostile, ["list", [hostile]], ["dict", [[1, hostile]]], ["tuple", [["list", [hostile]]]]):
        with pytest.raises(ValueError, match="there is no type 'pickle'"):
            decode(encoded)


def test_pickle_that_cannot_be_loaded_becomes_text() -> None:
    assert decode(["pickle", ["bm90aGluZw==", "its text"]], with_pickle=True) == "its text"


def bomb() -> str:
    """Return an image that is small in bytes and large in pixels."""
    stream = io.BytesIO()
    Image.new("1", (20_000, 10_000)).save(stream, format="PNG")
    return base64.b64encode(stream.getvalue()).decode()


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = ["list", [value]]
    return value


SAME_HASH: list[Any] = [["int", hex(number * (2**61 - 1))] for number in range(8, MAX_EQUAL_HASHES + 20)]


INVALID: list[Any] = [
    {},
    [],
    ["list"],
    [1, []],
    ["list", 5],
    ["unknown", 1],
    ["__class__", 1],
    ["int", "zz"],
    ["int", 5],
    ["float", "x"],
    ["bytes", "not base64!"],
    ["text", "/w=="],
    ["datetime", "tomorrow"],
    ["Decimal", "x"],
    ["Decimal", "9" * (LONG_TEXT + 1)],
    ["timedelta", [10**10, 0, 0]],
    ["path", 5],
    ["image", base64.b64encode(b"no image").decode()],
    ["image", bomb()],
    ["array", ["O", [1], ""]],
    ["array", ["<f8", [10**9], ""]],
    ["array", ["<f8", [0, 10**30], ""]],
    ["array", ["<f8", [-1], ""]],
    ["array", ["<f8", [3], "AAAA"]],
    ["array", ["i4,i4", [1], "AAAAAAAAAAA="]],
    ["dict", [[["list", []], 1]]],
    ["dict", [[1]]],
    ["set", [["dict", []]]],
    ["set", SAME_HASH],
    ["dict", [[number, 1] for number in SAME_HASH]],
    nested(MAX_DEPTH + 2),
]


@pytest.mark.requirement("sandbox-values")
@pytest.mark.parametrize("encoded", INVALID, ids=lambda encoded: repr(encoded)[:40])
def test_invalid_input_is_a_value_error(encoded: Any) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        decode(encoded)


def test_depth_that_is_sent_can_be_received() -> None:
    value: Any = 1
    for _ in range(MAX_DEPTH):
        value = [value]
    assert decode(encode(value)) == value
    with pytest.raises(NotEncodable, match="nested more than 60 levels deep"):
        encode([value])
