"""Text from outside, made harmless for a terminal: control characters are shown, never obeyed. Pure."""

import re

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_ENDINGS = re.compile(r"\r\n?")


def safe(text: str) -> str:
    """The same text with line breaks and tabs, but without anything that moves a cursor or turns the writing."""
    return _CONTROL.sub(_shown, _ENDINGS.sub("\n", text))


def one_line(text: str, width: int) -> str:
    """The beginning of a text on one line."""
    line = " ".join(safe(text[: width * 8]).split())
    return line if len(line) <= width else line[: width - 1] + "…"


def _shown(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"\\u{code:04x}"
