"""Texts made short, and texts made harmless."""

import html
import re

PREVIEW_CHARS = 200
LABEL_CHARS = 60

SEAM = "\u200b"
"""Has no width, and parts two signs that would mean something together."""
SEAMS = re.compile(r"(?<=\\)(?=[(\[])|(?<=\])(?=[(\[:])|(?<=<)(?=\w+:)")
MARKS = re.compile(r"[\\`*~$]|(?<![^\W_])_|_(?![^\W_])")


def inert(text: str) -> str:
    """One line inside a `<details>` block of which neither markdown nor HTML nor mathematics makes anything.

    Backslashes cannot help against links and formulas: `\\[` begins one. Entities are no way either: Open WebUI
    decodes the block once and then shows them as they are.
    """
    parted = SEAMS.sub(SEAM, " ".join(text.split()))
    return html.escape(MARKS.sub(lambda mark: f"\\{mark[0]}", parted), quote=False)


def preview(text: str) -> str:
    return text if len(text) <= PREVIEW_CHARS else text[:PREVIEW_CHARS] + "..."


def short(text: str, limit: int = LABEL_CHARS) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def tools_word(count: int) -> str:
    return "1 tool" if count == 1 else f"{count} tools"
