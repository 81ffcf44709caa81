"""The readable text of an HTML page. Pure: what is no text is left out, blocks become lines."""

import re
from html.parser import HTMLParser

HIDDEN = frozenset(re.findall(r"\w+", "script style noscript template svg head nav footer form button"))
BLOCKS = frozenset(
    re.findall(r"\w+", "p div section article main br li ul ol tr table h1 h2 h3 h4 h5 h6 blockquote pre header figure")
)


def readable(html: str) -> str:
    reader = _Reader()
    reader.feed(html)
    reader.close()
    lines = (" ".join(line.split()) for line in "".join(reader.said).split("\n"))
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
    return "\n\n".join(filter(None, (" ".join("".join(reader.title).split()), text)))


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []
        self.title: list[str] = []
        self._hidden: list[str] = []
        self._in_title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_title |= tag == "title"
        if tag in HIDDEN:
            self._hidden.append(tag)
        elif tag in BLOCKS:
            self.said.append("\n")

    def handle_endtag(self, tag: str) -> None:
        self._in_title &= tag != "title"
        if tag in self._hidden:  # with all that was left open inside
            del self._hidden[self._hidden.index(tag) :]
        elif tag in BLOCKS:
            self.said.append("\n")

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title.append(data)
        elif not self._hidden:
            self.said.append(data)
