"""Decoding of string fields in streamed JSON: any split of the text, escapes, other values and invalid text."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limelight.streamed_json import FieldText, StringFieldDecoder
from tests.support.strategies import json_values, texts


def decoded(*pieces: str, keys: tuple[str, ...] = ("answer",)) -> dict[str, str]:
    """The texts of the fields after these pieces."""
    decoder = StringFieldDecoder(*keys)
    found: dict[str, str] = {}
    for piece in pieces:
        for key, text in decoder.feed(piece):
            found[key] = found.get(key, "") + text
    return found


def split(text: str, cuts: list[int]) -> list[str]:
    places = sorted({cut % (len(text) + 1) for cut in cuts} | {0, len(text)})
    return [text[start:end] for start, end in pairwise(places)]


@given(
    st.dictionaries(texts(surrogates=True) | st.sampled_from(["answer", "code"]), json_values(surrogates=True)),
    st.lists(st.integers(0, 10_000)),
    st.booleans(),
    st.sampled_from([None, 2]),
)
def test_fields_of_any_object_are_decoded_in_any_pieces(
    fields: dict[str, Any], cuts: list[int], ascii_only: bool, indent: int | None
) -> None:
    keys = ("answer", "code")
    # A text with half of a surrogate pair, unescaped, cannot arrive in a UTF-8 stream.
    ascii_only = ascii_only or any("\ud800" <= c <= "\udfff" for c in json.dumps(fields, ensure_ascii=False))
    text = json.dumps(fields, ensure_ascii=ascii_only, indent=indent)
    pairs = json.loads(text)  # joins the halves of pairs
    expected = {key: value for key, value in pairs.items() if key in keys and isinstance(value, str) and value}
    expected = {key: value.encode("utf-8", "replace").decode() for key, value in expected.items()}
    assert decoded(*split(text, cuts), keys=keys) == expected
    assert decoded(*text, keys=keys) == expected


def test_text_is_returned_as_soon_as_it_arrives() -> None:
    decoder = StringFieldDecoder("answer")
    pieces = ['{"ans', 'wer": ', '"One', " two\\", "n", "\\u00", "e9\\ud83d", "\\ude00", '!"', "}"]
    assert [decoder.feed(piece) for piece in pieces] == [
        [],
        [],
        [FieldText("answer", "One")],
        [FieldText("answer", " two")],
        [FieldText("answer", "\n")],
        [],
        [FieldText("answer", "é")],
        [FieldText("answer", "😀")],
        [FieldText("answer", "!")],
        [],
    ]


@pytest.mark.parametrize(
    "value", ["1", "-1.5e3", "true", "null", '["answer"]', '{"answer": "inner \\"quoted\\" }"}', "[{}, [1]]"]
)
def test_value_that_is_not_a_string_gives_no_text(value: str) -> None:
    assert decoded(f'{{"answer": {value}, "code": "c"}}', keys=("answer", "code")) == {"code": "c"}


@pytest.mark.parametrize(
    ("text", "before"),
    [
        ('{"answer": "a\nb"}', "a"),
        ('{"answer": "a\\xb"}', "a"),
        ('{"answer": "a\\u00zz"}', "a"),
        ('{"answer": "a"', "a"),
        ('{"answer": "a', "a"),
        ('{"answer" "a"}', ""),
        ('{"other": ], "answer": "a"}', ""),
        ('["answer", "a"]', ""),
        ('"answer"', ""),
        ("", ""),
    ],
)
def test_invalid_text_gives_what_came_before_the_fault(text: str, before: str) -> None:
    assert decoded(text).get("answer", "") == before
    assert decoded(*text).get("answer", "") == before


def test_repeated_key_gives_its_first_value() -> None:
    assert decoded('{"answer": "a", "answer": "b"}') == {"answer": "a"}


def test_half_of_a_pair_becomes_a_question_mark() -> None:
    assert decoded('{"answer": "\\ud83d', 'x"}') == {"answer": "?x"}
    assert decoded('{"answer": "x\\ud83d', '"}') == {"answer": "x?"}


def test_pieces_are_read_once() -> None:
    """The decoder keeps no more than an incomplete escape sequence between two pieces."""
    decoder = StringFieldDecoder("answer")
    decoder.feed('{"answer": "')
    for _ in range(1_000):
        decoder.feed("long text \\u00")
        decoder.feed("e9")
        assert len(decoder.__dict__["_held"]) <= 6
