"""Sentences out of texts: which of them are about some words, and how a text is cut without breaking anything.

Pure. It must not know requests or tools: words and texts come in, texts go out.
"""

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence

import msgspec

WHOLE = re.compile(r"\[[^\]\n]*\]\([^)\s]*\)|`[^`\n]*`|https?://[^\s<>\"]+")
"""What is not cut: links, code, addresses."""
JOINERS = "\u200d\ufe0e\ufe0f"
MOST_LETTERS = 60_000
"""Of a text that is longer, only the beginning is looked at: this is to stay cheap."""
NO_PROSE = re.compile(r"\s*(?:#|\||>|```|~~~|[-=*_]{3,}\s*$)")
ENDS = re.compile(r"(?:(?<=[.!?])|(?<=[.!?][\"”')]))\s+(?![a-z])|(?<=[。！？])")
BULLET = re.compile(r"^\s*(?:[-*+•]|\d+[.)])\s+")


class Sentence(msgspec.Struct, frozen=True):
    text: str
    paragraph: int
    words: frozenset[str]


def cut(text: str, most: int) -> str:
    """At most so many characters, and then `…`: between words, outside links, code and addresses, never half a sign."""
    if len(text) <= most:
        return text
    at = most
    spans = [found.span() for found in WHOLE.finditer(text)]
    around = next((start for start, end in spans if start < at < end), None)
    if around is not None:
        at = around
    elif not text[at].isspace():
        space = text.rfind(" ", 0, at)
        at = space if space > at // 2 else at
    while at and (unicodedata.combining(text[at]) or text[at] in JOINERS or text[at - 1] in JOINERS):
        at -= 1
    kept = text[:at].rstrip(" \t\n,;:–-(")
    if kept.count("**") % 2:
        kept = kept[: kept.rfind("**")].rstrip()
    return f"{kept}…" if kept else "…"


def sentences(text: str) -> list[str]:
    """A paragraph's sentences. A full stop before a small letter ends none."""
    return [one for one in ENDS.split(text.strip()) if one]


def prose(text: str) -> list[Sentence]:
    """The sentences of a document, without headings, tables, code and quotations; those of a list one by one."""
    found: list[Sentence] = []
    for number, paragraph in enumerate(_paragraphs(text[:MOST_LETTERS])):
        found += [Sentence(one, number, frozenset(tokens(one))) for one in sentences(paragraph)]
    return found


def _paragraphs(text: str) -> Iterable[str]:
    lines: list[str] = []
    if all(line.rstrip().endswith((".", "!", "?")) for line in text.splitlines() if line.strip() and line[0] != "#"):
        text = text.replace("\n", "\n\n")  # a sentence a line: notes rather than paragraphs
    for line in re.sub(r"(?ms)^```.*?(?:^```|\Z)", "", text).splitlines():
        if not line.strip() or NO_PROSE.match(line) or BULLET.match(line):
            yield " ".join(lines)
            lines = []
            if BULLET.match(line):
                lines.append(BULLET.sub("", line).strip())
        else:
            lines.append(line.strip())
    yield " ".join(lines)


def tokens(text: str) -> list[str]:
    return [stem(word) for word in re.findall(r"[^\W_]+", text.lower())]


def stem(word: str) -> str:
    """Near enough to find `bee` in `bees` and `dancing` in `dance`."""
    word = word.lower()
    for ending in ("ing", "ed", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word.removesuffix("s") if len(word) == 4 else word


class Ear:
    """Listens for words. Those that are everywhere count less than those that are rare among the texts."""

    def __init__(self, words: Iterable[str], texts: Iterable[Sentence]) -> None:
        heard = list(texts)
        self._weights = {
            word: 1 + math.log((1 + len(heard)) / (1 + sum(word in one.words for one in heard)))
            for word in map(stem, words)
        }
        self.said: list[frozenset[str]] = []
        """What was told already, so that nothing is told twice."""

    def hits(self, words: Iterable[str]) -> int:
        return len(self._weights.keys() & {*words})

    def score(self, words: Iterable[str]) -> float:
        return sum(self._weights[word] for word in self._weights.keys() & {*words})

    def heard(self, one: Sentence) -> bool:
        """It was told already, or nearly."""
        words = _telling(one)
        return any(len(words & other) > 0.75 * min(len(words), len(other)) for other in self.said)

    def excerpt(self, texts: Sequence[Sentence], titled: int = 0, count: int = 2, letters: int = 320) -> str:
        """The sentence that fits best and what follows it in its paragraph, as far as it was not told yet.

        `titled`: how many of the words the title has. If no sentence has more of them, the beginning tells what it is.
        """
        new = [one for one in texts if not self.heard(one)]
        if not new:
            return ""
        best, whole = max(new, key=lambda one: self.score(one.words)), False
        if self.hits(best.words) < 2 and titled and titled >= self.hits(best.words):
            best, whole = new[0], True
        elif not self.hits(best.words):
            return ""
        at = next(at for at, one in enumerate(texts) if one is best)
        told: list[str] = []
        for one in texts[at : at + count]:
            if told and (self.heard(one) or not (whole or one.paragraph == best.paragraph)):
                break
            if told and len(" ".join(told)) + len(one.text) > letters:
                break
            told.append(one.text)
            self.said.append(_telling(one))
        return cut(" ".join(told), letters)


def _telling(one: Sentence) -> frozenset[str]:
    return frozenset(word for word in one.words if len(word) > 3) or one.words
