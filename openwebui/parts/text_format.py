"""Shortens texts, and escapes characters that Open WebUI would render as Markdown, HTML or formulas."""

import html
import re

PREVIEW_CHARS = 200
LABEL_CHARS = 60
CODE_LINE_CHARS = 100

ZERO_WIDTH_SPACE = "\u200b"
MARKUP = re.compile(r"(?<=\\)(?=[(\[a-z])|(?<=\])(?=[(\[:])|(?<=\[)(?=[\d^])|(?<=<)(?=\S)|(?<=\{)(?=\{)")
"""Matches the positions at which a zero-width space breaks markup: formulas, links, images, citation marks, footnotes,
tags, mentions, and template variables of Open WebUI."""
MARKDOWN = re.compile(r"[\\`*~$]|(?<![^\W_])_|_(?![^\W_])")


def break_markup(text: str) -> str:
    """Insert zero-width spaces into a text, so that no link, image, tag or formula in it is recognised."""
    return MARKUP.sub(ZERO_WIDTH_SPACE, text)


def escape_markdown(line: str) -> str:
    """Escape Markdown inside of a line. Characters that are special only at its beginning are left to the caller."""
    return MARKDOWN.sub(lambda match: f"\\{match[0]}", break_markup(line))


def escape_line(text: str) -> str:
    """Turn a text into one line that a `<details>` block shows literally.

    Backslashes cannot escape links and formulas, because `\\[` begins a formula. Entities cannot either, because Open
    WebUI decodes the block once and then shows them literally.
    """
    return html.escape(escape_markdown(" ".join(text.split())), quote=False)


def literal_markdown(text: str) -> str:
    """Return Markdown that shows a text literally: as code, or as wrapped text if it has long lines and no indents."""
    lines = text.split("\n")
    if max(map(len, lines)) > CODE_LINE_CHARS and not any(line[:1].isspace() for line in lines):
        return "  \n".join(f"{ZERO_WIDTH_SPACE}{escape_markdown(line)}" for line in lines)
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def result_text(text: str) -> str:
    """Return the output of a tool call, or a note if it is blank."""
    return text if text.strip() else "✓ completed"


def preview(text: str) -> str:
    text = text.strip()
    return text if len(text) <= PREVIEW_CHARS else text[:PREVIEW_CHARS] + "..."


def shorten(text: str, limit: int = LABEL_CHARS) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def tool_count(count: int) -> str:
    return "1 tool" if count == 1 else f"{count} tools"
