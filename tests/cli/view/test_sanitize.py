"""Sanitized text: control characters are visible and have no effect, in both views."""

import pytest

from limelight.cli.view.sanitize import one_line, sanitize
from limelight.events import RunStarted, TextDelta, TextFinished, ToolFinished, ToolStarted
from tests.cli.view.screens import HOSTILE, numbered, plain_text, terminal_output


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a\tb\nc", "a\tb\nc"), ("a\r\nb\rc", "a\nb\nc"), ("\x00\x1b\x7f", "␀␛␡"), ("\x9b\u202e", "\\u009b\\u202e")],
)
def test_sanitize_makes_control_characters_visible(text: str, expected: str) -> None:
    assert sanitize(text) == expected


def test_one_line_joins_lines_and_cuts() -> None:
    assert one_line("a\n  b\tc", 10) == "a b c"
    assert one_line("x" * 100, 10) == "xxxxxxxxx…"


@pytest.mark.requirement("terminal-inert")
def test_views_show_hostile_text_without_executing_it() -> None:
    events = [
        RunStarted(agent=HOSTILE, input=HOSTILE),
        ToolStarted(call_id="1", name=HOSTILE, args={HOSTILE: HOSTILE}),
        ToolFinished(call_id="1", result=HOSTILE, error=HOSTILE),
        TextDelta(message_id="m", text=HOSTILE),
        TextFinished(message_id="m"),
    ]
    records = numbered(*events)
    for line in plain_text(records).splitlines():
        assert line.isprintable(), repr(line)
    screen = terminal_output(records)
    for sequence in ("\x1b[31m", "\x1b]0", "\x07", "\x08", "\x9b", "\u202e"):
        assert sequence not in screen
    assert "␛[31m" in screen
