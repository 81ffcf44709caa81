"""A small library that is always there: pages of text, found by their words. Pure but for reading its own files."""

import math
import re
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.lower())


SITE = "https://library.example/"
"""A made-up address: names that end in `.example` belong to nobody."""
MOST = 5
WORTHWHILE = 0.3
"""What fits less than this part of the best page is left out: it has a word of the query in it by chance."""
IGNORED = frozenset(
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
    """All pages, by name."""
    found = sorted(files("limelight.builtin").joinpath("pages").iterdir(), key=lambda file: file.name)
    return tuple(_page(file.name, file.read_text(encoding="utf-8")) for file in found if file.name.endswith(".md"))


def _page(name: str, text: str) -> Page:
    return Page(text.partition("\n")[0].lstrip("# "), SITE + name.removesuffix(".md"), text)


def search_library(query: str) -> list[dict[str, Any]]:
    """The pages that fit best: rare words count more than frequent ones, and the title more than the text."""
    wanted = {_stem(word) for word in _words(query) if word not in IGNORED}
    ranked = sorted(((_score(page, wanted), page) for page in pages()), key=lambda one: -one[0])
    least = ranked[0][0] * WORTHWHILE
    return [
        {"title": page.title, "url": page.url, "snippet": _snippet(page, wanted)}
        for score, page in ranked[:MOST]
        if score > least
    ]


def read_library(url: str) -> str | None:
    """The text of a page; None if the library does not have it."""
    return next((page.text for page in pages() if page.url == url.strip().rstrip("/")), None)


def _score(page: Page, wanted: set[str]) -> float:
    title, text = _stems(page.title), _stems(page.text)
    return sum(
        _rarity(word) * (1 + math.log(text.count(word)) + (2 if word in title else 0)) for word in wanted & {*text}
    )


@cache
def _rarity(word: str) -> float:
    return math.log((1 + len(pages())) / sum(word in _stems(page.text) for page in pages()))


@cache
def _stems(text: str) -> list[str]:
    return [_stem(word) for word in _words(text)]


def _stem(word: str) -> str:
    """Near enough to find `bee` in `bees` and `baking` in `bake`."""
    for ending in ("ing", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word.removesuffix("s") if len(word) == 4 else word


def _snippet(page: Page, wanted: set[str]) -> str:
    """The sentence with most of the words; the first of several."""
    return max(page.sentences, key=lambda sentence: len(wanted & {*_stems(sentence)}))[:300]
