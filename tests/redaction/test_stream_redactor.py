"""Redaction of texts that come in pieces."""

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limelight.auth.api_keys import make_key
from limelight.redaction.rules import REDACTED, Redactor
from limelight.redaction.stream_redactor import MAX_LINE, StreamRedactor

TOKEN = "tok-123456789012"
SECRETS = [TOKEN, "s3cr3t-s3cr3t", f"{TOKEN}-long", "aaaaaaaaaaaa", "12-tok-tok-tok", "two\nlines-aaa"]
CARD = re.compile(r"\b\d{4}-\d{4}\b")
TEXTS = st.lists(st.sampled_from(SECRETS) | st.text("tokens3-12a\n", max_size=9), max_size=6).map("".join)


def passed(redactor: Redactor, *pieces: str) -> list[str]:
    """Return what is passed on after each piece, and at the end."""
    text = StreamRedactor(redactor)
    return [*(text.feed(piece) for piece in pieces), text.flush()]


def matches_redacted(found: str, expected: str) -> bool:
    """Whether a text is the redacted one. Up to three characters of each secret may have been passed on before it."""
    return (
        re.fullmatch(r".{0,3}".join(map(re.escape, re.split(r"(?=\[redacted])", expected))), found, re.DOTALL)
        is not None
    )


@given(TEXTS, st.lists(st.integers(0, 90), max_size=9))
def test_secret_is_redacted_wherever_it_is_split(whole: str, cuts: list[int]) -> None:
    redactor = Redactor(secrets=SECRETS)
    bounds = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    said = "".join(passed(redactor, *(whole[start:end] for start, end in itertools.pairwise(bounds))))
    assert matches_redacted(said, redactor.redact_text(whole))


@pytest.mark.parametrize("patterns", [[], [CARD]])
@given(TEXTS, st.integers(1, 5))
def test_secret_is_redacted_in_pieces_of_any_size(patterns: list[re.Pattern[str]], whole: str, size: int) -> None:
    redactor = Redactor(patterns, secrets=SECRETS)
    said = "".join(passed(redactor, *(whole[at : at + size] for at in range(0, len(whole), size))))
    assert matches_redacted(said, redactor.redact_text(whole))


@pytest.mark.parametrize("size", range(1, 70))
def test_api_key_is_redacted_wherever_it_is_split(size: int) -> None:
    key = make_key("ann", ("use",), 1)[1]
    text = f"key {key} ends"
    said = "".join(passed(Redactor(), *(text[at : at + size] for at in range(0, len(text), size))))
    assert matches_redacted(said, f"key {REDACTED} ends")


def test_text_that_only_begins_like_a_secret_is_released() -> None:
    assert passed(Redactor(secrets=[TOKEN]), "to", "k", " is a_name ") == ["to", "k", " is a_name ", ""]
    assert passed(Redactor(secrets=[TOKEN]), "tok-1", "3", "") == ["", "tok-13", "", ""]


def test_overlapping_secrets_in_pieces_are_redacted_once() -> None:
    assert passed(Redactor(secrets=SECRETS), "a" * 12, "aaa", "a", " b") == [REDACTED, "", "", " b", ""]
    assert passed(Redactor(secrets=SECRETS), TOKEN, "-lon", "x") == ["", "", f"{REDACTED}-lonx", ""]
    assert passed(Redactor(secrets=SECRETS), TOKEN, "-long") == ["", REDACTED, ""]


def test_line_is_held_until_it_ends_if_there_are_patterns() -> None:
    assert passed(Redactor([CARD]), "one\ntwo", " three\n", "four") == ["one\n", "two three\n", "", "four"]
    assert passed(Redactor([CARD]), "50 %\r51", " %\r") == ["50 %\r", "51 %\r", ""]
    assert passed(Redactor([CARD]), "1234-", "5678\n") == ["", f"{REDACTED}\n", ""]


@pytest.mark.parametrize("card", ["1234-5678", "1234-56", ""])
def test_only_the_end_of_a_long_line_is_held(card: str) -> None:
    line = "x " * MAX_LINE + card
    redactor = Redactor([CARD])
    said = passed(redactor, line, " and more")
    assert len(line) - 2000 < len(said[0]) <= len(line) - 1024
    assert "".join(said) == redactor.redact_text(line + " and more")


def test_match_of_a_pattern_is_not_split() -> None:
    line = "x" * MAX_LINE + "y" * 3000
    assert passed(Redactor([re.compile("y+")]), line, "yy") == ["x" * MAX_LINE, "", REDACTED]


def test_endless_match_is_redacted_without_keeping_it() -> None:
    redactor = Redactor([re.compile("key=[A-Z]+")])
    said = passed(redactor, "a key=", *["X" * MAX_LINE] * 5, "XX end\nnext key=", "X line\n")
    assert "".join(said) == f"a {REDACTED}\nnext {REDACTED} line\n"
