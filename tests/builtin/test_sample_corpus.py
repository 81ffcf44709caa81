"""The sample corpus: the best page comes first, and every page can be read."""

import pytest

from limelight.builtin.sample_corpus import SITE, pages, read_corpus, search_corpus
from limelight.builtin.search_tools import SearchTools
from limelight.builtin.web_fetch import FetchError


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
def test_best_page_comes_first(query: str, name: str) -> None:
    found = search_corpus(query)
    assert found[0]["url"] == SITE + name
    assert set(found[0]) == {"title", "url", "snippet"}
    assert len(found) <= 5


def test_snippet_matches_the_query() -> None:
    assert search_corpus("What do bees do in winter?")[0]["snippet"].startswith("In winter bees do not sleep")


@pytest.mark.parametrize("query", ["", "xylophone", "what is the", "?!"])
def test_query_without_a_match_finds_nothing(query: str) -> None:
    assert search_corpus(query) == []


def test_every_page_is_short_and_found_by_its_title() -> None:
    assert 8 <= len(pages()) <= 12
    for page in pages():
        assert page.text.startswith(f"# {page.title}\n")
        assert 150 <= len(page.text.split()) <= 300, page.url
        assert search_corpus(page.title)[0]["url"] == page.url
        assert read_corpus(page.url) == read_corpus(f" {page.url}/ ") == page.text


def test_unknown_address_is_an_error_that_lists_the_known_ones() -> None:
    for url in ("https://example.com/", f"{SITE}nothing"):
        with pytest.raises(FetchError, match=r"not in the library, and the web is switched off.*library\.example/bees"):
            SearchTools().readurl(url)
    with pytest.raises(FetchError, match="not in the library"):
        SearchTools(web=True).readurl(f"{SITE}nothing")
