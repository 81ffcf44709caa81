"""What may be answered to an approval, with plain values."""

from typing import Any

import pytest

from limelight.cli.approvals.answers import as_json, choice, json_object
from limelight.events import Decision

ALL: tuple[Decision, ...] = ("approve", "edit", "reject")


@pytest.mark.parametrize(
    ("word", "decisions", "expected"),
    [
        ("a", ALL, "approve"),
        (" APPROVE ", ALL, "approve"),
        ("app", ALL, "approve"),
        ("e", ALL, "edit"),
        ("r", ALL, "reject"),
        ("s", ALL, "show"),
        ("", ALL, None),
        ("ls -la", ALL, None),
        ("approved", ALL, None),
        ("e", ("approve", "reject"), None),
    ],
)
def test_a_word_or_its_beginning(word: str, decisions: tuple[Decision, ...], expected: str | None) -> None:
    assert choice(word, decisions) == expected


def test_new_arguments_are_an_object() -> None:
    assert json_object(' {"a": [1, {"b": null}]} ') == {"a": [1, {"b": None}]}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "Expecting value in line 1, column 1"),
        ('{\n  "a": oops\n}', "in line 2, column 8"),
        ("[1]", "Expected `object`, got `array`"),
        ('{"a": NaN}', "malformed"),
        ('{"a": "\ud800"}', "surrogates"),
    ],
)
def test_anything_else_is_refused_with_its_place(text: str, why: str) -> None:
    with pytest.raises(ValueError, match="That is no JSON object: ") as raised:
        json_object(text)
    assert why in str(raised.value)


@pytest.mark.parametrize("args", [{}, {"a": 'ä\n"', "b": {"c": [1.5, None]}}])
def test_what_is_offered_for_editing_is_valid(args: dict[str, Any]) -> None:
    for lines in (False, True):
        assert json_object(as_json(args, lines=lines)) == args
    assert "\n" not in as_json(args)


def test_what_never_was_json_is_left_as_it_is() -> None:
    assert as_json('{"a": ') == '{"a": '
