"""Texts made short, and texts made harmless."""

import html
import re

PREVIEW_CHARS = 200
LABEL_CHARS = 60
WIDE_CHARS = 100

SEAM = "\u200b"
"""Has no width, and parts two signs that would mean something together."""
SEAMS = re.compile(r"(?<=\\)(?=[(\[a-z])|(?<=\])(?=[(\[:])|(?<=\[)(?=[\d^])|(?<=<)(?=\S)|(?<=\{)(?=\{)")
"""Formulas; links and images; marks of sources and footnotes; tags and mentions; what Open WebUI puts in for names."""
MARKS = re.compile(r"[\\`*~$]|(?<![^\W_])_|_(?![^\W_])")


def parted(text: str) -> str:
    """A text of somebody else of which nothing becomes a link, an image or a tag; its layout stays."""
    return SEAMS.sub(SEAM, text)


def inert(text: str) -> str:
    """One line inside a `<details>` block of which neither markdown nor HTML nor mathematics makes anything.

    Backslashes cannot help against links and formulas: `\\[` begins one. Entities are no way either: Open WebUI
    decodes the block once and then shows them as they are.
    """
    return html.escape(unmarked(" ".join(text.split())), quote=False)


def unmarked(line: str) -> str:
    """A line in which markdown finds nothing. What means something at its beginning is for the caller to part."""
    return MARKS.sub(lambda mark: f"\\{mark[0]}", parted(line))


def literal(text: str) -> str:
    """Markdown that shows a text as it is. Code does not wrap, so long lines of which none is indented are no code."""
    lines = text.split("\n")
    if max(map(len, lines)) > WIDE_CHARS and not any(line[:1].isspace() for line in lines):
        return "  \n".join(f"{SEAM}{unmarked(line)}" for line in lines)
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def outcome(text: str) -> str:
    """What came of a call; there is something to see also if it said nothing."""
    return text if text.strip() else "✓ completed"


def preview(text: str) -> str:
    text = text.strip()
    return text if len(text) <= PREVIEW_CHARS else text[:PREVIEW_CHARS] + "..."


def short(text: str, limit: int = LABEL_CHARS) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def tools_word(count: int) -> str:
    return "1 tool" if count == 1 else f"{count} tools"
