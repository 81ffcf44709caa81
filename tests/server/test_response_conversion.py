"""The converted parts of a value are the bytes of the complete value, wherever it was divided."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from limelight.server.response_conversion import Conversion, JsonStringConversion, Utf8Conversion

CUTS = st.lists(st.integers(0, 40), max_size=6)


def converted(make: Callable[[], Conversion], body: bytes, cuts: Sequence[int]) -> bytes:
    places = [0, *sorted(cuts), max(len(body), *cuts, 0)]
    parts = [body[start:end] for start, end in pairwise(places)]
    conversion = make()
    return b"".join([*(conversion.feed(part) for part in parts), conversion.end()])


@given(st.text(max_size=40), CUTS)
def test_text_in_parts_is_the_json_string_of_the_text(text: str, cuts: list[int]) -> None:
    assert converted(JsonStringConversion, text.encode(), cuts) == msgspec.json.encode(text)


@given(st.binary(max_size=40) | st.text().map(lambda text: text.encode()[:-1]), CUTS)
def test_invalid_bytes_in_parts_are_replaced_as_in_the_complete_value(body: bytes, cuts: list[int]) -> None:
    text = body.decode("utf-8", "replace")
    assert converted(Utf8Conversion, body, cuts) == text.encode()
    assert converted(JsonStringConversion, body, cuts) == msgspec.json.encode(text)
