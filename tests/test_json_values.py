"""The number of values in a JSON text, which is estimated without decoding it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limelight.json_values import has_more_values

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet='a",[{\\\\\n', max_size=20),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=3), inner, max_size=5),
    max_leaves=30,
)


def count(value: Any) -> int:
    """Count the values and the keys of a JSON value."""
    match value:
        case dict():
            return 1 + sum(1 + count(inner) for inner in value.values())  # pyright: ignore[reportUnknownVariableType]
        case list():
            return 1 + sum(map(count, value))  # pyright: ignore[reportUnknownArgumentType]
        case _:
            return 1


def estimate(text: bytes) -> int:
    """The smallest limit that a text does not exceed."""
    return next(limit for limit in range(len(text) + 1) if not has_more_values(text, limit))


@given(VALUES, st.sampled_from([(",", ":"), (", ", ": ")]))
def test_estimate_is_close_to_the_number_of_values(value: Any, separators: tuple[str, str]) -> None:
    text = json.dumps(value, separators=separators).encode()
    assert count(value) / 2 - 1 <= estimate(text) <= 2 * count(value)


@pytest.mark.parametrize("value", ["{}", "[]", '"a"', "1", "null", '{"a":1}', "[[[]]]", '"\\\\"', '"\\""'])
def test_many_small_values_are_too_many(value: str) -> None:
    assert has_more_values(f"[{value},{','.join([value] * 2000)}]".encode(), 1000)


@pytest.mark.parametrize("text", [",", "[", "{", '"', "\\", '\\"', '\\",'])
def test_marks_inside_of_a_text_do_not_count(text: str) -> None:
    assert not has_more_values(json.dumps([text * 10_000, "b"]).encode(), 10)


def test_text_that_is_not_json_is_counted_too() -> None:
    assert has_more_values(b"[" * 2000, 1000)
    assert not has_more_values(b"x" * 2000, 1000)
