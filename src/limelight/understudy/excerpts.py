"""Extracts excerpts from texts: the sentences that contain most words of a query.

Pure. It knows neither requests nor tools.
"""

import re
from collections.abc import Iterable, Sequence

MAX_CHARACTERS = 60_000
"""How many characters of a text are searched."""
NOT_PROSE = re.compile(r"\s*(?:#|\||>|[-=*_]{3,}\s*$)")
BULLET = re.compile(r"^\s*(?:[-*+•]|\d+[.)])\s+")
SENTENCE_END = re.compile(r"(?:(?<=[.!?])|(?<=[.!?][\"”')]))\s+(?![a-z])|(?<=[。！？])")


def truncate(text: str, limit: int) -> str:
    """Shorten a text to `limit` characters and `…`, cut between two words if it has several."""
    if len(text) <= limit:
        return text
    words = text[: limit + 1].rpartition(" ")[0]
    return f"{(words or text[:limit]).rstrip(' ,;:–-(')}…"


def paragraphs(text: str) -> list[list[str]]:
    """Split a text into paragraphs and list items made of sentences, without headings, tables, quotations and code."""
    found: list[list[str]] = [[]]
    for line in re.sub(r"(?ms)^```.*?(?:^```|\Z)", "", text[:MAX_CHARACTERS]).splitlines():
        is_prose = bool(line.strip()) and not NOT_PROSE.match(line)
        if not is_prose or BULLET.match(line):
            found.append([])
        if is_prose:
            found[-1].append(BULLET.sub("", line).strip())
    return [[sentence for sentence in SENTENCE_END.split(" ".join(lines)) if sentence] for lines in found if lines]


def count_matches(text: str, words: Iterable[str]) -> int:
    """Return how many of `words` the text contains, in any inflected form."""
    return len(_stems(text) & _stems(" ".join(words)))


def _stems(text: str) -> set[str]:
    return {_stem(word) for word in re.findall(r"[^\W_]+", text.lower())}


def _stem(word: str) -> str:
    """Return a word without its ending, so that `bees` matches `bee` and `dancing` matches `dance`."""
    for ending in ("ing", "ed", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word.removesuffix("s") if len(word) == 4 else word


def excerpt(text: str, words: Sequence[str], limit: int, *, title: str = "", used: set[str]) -> str:
    """Return the sentence with most of `words` and the sentences after it; "" if neither text nor title has a word.

    If the title has at least as many of the words, the excerpt is the beginning of the text. Sentences in `used` are
    skipped, and the sentences of the excerpt are added to `used`.
    """
    fresh = [[sentence for sentence in paragraph if sentence not in used] for paragraph in paragraphs(text)]
    tails = [paragraph[at:] for paragraph in fresh for at in range(len(paragraph))]
    if not tails:
        return ""
    best = max(tails, key=lambda tail: count_matches(tail[0], words))
    matches = count_matches(best[0], words)
    if count_matches(title, words) >= max(matches, 1):
        best = tails[0]
    elif not matches:
        return ""
    count = 1
    while count < len(best) and len(" ".join(best[: count + 1])) <= limit:
        count += 1
    used.update(best[:count])
    return truncate(" ".join(best[:count]), limit)
