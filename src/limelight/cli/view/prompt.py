"""A question to the person at the terminal: who asks, for what, until when, and what has been typed so far. Pure.

`dialogue` changes it while the person types; the live view draws it again and again. It must not know the terminal.
"""

from typing import Any

from rich.text import Text

from limelight.cli.view.arguments import shortened
from limelight.cli.view.line_editor import Line
from limelight.cli.view.sanitize import one_line, safe
from limelight.cli.view.state import took
from limelight.cli.view.subject import subject_of
from limelight.events import ApprovalRequested

BAR = "┃ "
NARROWEST = 20
LINES_AROUND = 5
"""How many lines a question has beside its arguments."""
CHOICES = {"approve": "[a]pprove", "edit": "[e]dit", "reject": "[r]eject"}
SHOW = "[s]how all"


class Question:
    """One approval that waits for an answer. `hint` says what to type, `notice` what was wrong with it."""

    def __init__(self, asked: ApprovalRequested, who: str) -> None:
        self.approval_id = asked.approval_id
        self.name = asked.name
        self.args: dict[str, Any] | str = asked.args
        self.whole = not asked.truncated
        self.decisions = asked.decisions
        self.expires_at = asked.expires_at
        self.who = who
        self.hint = ""
        self.notice = ""
        self.line = Line()

    def draw(self, width: int, height: int, now: float) -> list[Text]:
        """Its lines on a screen of that size at that time (ms)."""
        room = max(NARROWEST, width - len(BAR) - 1)
        subject = subject_of(self.name, self.args)
        args, left_out = shortened(subject.args, room - 2, max(1, height - LINES_AROUND))
        title = f"{one_line(self.who, 40)} {'asks' if subject.own_words else 'asks for approval'}: "
        left_out = left_out or not self.whole or (subject.own_words and len(title) + len(subject.title) > room)
        lines = [Text(title, "yellow").append(subject.title, "bold")]
        lines += [Text(f"  {line}") for line in args]
        lines.append(Text(self._until(now), "dim"))
        lines.append(Text(safe(self.hint) or self.choices(left_out), "bold" if not self.hint else ""))
        if self.notice:
            lines.append(Text(one_line(self.notice, room), "red"))
        lines.append(self._typed(room))
        return [_barred(line) for line in lines]

    def choices(self, left_out: bool) -> str:
        """What may be answered."""
        words = [CHOICES[decision] for decision in self.decisions]
        return "  ".join([*words, SHOW] if left_out else words)

    def _until(self, now: float) -> str:
        if self.expires_at is None:
            return "It waits until somebody decides."
        left = max(0, round((self.expires_at - now) / 1000))
        return f"Without an answer it is a no in {took(left * 1000) if left >= 60 else f'{left} s'}."

    def _typed(self, room: int) -> Text:
        before, at, behind = self.line.window(room - 2)
        return Text("> ").append(safe(before)).append(safe(at), "reverse").append(safe(behind))


def _barred(line: Text) -> Text:
    """One line behind the bar, cut at the edge of the screen."""
    return Text(no_wrap=True, overflow="ellipsis").append(BAR, "yellow").append_text(line)
