"""Markdown for a terminal, as agents write it: what looks like a tag is text, headings stand on the left. Pure."""

from typing import ClassVar

from markdown_it import MarkdownIt
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Heading, Markdown, MarkdownElement


class LeftHeading(Heading):
    """In a plan or a report that is indented, headings in the middle of the line would fall apart."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        yield self.text


class Prose(Markdown):
    """Markdown in which a tag is what it is for a person at a terminal: text, and not HTML to be left out."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {**Markdown.elements, "heading_open": LeftHeading}

    def __init__(self, markup: str, style: str = "none") -> None:
        super().__init__(markup, style=style)
        parser = MarkdownIt("commonmark", {"html": False}).enable("strikethrough").enable("table")
        self.parsed = parser.parse(markup)
