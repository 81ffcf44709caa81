"""The code of docs/your-own-source.md: the source for pydantic-ai, and the agent that it serves."""

from typing import Any, NamedTuple

from limelight.sources.base import Feature, Source
from tests.support.documents import read
from tests.support.markdown import blocks, rows, sections

PAGE = sections(read("docs/your-own-source.md"), 2)


class PageCode(NamedTuple):
    """The files that a reader of the page writes."""

    source: str
    agent: str


def page_code() -> PageCode:
    """Join the blocks of the page to its two files."""
    parts = [blocks(PAGE[title], "python") for title in ("The class", "Run a turn", "Translate the stream")]
    (agent,) = blocks(PAGE["Serve an agent"], "python")
    return PageCode("\n".join(block for part in parts for block in part), agent)


def lacks() -> dict[Feature, str]:
    """The table of what the source lacks."""
    table: Any = {row[0].strip("`"): row[1] for row in rows(PAGE["What this source lacks"])}
    return table


def load_page() -> dict[str, Any]:
    """Run the code of the source, and return its names."""
    names: dict[str, Any] = {"__name__": "page_source"}
    exec(compile(page_code().source, "docs/your-own-source.md", "exec"), names)
    return names


NAMES = load_page()
PageSource: type[Source] = type("PageSource", (NAMES["PydanticAISource"],), {"LACKS": lacks()})
"""The source of the page, which declares what the page says that it lacks."""
