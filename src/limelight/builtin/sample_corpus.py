"""The sample corpus: a few text pages that come with Limelight, and the search in them."""

import math
import re
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.lower())


SITE = "https://library.example/"
"""The fictitious base URL of the sample pages; `.example` is a reserved domain."""
MAX_RESULTS = 5
MIN_RELATIVE_SCORE = 0.3
"""Minimum score of a search result as a fraction of the best score; lower scores are chance matches."""
STOP_WORDS = frozenset(
    _words(
        "a about all an and are as at be by can do does for from had has have how i in is it its long many me much my"
        " of on one or say tell that the their them there they this to was were what when where which who why will with"
        " you"
    )
)


class Page(msgspec.Struct, frozen=True):
    title: str
    url: str
    text: str

    @property
    def sentences(self) -> list[str]:
        prose = " ".join(line for line in self.text.splitlines() if line and line[0] not in "#|")
        return re.split(r"(?<=[.!?])\s+", prose)


@cache
def pages() -> tuple[Page, ...]:
    """Return all pages of the sample corpus, sorted by file name."""
    sources = sorted(files("limelight.builtin").joinpath("pages").iterdir(), key=lambda file: file.name)
    return tuple(_page(file.name, file.read_text(encoding="utf-8")) for file in sources if file.name.endswith(".md"))


def _page(name: str, text: str) -> Page:
    return Page(text.partition("\n")[0].lstrip("# "), SITE + name.removesuffix(".md"), text)


def search_corpus(query: str) -> list[dict[str, Any]]:
    """Return the sample pages that match a query best. Rare words, and words in the title, weigh more."""
    stems = {_stem(word) for word in _words(query) if word not in STOP_WORDS}
    ranked = sorted(((_score(page, stems), page) for page in pages()), key=lambda one: -one[0])
    least = ranked[0][0] * MIN_RELATIVE_SCORE
    return [
        {"title": page.title, "url": page.url, "snippet": _snippet(page, stems)}
        for score, page in ranked[:MAX_RESULTS]
        if score > least
    ]


def read_corpus(url: str) -> str | None:
    """Return the text of the sample page at a URL; None if there is no such page."""
    return next((page.text for page in pages() if page.url == url.strip().rstrip("/")), None)


def _score(page: Page, stems: set[str]) -> float:
    title, text = _stems(page.title), _stems(page.text)
    return sum(
        _rarity(word) * (1 + math.log(text.count(word)) + (2 if word in title else 0)) for word in stems & {*text}
    )


@cache
def _rarity(word: str) -> float:
    return math.log((1 + len(pages())) / sum(word in _stems(page.text) for page in pages()))


@cache
def _stems(text: str) -> list[str]:
    return [_stem(word) for word in _words(text)]


def _stem(word: str) -> str:
    """Return a word without its ending, so that `bees` matches `bee` and `baking` matches `bake`."""
    for ending in ("ing", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word.removesuffix("s") if len(word) == 4 else word


def _snippet(page: Page, stems: set[str]) -> str:
    """Return the sentence of a page that contains most words of the query; the first of several equal ones."""
    return max(page.sentences, key=lambda sentence: len(stems & {*_stems(sentence)}))[:300]
