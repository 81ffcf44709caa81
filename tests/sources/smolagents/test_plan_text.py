"""A plan in pieces: the same as the whole, however the model cuts it."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limelight.json_values import clean_text
from limelight.sources.smolagents.messages import PlanParser, plan_in

WORDS = st.sampled_from(["<end_plan>", "<end_", "plan>", "<", "1. Look", " ", "\n", "\t", "é", "\ud83d", "\ude00"])


def fed(pieces: list[str]) -> list[str]:
    plan = PlanParser()
    return [text for text in [*map(plan.feed, pieces), plan.end()] if text]


def test_each_piece_is_given_as_soon_as_it_is_clear() -> None:
    assert fed(["\n", "1. Look", " at", " it.\n", "2. Go", ".\n\n", "<end", "_plan>", " more"]) == [
        "1. Look", " at", " it.", "\n2. Go", "."
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["a < b", "a <end", "<end_plan", "x <end_plan_b>"])
def test_what_only_looks_like_the_end_belongs_to_the_plan(text: str) -> None:
    assert "".join(fed(list(text))) == text


@given(st.lists(WORDS, max_size=12), st.randoms(use_true_random=False))
def test_the_pieces_are_the_plan_wherever_it_is_cut(words: list[str], random: Random) -> None:
    text = "".join(words)
    cuts = sorted(random.sample(range(len(text) + 1), min(4, len(text) + 1)))
    pieces = [text[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert "".join(map(clean_text, fed(pieces))) == clean_text(plan_in(text))
