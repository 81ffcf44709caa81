"""The prompt for one approval: the agent, the tool call, the time limit, and the line that the person types. Pure.

The approval dialogue updates the prompt while the person types; the live view draws it.
"""

import re
from typing import Literal

from rich.text import Text

from limelight.answer_schemas import choices
from limelight.cli.view.render import (
    INTERRUPT,
    QUESTION_LINES,
    approval_subject,
    format_duration,
    question_lines,
    shorten_arguments,
)
from limelight.cli.view.sanitize import one_line, sanitize
from limelight.events import ApprovalRequested
from limelight.json_schema import Schema
from limelight.json_values import fields_of

BAR = "┃ "
MIN_WIDTH = 20
FRAME_LINES = 5
"""Number of lines that a prompt needs in addition to the lines of the arguments."""
CHOICES = {"approve": "[a]pprove", "edit": "[e]dit", "reject": "[r]eject"}
ANSWER = "[t]ype an answer"
MAX_CHOICES = 9
"""Maximum number of listed answers that a prompt shows."""
SHOW_ALL = "[s]how all"

_KEY = re.compile(r"\x1b[\[O][0-9;]*[A-Za-z~]|.", re.DOTALL)
_SPACE = re.compile(r"\s")
LEFT, RIGHT = ("\x1b[D", "\x1bOD", "\x02"), ("\x1b[C", "\x1bOC", "\x06")
HOME, END = ("\x1b[H", "\x1bOH", "\x1b[1~", "\x01"), ("\x1b[F", "\x1bOF", "\x1b[4~", "\x05")
BACKSPACE, DELETE = ("\x7f", "\x08"), ("\x1b[3~", "\x04")
DELETE_TO_START, DELETE_WORD = "\x15", "\x17"


class LineEditor:
    """One line of text with a cursor and the editing keys of a shell."""

    def __init__(self, text: str = "") -> None:
        self.text = _SPACE.sub(" ", text)
        self.cursor = len(self.text)

    def feed(self, keys: str) -> Literal["enter", "escape"] | None:
        """Apply key presses up to Enter or Escape. Keys after that are dropped: they were not meant for this line."""
        for key in _KEY.findall(keys):
            if key in ("\r", "\n"):
                return "enter"
            if key == "\x1b":
                return "escape"
            self._press(key)
        return None

    def _press(self, key: str) -> None:
        if key in LEFT:
            self.cursor = max(0, self.cursor - 1)
        elif key in RIGHT:
            self.cursor = min(len(self.text), self.cursor + 1)
        elif key in HOME:
            self.cursor = 0
        elif key in END:
            self.cursor = len(self.text)
        elif key in BACKSPACE:
            self._remove(self.cursor - 1, self.cursor)
        elif key in DELETE:
            self._remove(self.cursor, self.cursor + 1)
        elif key == DELETE_TO_START:
            self._remove(0, self.cursor)
        elif key == DELETE_WORD:
            before = self.text[: self.cursor].rstrip()
            self._remove(before.rfind(" ") + 1, self.cursor)
        elif key.isprintable():
            self.text = self.text[: self.cursor] + key + self.text[self.cursor :]
            self.cursor += 1

    def _remove(self, start: int, end: int) -> None:
        start = max(0, start)
        self.text = self.text[:start] + self.text[end:]
        self.cursor = start

    def visible(self, width: int) -> tuple[str, str, str]:
        """Return the visible part of the line, `width` characters, as the texts before, at and after the cursor."""
        start = max(0, self.cursor - width + 1)
        shown = f"{self.text} "[start : start + width]
        at = self.cursor - start
        return shown[:at], shown[at : at + 1], shown[at + 1 :]


def numbered_choices(schema: Schema) -> list[str]:
    """Return the answers that a schema lists as numbered lines, with their descriptions."""
    listed = choices(schema) or choices(fields_of(schema.get("items")))
    return [
        f"{number} {choice.label}" + (f": {choice.description}" if choice.description else "")
        for number, choice in enumerate(listed, 1)
    ]


class ApprovalPrompt:
    """The prompt for an open approval. `hint` says what to type, `notice` why the last input was invalid."""

    def __init__(self, request: ApprovalRequested, agent: str) -> None:
        self.request = request
        self.agent = agent
        self.hint = ""
        self.notice = ""
        self.line = LineEditor()

    def draw(self, width: int, height: int, now: float) -> list[Text]:
        """Return the lines of the prompt for a screen of this size. `now` is the time in milliseconds."""
        room = max(MIN_WIDTH, width - len(BAR) - 1)
        subject = approval_subject(self.request.name, self.request.args, self.request.question)
        question = question_lines(subject.question, room - 2, min(QUESTION_LINES, max(1, height - FRAME_LINES)))
        listed = self._listed(room - 2)
        left = height - FRAME_LINES - len(question) - len(listed)
        args, cut = shorten_arguments(subject.args, room - 2, max(1, left))
        is_question = subject.is_question or "approve" not in self.request.decisions
        title = f"{one_line(self.agent, 40)} {'asks' if is_question else 'asks for approval'}: "
        cut = cut or self.request.truncated or (subject.is_question and len(title) + len(subject.title) > room)
        lines = [Text(title, "yellow").append(subject.title, "bold")]
        lines += [Text(f"  {line}") for line in (*question, *args, *listed)]
        lines.append(Text(self._expiry(now), "dim"))
        lines.append(Text(sanitize(self.hint) or self._choices(cut), "bold" if not self.hint else ""))
        if self.notice:
            lines.append(Text(one_line(self.notice, room), "red"))
        before, at, after = self.line.visible(room - 2)
        lines.append(Text("> ").append(sanitize(before)).append(sanitize(at), "reverse").append(sanitize(after)))
        return [Text(no_wrap=True, overflow="ellipsis").append(BAR, "yellow").append_text(line) for line in lines]

    def _choices(self, cut: bool) -> str:
        words = [CHOICES[decision] for decision in self.request.decisions]
        if self.request.answer_schema is not None:
            is_question = self.request.name == INTERRUPT or "approve" not in self.request.decisions
            words.insert(0 if is_question else len(words), ANSWER)
        return "  ".join([*words, SHOW_ALL] if cut else words)

    def _listed(self, width: int) -> list[str]:
        """Return a numbered line for each answer that the request lists."""
        lines = numbered_choices(self.request.answer_schema or {})
        return [one_line(line, width) for line in lines[:MAX_CHOICES]]

    def _expiry(self, now: float) -> str:
        if self.request.expires_at is None:
            return "It waits without a time limit."
        left = max(0, round((self.request.expires_at - now) / 1000))
        return f"Without a decision it is rejected in {format_duration(left * 1000) if left >= 60 else f'{left} s'}."
