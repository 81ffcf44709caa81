"""All arguments of a call, for a person who has to judge them: whole, or as much as there is room for. Pure."""

import re
from typing import Any

from limelight.cli.view.safe import safe
from limelight.dialects.base import text_of

LINES_EACH = 5
"""Of a long argument the beginning is shown, so that those behind it are seen too."""
_BREAKS = re.compile(r"[\n\t]")


def argument_lines(args: dict[str, Any] | str) -> list[list[str]]:
    """For each argument its lines: `name: value`, and the rest of a value of several lines below it."""
    if isinstance(args, str):
        return [safe(args).splitlines() or [""]]
    return [_lines(name, text_of(value)) for name, value in args.items()]


def shortened(args: dict[str, Any] | str, width: int, most: int) -> tuple[list[str], bool]:
    """At most so many lines of at most that width, and whether anything was left out."""
    found: list[str] = []
    left_out = False
    for lines in argument_lines(args):
        kept = [_cut(line, width) for line in lines[:LINES_EACH]]
        left_out = left_out or len(lines) > LINES_EACH or kept != lines
        if len(lines) > LINES_EACH:
            kept[-1] = _cut(f"  … {len(lines) - LINES_EACH + 1} more lines", width)
        found += kept
    return found[:most], left_out or len(found) > most


def _lines(name: str, value: str) -> list[str]:
    name = _BREAKS.sub(" ", safe(name))
    first, *rest = safe(value).expandtabs(4).split("\n")
    if not rest:
        return [f"{name}: {first}"]
    return [f"{name}:", f"  {first}", *(f"  {line}" for line in rest)]


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else line[: max(0, width - 1)] + "…"
