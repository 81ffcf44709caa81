"""All arguments of a call, for a person who has to judge them: whole, or as much as there is room for. Pure."""

import re
from typing import Any

from limelight.cli.view.sanitize import one_line, safe
from limelight.dialects.base import text_of

LINES_EACH = 5
"""Of a long argument the beginning is shown, so that those behind it are seen too."""
CHANGED = 60
"""Characters of a value that was changed, or of what it was before."""
_BREAKS = re.compile(r"[\n\t]")


def argument_lines(args: dict[str, Any] | str) -> list[list[str]]:
    """For each argument its lines: `name = value`, or the lines of a value of several below `name =`."""
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


def change_lines(before: dict[str, Any] | str, after: dict[str, Any] | str | None) -> list[str]:
    """What somebody has changed in arguments, a line each; nothing if they are only previews, which do not tell."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return []
    changed = [_change(name, before, after) for name in after if name not in before or before[name] != after[name]]
    return [*changed, *(f"{one_line(name, CHANGED)} is left out" for name in before if name not in after)]


def _change(name: str, before: dict[str, Any], after: dict[str, Any]) -> str:
    line = f"{one_line(name, CHANGED)} = {one_line(text_of(after[name]), CHANGED)}"
    was = f"was {one_line(text_of(before[name]), CHANGED) or 'empty'}" if name in before else "new"
    return f"{line}  ({was})"


def _lines(name: str, value: str) -> list[str]:
    name = _BREAKS.sub(" ", safe(name))
    first, *rest = safe(value).expandtabs(4).split("\n")
    if not rest:
        return [f"{name} = {first}"]
    return [f"{name} =", f"  {first}", *(f"  {line}" for line in rest)]


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else line[: max(0, width - 1)] + "…"
