"""`search` and `readurl`, the same for all built-in agents: over the library, or over the web if the settings say so.

Both block: frameworks call them in threads.
"""

from typing import Any

import msgspec

from limelight.builtin.sample_corpus import SITE, pages, read_library, search_library
from limelight.builtin.web_fetch import Refused, Web


class Lookup(msgspec.Struct, frozen=True, kw_only=True):
    """Where to look. Without settings: in the library only."""

    search_url: str = ""
    web: bool = False
    private_addresses: bool = False

    def search(self, query: str) -> list[dict[str, Any]]:
        """The best pages for a query: their titles, addresses, and a few words of each."""
        if not self.search_url:
            return search_library(query)
        return Web(private_addresses=self.private_addresses, engine=self.search_url).search(query)

    def readurl(self, url: str) -> str:
        """The text of a page. Raises Refused if it is not to be had."""
        known = read_library(url)
        if known is not None:
            return known
        if not self.web or url.startswith(SITE):
            raise Refused(
                f"{url} is not in the library, and the web is switched off. There are: "
                + ", ".join(page.url for page in pages())
            )
        return Web(private_addresses=self.private_addresses).read(url)
