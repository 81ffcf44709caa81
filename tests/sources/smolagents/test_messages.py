"""smolagents: parsers of a streamed reply give the same at every cut."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limelight.json_values import clean_text
from limelight.sources.smolagents.messages import CodeParser, Piece, PlanParser, plan_in

WORDS = st.sampled_from(["<end_plan>", "<end_", "plan>", "<", "1. Look", " ", "\n", "\t", "é", "\ud83d", "\ude00"])


def fed(pieces: list[str]) -> list[str]:
    plan = PlanParser()
    return [text for text in [*map(plan.feed, pieces), plan.end()] if text]


def test_plan_parser_returns_each_piece_as_soon_as_it_is_unambiguous() -> None:
    assert fed(["\n", "1. Look", " at", " it.\n", "2. Go", ".\n\n", "<end", "_plan>", " more"]) == [
        "1. Look", " at", " it.", "\n2. Go", "."
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["a < b", "a <end", "<end_plan", "x <end_plan_b>"])
def test_text_that_resembles_the_end_tag_belongs_to_the_plan(text: str) -> None:
    assert "".join(fed(list(text))) == text


@given(st.lists(WORDS, max_size=12), st.randoms(use_true_random=False))
def test_pieces_of_a_plan_join_to_the_plan_at_random_cuts(words: list[str], random: Random) -> None:
    text = "".join(words)
    cuts = sorted(random.sample(range(len(text) + 1), min(4, len(text) + 1)))
    pieces = [text[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert "".join(map(clean_text, fed(pieces))) == clean_text(plan_in(text))


def joined(pieces: list[Piece]) -> list[Piece]:
    made: list[Piece] = []
    for piece in pieces:
        if made and made[-1].kind == piece.kind:
            made[-1] = Piece(piece.kind, made[-1].text + piece.text)
        else:
            made.append(piece)
    return made


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hm. <code>\nx = 1\n</code>", [Piece("thought", "Hm."), Piece("code", "x = 1")]),
        ("<code>a < b</cod", [Piece("code", "a < b")]),
        ("a <b> c <", [Piece("thought", "a <b> c <")]),
        (
            "<code> a\n\nb </code> and <code>\nc",
            [Piece("code", "a\n\nb"), Piece("thought", "and"), Piece("code", "\n\nc")],
        ),
        ("<code>  </code> after", [Piece("thought", "after")]),
        ("<<code>x</code>", [Piece("thought", "<"), Piece("code", "x")]),
        ("", []),
    ],
)
def test_code_parser_separates_thought_and_code_at_random_cuts(text: str, expected: list[Piece], size: int) -> None:
    blocks = CodeParser(("<code>", "</code>"))
    pieces = [piece for at in range(0, len(text), size) for piece in blocks.feed(text[at : at + size])]
    assert joined(pieces + blocks.end()) == expected


def test_code_parser_ignores_tags_that_are_regular_expressions() -> None:
    blocks = CodeParser(("```(?:py|python)", "```"))
    assert blocks.feed("So ```py\nx```") == [Piece("thought", "So ```py\nx```")]
