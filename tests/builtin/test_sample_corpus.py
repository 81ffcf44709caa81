"""The library: what one looks for comes first, and every page can be read."""

import pytest

from limelight.builtin.sample_corpus import SITE, pages, read_library, search_library
from limelight.builtin.search_tools import Lookup
from limelight.builtin.web_fetch import Refused


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("What do bees do in winter?", "bees"),
        ("honey bee dance", "bees"),
        ("who pollinates apples", "pollination"),
        ("Fresnel lens", "lighthouse-optics"),
        ("quicklime on a stage", "limelight"),
        ("Which river is the longest?", "rivers"),
        ("spring and neap tides", "tides"),
        ("how to begin a sourdough starter", "sourdough"),
        ("why does bread go stale", "bread"),
        ("serifs and italics", "typography"),
        ("Harrison longitude", "clocks"),
        ("build a KITE", "kites"),
    ],
)
def test_the_best_page_comes_first(query: str, name: str) -> None:
    found = search_library(query)
    assert found[0]["url"] == SITE + name
    assert set(found[0]) == {"title", "url", "snippet"}
    assert len(found) <= 5


def test_the_snippet_is_about_the_question() -> None:
    assert search_library("What do bees do in winter?")[0]["snippet"].startswith("In winter bees do not sleep")


@pytest.mark.parametrize("query", ["", "xylophone", "what is the", "?!"])
def test_what_is_not_there_is_not_found(query: str) -> None:
    assert search_library(query) == []


def test_every_page_is_a_short_text_with_a_title_that_finds_it() -> None:
    assert 8 <= len(pages()) <= 12
    for page in pages():
        assert page.text.startswith(f"# {page.title}\n")
        assert 150 <= len(page.text.split()) <= 300, page.url
        assert search_library(page.title)[0]["url"] == page.url
        assert read_library(page.url) == read_library(f" {page.url}/ ") == page.text


def test_another_address_is_refused_with_those_that_there_are() -> None:
    for url in ("https://example.com/", f"{SITE}nothing"):
        with pytest.raises(Refused, match=r"not in the library, and the web is switched off.*library\.example/bees"):
            Lookup().readurl(url)
    with pytest.raises(Refused, match="not in the library"):
        Lookup(web=True).readurl(f"{SITE}nothing")
