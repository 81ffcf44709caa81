"""Makes text from agents and tools safe for a terminal: replaces control characters by visible ones. Pure."""

import re

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_LINE_END = re.compile(r"\r\n?")


def sanitize(text: str) -> str:
    """Replace control and bidirectional characters by visible ones; keep line breaks and tabs."""
    return _CONTROL.sub(_visible, _LINE_END.sub("\n", text))


def one_line(text: str, width: int) -> str:
    """Sanitize a text and cut it to one line of `width` characters."""
    line = " ".join(sanitize(text[: width * 8]).split())
    return line if len(line) <= width else line[: width - 1] + "…"


def _visible(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"\\u{code:04x}"
