"""The tools `search` and `readurl` of all built-in agents: for the sample corpus or, if enabled, for the web.

Both tools block, so frameworks call them in threads.
"""

from typing import Any

import msgspec

from limelight.builtin.sample_corpus import SITE, pages, read_corpus, search_corpus
from limelight.builtin.web_fetch import FetchError, WebClient


class SearchTools(msgspec.Struct, frozen=True, kw_only=True):
    """The functions behind the tools `search` and `readurl`. By default they know only the sample corpus."""

    search_url: str = ""
    web: bool = False
    private_addresses: bool = False

    def search(self, query: str) -> list[dict[str, Any]]:
        """Return the best pages for a query, each with its title, URL and a snippet."""
        if not self.search_url:
            return search_corpus(query)
        return WebClient(private_addresses=self.private_addresses, search_url=self.search_url).search(query)

    def readurl(self, url: str) -> str:
        """Return the text of the page at a URL. Raises FetchError if the page cannot be read."""
        text = read_corpus(url)
        if text is not None:
            return text
        if not self.web or url.startswith(SITE):
            raise FetchError(
                f"{url} is not in the library, and the web is switched off. There are: "
                + ", ".join(page.url for page in pages())
            )
        return WebClient(private_addresses=self.private_addresses).read(url)
