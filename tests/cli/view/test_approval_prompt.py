"""The approval prompt and its line editor."""

import pytest

from limelight.cli.view.approval_prompt import ApprovalPrompt, LineEditor
from limelight.events import ApprovalRequested
from tests.cli.view.screens import HOSTILE

MINUTE = 60_000


def draw(prompt: ApprovalPrompt, width: int = 60, height: int = 30, now: float = 0) -> list[str]:
    return [line.plain for line in prompt.draw(width, height, now)]


def test_prompt_shows_agent_arguments_and_expiry() -> None:
    request = ApprovalRequested(approval_id="a", name="send_mail", args={"to": "ann", "n": 3}, expires_at=10 * MINUTE)
    prompt = ApprovalPrompt(request, "postman")
    assert draw(prompt, now=2000) == [
        "┃ postman asks for approval: send_mail",
        "┃   to = ann",
        "┃   n = 3",
        "┃ Without a decision it is rejected in 9 min 58 s.",
        "┃ [a]pprove  [e]dit  [r]eject",
        "┃ >  ",
    ]
    assert draw(prompt, now=10 * MINUTE - 5000)[3] == "┃ Without a decision it is rejected in 5 s."
    assert draw(prompt, now=11 * MINUTE)[3] == "┃ Without a decision it is rejected in 0 s."
    prompt.hint, prompt.notice, prompt.line = "Why not?", "Something\nis wrong", LineEditor("because")
    assert draw(prompt)[-3:] == ["┃ Why not?", "┃ Something is wrong", "┃ > because "]


def test_prompt_shows_only_offered_decisions() -> None:
    prompt = ApprovalPrompt(
        ApprovalRequested(approval_id="a", name="x", args={}, decisions=("approve", "reject")), "me"
    )
    assert draw(prompt)[1:3] == ["┃ It waits without a time limit.", "┃ [a]pprove  [r]eject"]


@pytest.mark.parametrize(("width", "height"), [(60, 20), (100, 40), (24, 8)])
def test_prompt_with_large_arguments_fits_the_screen_and_offers_to_show_all(width: int, height: int) -> None:
    args = {"text": "\n".join(f"line {n} " + "x" * 200 for n in range(99)), **{f"k{n}": n for n in range(99)}}
    lines = draw(ApprovalPrompt(ApprovalRequested(approval_id="a", name="x" * 99, args=args), "me"), width, height)
    assert len(lines) <= height
    assert any("[s]how all" in line for line in lines)


def test_prompt_with_truncated_arguments_offers_to_show_all() -> None:
    prompt = ApprovalPrompt(ApprovalRequested(approval_id="a", name="x", args='{"a', truncated=True), "me")
    assert "[s]how all" in draw(prompt)[-2]


def test_prompt_shows_hostile_arguments_without_executing_them() -> None:
    request = ApprovalRequested(approval_id="a", name=HOSTILE, args={HOSTILE: HOSTILE, "b\nc": "d\ne"})
    prompt = ApprovalPrompt(request, HOSTILE)
    prompt.line = LineEditor(HOSTILE)
    for line in draw(prompt, width=500):
        assert line.isprintable(), repr(line)


def edited(keys: str, text: str = "") -> str:
    line = LineEditor(text)
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
def test_line_editor_handles_the_keys_of_a_shell(keys: str, text: str, expected: str) -> None:
    assert edited(keys, text) == expected


@pytest.mark.parametrize(
    ("keys", "end"), [("a\r", "enter"), ("a\n", "enter"), ("a\x1b", "escape"), ("a\nb\n", "enter")]
)
def test_line_editor_drops_keys_after_enter_or_escape(keys: str, end: str) -> None:
    line = LineEditor()
    assert (line.feed(keys), line.text) == (end, "a")


def test_line_editor_shows_the_part_of_a_long_line_with_the_cursor() -> None:
    line = LineEditor("0123456789")
    assert line.visible(5) == ("6789", " ", "")
    line.feed("\x01")
    assert line.visible(5) == ("", "0", "1234")
