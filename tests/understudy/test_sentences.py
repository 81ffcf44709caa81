"""Excerpts: the sentences that fit, none told twice, and nothing cut in the middle of something."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limelight.understudy.sentences import Ear, cut, prose, sentences


@pytest.mark.parametrize(
    ("text", "most", "left"),
    [
        ("short", 10, "short"),
        ("one two three", 9, "one two…"),
        ("see https://library.example/a/long/way for more", 20, "see…"),
        ("see [the page](https://a.example/b) for more", 12, "see…"),
        ("call `one_two_three` now", 10, "call…"),
        ("so **very loud** it is", 10, "so…"),
        ("cafe\u0301s are open", 4, "caf…"),
        ("👩\u200d🚀 flies", 2, "…"),
        ("https://library.example/a/long/way", 12, "…"),
    ],
)
def test_cuts(text: str, most: int, left: str) -> None:
    assert cut(text, most) == left


@given(st.text(alphabet="ab `[](): /\u0301👩\u200d", max_size=60), st.integers(1, 40))
def test_a_cut_says_so_and_never_leaves_an_open_end(text: str, most: int) -> None:
    left = cut(text, most)
    assert left == text if len(text) <= most else left.endswith("…") and len(left) <= most + 1
    for whole in re.findall(r"https?://[^\s<>\"]+|`[^`\n]*`", text):
        start = text.index(whole)
        assert not (start < len(left) - 1 < start + len(whole)) or whole in left or len(text) <= most


def test_sentences_end_where_a_new_one_begins() -> None:
    assert sentences('It is e.g. this. "No." She left! 3.5 is less.') == [
        "It is e.g. this.",
        '"No."',
        "She left!",
        "3.5 is less.",
    ]


PAGE = (
    "# Bees\n\nBees live in hives. A hive is warm.\n\nIn winter bees shiver. They eat honey.\n\n"
    "| a |\n|---|\n- Bees fly."
)


def test_prose_has_no_headings_and_no_tables() -> None:
    told = [one.text for one in prose(PAGE)]
    assert told == ["Bees live in hives.", "A hive is warm.", "In winter bees shiver.", "They eat honey.", "Bees fly."]


def test_the_best_sentence_comes_with_what_follows_it_and_only_once() -> None:
    texts = prose(PAGE)
    ear = Ear(["bees", "winter"], texts)
    assert ear.excerpt(texts) == "In winter bees shiver. They eat honey."
    assert ear.excerpt(texts, titled=1) == "Bees live in hives. A hive is warm."
    assert Ear(["xylophones"], texts).excerpt(texts) == ""
