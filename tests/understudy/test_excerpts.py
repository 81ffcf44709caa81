"""Excerpts: the matching sentences, none twice, and truncation between words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limelight.understudy.excerpts import excerpt, paragraphs, truncate

PAGE = (
    "# Bees\n\nBees live in hives. A hive is warm.\n\nIn winter bees shiver. They eat honey.\n\n"
    "| a |\n|---|\n- Bees fly."
)


@pytest.mark.parametrize(
    ("text", "limit", "truncated"),
    [
        ("short", 10, "short"),
        ("one two three", 9, "one two…"),
        ("one two three", 7, "one two…"),
        ("one, two", 5, "one…"),
        ("abcdefgh", 4, "abcd…"),
    ],
)
def test_truncate_cuts_between_words(text: str, limit: int, truncated: str) -> None:
    assert truncate(text, limit) == truncated


@given(st.text(max_size=60), st.integers(1, 40))
def test_truncated_text_ends_with_an_ellipsis_and_is_no_longer_than_the_limit(text: str, limit: int) -> None:
    short = truncate(text, limit)
    assert short == text if len(text) <= limit else short.endswith("…") and len(short) <= limit + 1


def test_sentences_end_before_a_capital_or_a_digit() -> None:
    assert paragraphs('It is e.g. this. "No." She left! 3.5 is less.') == [
        ["It is e.g. this.", '"No."', "She left!", "3.5 is less."]
    ]


def test_paragraphs_leave_out_headings_and_tables() -> None:
    assert paragraphs(PAGE) == [
        ["Bees live in hives.", "A hive is warm."],
        ["In winter bees shiver.", "They eat honey."],
        ["Bees fly."],
    ]


def test_excerpt_is_the_best_sentence_with_its_successors_and_never_repeated() -> None:
    used: set[str] = set()
    assert excerpt(PAGE, ["bees", "winter"], 200, used=used) == "In winter bees shiver. They eat honey."
    assert excerpt(PAGE, ["bees", "winter"], 200, used=used) == "Bees live in hives. A hive is warm."
    assert excerpt(PAGE, ["xylophones"], 200, used=used) == ""


def test_excerpt_is_the_beginning_if_the_title_matches_as_well() -> None:
    assert excerpt("It is warm. Bees live here.", ["bees"], 15, title="A bee", used=set()) == "It is warm."
