"""What takes several lines in the plain view: plans, code, what it printed, a helper's report. Pure.

Each kind is told apart at a glance: `>` is code, `|` is what it printed, a plan is indented below the word.
"""

import re

from limelight.cli.view.main_argument import WIDTH
from limelight.cli.view.sanitize import one_line, safe
from limelight.cli.view.state import Call
from limelight.events import Plan

MARKS = {"pending": "·", "in_progress": "▸", "completed": "✓"}
MOST_CODE = 30
LONGEST = 200
_HEADING = re.compile(r"#{1,6}\s+")
_BOLD = re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1")


def plan_lines(plan: Plan) -> list[str]:
    """A plan: its items as a list to tick off, or its text without the marks of markdown."""
    items = [f"  {MARKS[item.status]} {one_line(item.content, LONGEST)}" for item in plan.items]
    lines = items or _plainly([line.rstrip() for line in safe(plan.text).splitlines() if line.strip()])
    return ["plan:", *lines] if lines else []


def _plainly(lines: list[str]) -> list[str]:
    """Text without marks; headings stand further out than what is below them."""
    headings = {line for line in lines if _HEADING.match(line)}
    below = "    " if headings else "  "
    bare = {line: _BOLD.sub(r"\2", _HEADING.sub("", line, count=1) if line in headings else line) for line in lines}
    return [("  " if line in headings else below) + bare[line] for line in lines]


def report_lines(name: str, text: str) -> list[str]:
    """What a helper says, below its name; without the empty lines, which would tear it off."""
    first, *rest = [line.rstrip() for line in safe(text).splitlines() if line.strip()] or [""]
    return [f"{safe(name)}: {first}", *(f"  {line}" for line in rest)] if first else []


def code_lines(call: Call) -> list[str]:
    """The code that a call runs, if it is more than its line has room for."""
    code = call.args.get("code") if isinstance(call.args, dict) else None
    if not isinstance(code, str) or (len(code.strip()) <= WIDTH and "\n" not in code.strip()):
        return []
    lines = [_cut(line) for line in safe(code).strip("\n").splitlines()]
    more = len(lines) - MOST_CODE
    shown = lines if more <= 0 else [*lines[:MOST_CODE], f"… {more} more lines"]
    return [f"  > {line}".rstrip() for line in shown]


def printed_lines(call: Call) -> list[str]:
    """What a call has printed; of very much the end."""
    lines = safe(call.output).strip("\n").splitlines() if call.output.strip() else []
    return [f"  | {line}".rstrip() for line in (["…", *lines] if call.output_cut else lines)]


def _cut(line: str) -> str:
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"
