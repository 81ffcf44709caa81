"""Where a text may be cut: what a reader sees as one character is often several, and half of it is another one. Pure.

The rules are those of Unicode's text segmentation (UAX 29) as far as the standard library knows them.
"""

import unicodedata

JOINER = "\u200d"
BOUND = "\u200c\u200d\u0e33\u0eb3"
"""Joiners, and the two vowels that are letters by category and marks by sight."""
VIRAMA = 9
"""The class of the sign that binds the next consonant to the one before it."""


def whole_until(text: str, limit: int) -> int:
    """The last place up to `limit` that splits no character; `limit` itself if there is none, or less text."""
    if len(text) <= limit:
        return limit
    return next((place for place in range(limit, 0, -1) if not _is_inside(text, place)), limit)


def _is_inside(text: str, place: int) -> bool:
    """Whether what is behind the place belongs to what is before it."""
    before, behind = text[place - 1], text[place]
    if _is_bound(behind) or before == JOINER or (before, behind) == ("\r", "\n"):
        return True
    if _is_regional(behind):
        return _regionals_before(text, place) % 2 == 1
    return unicodedata.combining(before) == VIRAMA and unicodedata.category(behind) == "Lo"


def _is_bound(character: str) -> bool:
    """True for what is no character of its own: accents, vowel signs, variants, shades of skin, tags of flags, jamo."""
    if character.isascii():
        return False
    code = ord(character)
    is_added = 0x1F3FB <= code <= 0x1F3FF or 0xE0020 <= code <= 0xE007F or 0x1160 <= code <= 0x11FF
    return is_added or character in BOUND or unicodedata.category(character) in ("Mn", "Mc", "Me")


def _is_regional(character: str) -> bool:
    """Half of a flag."""
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _regionals_before(text: str, place: int) -> int:
    """How many of them stand right before the place: two by two they are flags."""
    first = place
    while first and _is_regional(text[first - 1]):
        first -= 1
    return place - first
