"""A line that a person types: keys in, text out. Pure; the terminal is elsewhere, and so is what the line means."""

import re
from typing import Literal

_KEY = re.compile(r"\x1b[\[O][0-9;]*[A-Za-z~]|.", re.DOTALL)
_BREAKS = re.compile(r"\s")
LEFT, RIGHT = ("\x1b[D", "\x1bOD", "\x02"), ("\x1b[C", "\x1bOC", "\x06")
HOME, END = ("\x1b[H", "\x1bOH", "\x1b[1~", "\x01"), ("\x1b[F", "\x1bOF", "\x1b[4~", "\x05")
BACKSPACE, DELETE = ("\x7f", "\x08"), ("\x1b[3~", "\x04")
TO_THE_START, WORD = "\x15", "\x17"


class Line:
    """Text with a cursor. Knows the keys that a shell knows."""

    def __init__(self, text: str = "") -> None:
        self.text = _BREAKS.sub(" ", text)
        self.cursor = len(self.text)

    def feed(self, keys: str) -> Literal["enter", "escape"] | None:
        """Take in what was typed. Behind Enter and Escape nothing counts: it was meant for something else."""
        for key in _KEY.findall(keys):
            if key in ("\r", "\n"):
                return "enter"
            if key == "\x1b":
                return "escape"
            self._take(key)
        return None

    def _take(self, key: str) -> None:
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
        elif key == TO_THE_START:
            self._remove(0, self.cursor)
        elif key == WORD:
            before = self.text[: self.cursor].rstrip()
            self._remove(before.rfind(" ") + 1, self.cursor)
        elif key.isprintable():
            self.text = self.text[: self.cursor] + key + self.text[self.cursor :]
            self.cursor += 1

    def _remove(self, start: int, end: int) -> None:
        start = max(0, start)
        self.text = self.text[:start] + self.text[end:]
        self.cursor = start

    def window(self, width: int) -> tuple[str, str, str]:
        """What is seen of it: before, at and behind the cursor, `width` characters in all."""
        start = max(0, self.cursor - width + 1)
        shown = f"{self.text} "[start : start + width]
        at = self.cursor - start
        return shown[:at], shown[at : at + 1], shown[at + 1 :]
