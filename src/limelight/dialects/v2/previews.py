"""Shortens texts and tool arguments to previews for v2 messages, without cutting a visible character apart. Pure.

A preview does not end inside of a grapheme: one character for the reader, which may consist of several code points.
The rules are those of Unicode text segmentation (UAX 29), as far as the standard library has the data for them.
"""

import unicodedata
from typing import Any

from limelight.dialects.base import text_of

THOUGHT_CHARS = 60
SUMMARY_ARGS = 3
SUMMARY_CHARS = 40
RAW_SUMMARY_CHARS = 100
ZERO_WIDTH_JOINER = "\u200d"
EXTENDERS = "\u200c\u200d\u0e33\u0eb3"
"""Code points that continue a visible character although they are not marks: joiners, and two vowel signs."""
VIRAMA = 9
"""Unicode's combining class of viramas, signs that bind the next consonant to the previous one."""


def preview(text: str, limit: int = THOUGHT_CHARS) -> str:
    """Return the first `limit` characters of a text, followed by "..." if the text is longer."""
    return text if len(text) <= limit else text[: _grapheme_boundary(text, limit)] + "..."


def args_summary(args: dict[str, Any] | str) -> str:
    """Return a short text with the first arguments of a tool call, for the call's badge."""
    if isinstance(args, str):
        return preview(args, RAW_SUMMARY_CHARS)
    first = list(args.items())[:SUMMARY_ARGS]
    shown = ", ".join(f"{key}={preview(text_of(value), SUMMARY_CHARS)}" for key, value in first)
    return f"{shown} … ({len(args)} args)" if len(args) > SUMMARY_ARGS else shown


def _grapheme_boundary(text: str, limit: int) -> int:
    """Return the last end of a visible character at or before `limit`; `limit` if one character is longer."""
    return next((index for index in range(limit, 0, -1) if not _is_inside_grapheme(text, index)), limit)


def _is_inside_grapheme(text: str, index: int) -> bool:
    before, after = text[index - 1], text[index]
    if _extends_grapheme(after) or before == ZERO_WIDTH_JOINER or (before, after) == ("\r", "\n"):
        return True
    if _is_regional_indicator(after):
        return _regional_indicators_before(text, index) % 2 == 1
    return unicodedata.combining(before) == VIRAMA and unicodedata.category(after) == "Lo"


def _extends_grapheme(character: str) -> bool:
    """Whether a code point continues a visible character: a mark, skin tone, flag's tag, or Hangul vowel or final."""
    if character.isascii():
        return False
    code = ord(character)
    is_modifier = 0x1F3FB <= code <= 0x1F3FF or 0xE0020 <= code <= 0xE007F or 0x1160 <= code <= 0x11FF
    return is_modifier or character in EXTENDERS or unicodedata.category(character) in ("Mn", "Mc", "Me")


def _is_regional_indicator(character: str) -> bool:
    """Whether a code point is one of the two letters that make a flag."""
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _regional_indicators_before(text: str, index: int) -> int:
    """Return the number of regional indicators directly before the index. Each pair of them is one flag."""
    first = index
    while first and _is_regional_indicator(text[first - 1]):
        first -= 1
    return index - first
