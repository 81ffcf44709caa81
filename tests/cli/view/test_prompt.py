"""A question on the screen and the line that is typed below it, with plain values."""

import pytest

from limelight.cli.view.arguments import argument_lines, shortened
from limelight.cli.view.line_editor import Line
from limelight.cli.view.prompt import Question
from limelight.events import ApprovalRequested
from tests.cli.view.test_views import HOSTILE

MINUTE = 60_000


def drawn(question: Question, width: int = 60, height: int = 30, now: float = 0) -> list[str]:
    return [line.plain for line in question.draw(width, height, now)]


def test_a_question_says_who_asks_for_what_until_when() -> None:
    asked = ApprovalRequested(approval_id="a", name="send_mail", args={"to": "ann", "n": 3}, expires_at=10 * MINUTE)
    question = Question(asked, "postman")
    assert drawn(question, now=2000) == [
        "┃ postman asks for approval: send_mail",
        "┃   to = ann",
        "┃   n = 3",
        "┃ Without an answer it is a no in 9 min 58 s.",
        "┃ [a]pprove  [e]dit  [r]eject",
        "┃ >  ",
    ]
    assert drawn(question, now=10 * MINUTE - 5000)[3] == "┃ Without an answer it is a no in 5 s."
    assert drawn(question, now=11 * MINUTE)[3] == "┃ Without an answer it is a no in 0 s."
    question.hint, question.notice, question.line = "Why not?", "Something\nis wrong", Line("because")
    assert drawn(question)[-3:] == ["┃ Why not?", "┃ Something is wrong", "┃ > because "]


def test_only_what_is_offered_can_be_chosen() -> None:
    question = Question(ApprovalRequested(approval_id="a", name="x", args={}, decisions=("approve", "reject")), "me")
    assert drawn(question)[1:3] == ["┃ It waits until somebody decides.", "┃ [a]pprove  [r]eject"]


@pytest.mark.parametrize(("width", "height"), [(60, 20), (100, 40), (24, 8)])
def test_a_large_question_fits_the_screen_and_says_that_there_is_more(width: int, height: int) -> None:
    args = {"text": "\n".join(f"line {n} " + "x" * 200 for n in range(99)), **{f"k{n}": n for n in range(99)}}
    lines = drawn(Question(ApprovalRequested(approval_id="a", name="x" * 99, args=args), "me"), width, height)
    assert len(lines) <= height
    assert any("[s]how all" in line for line in lines)


def test_a_preview_says_that_there_is_more() -> None:
    question = Question(ApprovalRequested(approval_id="a", name="x", args='{"a', truncated=True), "me")
    assert "[s]how all" in drawn(question)[-2]


def test_hostile_arguments_are_shown_and_not_obeyed() -> None:
    asked = ApprovalRequested(approval_id="a", name=HOSTILE, args={HOSTILE: HOSTILE, "b\nc": "d\ne"})
    question = Question(asked, HOSTILE)
    question.line = Line(HOSTILE)
    for line in drawn(question, width=500):
        assert line.isprintable(), repr(line)
    assert argument_lines({"b\nc": "d"}) == [["b c = d"]]


def test_of_each_argument_the_beginning_is_seen() -> None:
    lines, left_out = shortened({"text": "\n".join("abcdefgh"), "path": "x" * 50}, width=20, most=10)
    assert lines == ["text =", "  a", "  b", "  c", "  … 5 more lines", "path = xxxxxxxxxxxx…"]
    assert left_out
    assert shortened({"a": "b", "c": [1]}, 20, 10) == (["a = b", "c = [1]"], False)
    assert shortened({"a": 1, "b": 2}, 20, 1) == (["a = 1"], True)
    assert shortened("not json", 20, 5) == (["not json"], False)


def typed(keys: str, text: str = "") -> str:
    line = Line(text)
    assert line.feed(keys) is None
    return f"{line.text[: line.cursor]}|{line.text[line.cursor :]}"


@pytest.mark.parametrize(
    ("keys", "text", "expected"),
    [
        ("abc", "", "abc|"),
        ("ä🦊", "", "ä🦊|"),
        ("\x7f\x7f", "abc", "a|"),
        ("\x7f", "", "|"),
        ("\x1b[D\x1b[DX", "abc", "aX|bc"),
        ("\x1b[H\x1b[3~", "abc", "|bc"),
        ("\x01\x1b[Cx\x05y", "abc", "axbcy|"),
        ("\x15", "abc", "|"),
        ("\x17", "one two ", "one |"),
        ("\x1b[A\x1b[B\x00\t", "abc", "abc|"),
    ],
)
def test_a_line_knows_the_usual_keys(keys: str, text: str, expected: str) -> None:
    assert typed(keys, text) == expected


@pytest.mark.parametrize(
    ("keys", "end"), [("a\r", "enter"), ("a\n", "enter"), ("a\x1b", "escape"), ("a\nb\n", "enter")]
)
def test_what_comes_behind_the_end_does_not_count(keys: str, end: str) -> None:
    line = Line()
    assert (line.feed(keys), line.text) == (end, "a")


def test_of_a_long_line_the_cursor_is_seen() -> None:
    line = Line("0123456789")
    assert line.window(5) == ("6789", " ", "")
    line.feed("\x01")
    assert line.window(5) == ("", "0", "1234")
