"""Formats figures of the benchmarks as tables, for the terminal and for `docs/benchmarks.md`."""

import os
import platform
import statistics
import sys
from collections.abc import Sequence
from importlib.metadata import version

from benchmarks.measurement import Figures, FigureTable, Plan
from benchmarks.server_process import BARE, NAMES, ROOT

DOCS = ROOT / "docs"
PACKAGES = ("starlette", "uvicorn", "uvloop", "httptools", "fastapi", "sse-starlette", "msgspec")

DOCUMENT = """# Benchmarks: the cost of an event

`make bench` compares Limelight with two other servers, measures frameworks with and without it, sockets, the effect
of one user on another, and the page in a browser, and prints these tables. `.venv/bin/python -m benchmarks --write`
also writes this page. `--quick` takes five minutes.

## What is measured

One run has two statuses, five tools (200 B of arguments, 2 KB of result), two sub-agents, 1,000 text tokens and the
end: 1,017 events, about 110 kB. Unless the row says burst, the source yields to the event loop once per event, as
with tokens of a real model.

- **limelight**: `limelight serve` with a function agent and the typed stream. Limelight checks and numbers every
  event, commits it to SQLite and only then sends it; other clients can resume and watch the run.
- **bare**: Starlette's `StreamingResponse` on uvicorn (uvloop, httptools), which sends the same bytes, encoded
  in advance. It stores nothing and checks nothing: this is the lower bound for that server.
- **sse-starlette**: FastAPI with sse-starlette's `EventSourceResponse` and one `json.dumps` per event, the usual way
  to write such a stream. It stores nothing either.

CPU is the user and system time of the server process with all its threads, by the kernel's clock. The client is
another process, on another core if there are two; it counts the events of every stream, and the benchmark fails if
one is missing. All connections use loopback. In each of {repeats} repeats the servers take turns, row by row. A cell
is the median of the repeats [lowest - highest]; the ratio is the median of the ratios to `bare` within each repeat.

## Result

{machine}

{table}

## How to read the figures

- Ratios are more reliable than figures: on a shared machine, figures vary by half, and figures of the same
  repeat vary together. Ignore differences under 30 %.
- `bare` needs one wake-up and one write per event, and almost nothing else. Limelight checks, numbers, commits and
  encodes each event, and saves on commits and writes: it commits and sends an event after a pause at once, and
  during a continuous stream of deltas it does both every 25 ms. So a durable stream comes near the lower bound.
- The first event of Limelight comes after two commits (the run, then its first event); `bare` waits for nothing.
- All viewers of a run share its bytes, so an additional viewer costs a write every 25 ms and nothing per event.
- The memory of a stream includes its run: the task of the agent, its newest events, the frames for its viewers.
- {joined:.1%} of Limelight's events were joined with their neighbours in one frame: the agent emitted them faster
  than they could be committed, or the client had fallen behind. `bare` sends each event separately.
- The machine has few cores and no network in between: the figures show the cost of an event, not the number of users
  of a server.

{sections}"""


def table(figures: Figures) -> str:
    """Return the comparison of servers as a Markdown table."""
    return figure_table(figures, "", NAMES, BARE)


def figure_table(figures: FigureTable, corner: str, columns: Sequence[str], base: str, digits: int = 2) -> str:
    """Format a Markdown table with the ratio of each column to the base, except in MB. `corner` is the first cell."""
    others = [name for name in columns if name != base]
    head = [corner, *columns, *(f"{name} ÷ {base}" for name in others)]
    lines = [head, ["---"] * len(head)]
    for row, by_column in figures.rows.items():
        ratios = [None if row.unit == "MB" else figures.ratio(row, name, base) for name in others]
        cells = [cell(by_column.get(name)) for name in columns]
        shown = ["–" if ratio is None else f"{ratio:.{digits}f}" for ratio in ratios]
        lines.append([f"{row.what} ({row.unit})", *cells, *shown])
    return aligned(lines)


def aligned(lines: list[list[str]]) -> str:
    """Format a Markdown table with aligned columns. The second row is the rule below the head."""
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    lines[1] = ["-" * width for width in widths]
    return "\n".join("| " + " | ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) + " |" for line in lines)


def versions(packages: Sequence[str]) -> str:
    return ", ".join(f"{name} {version(name)}" for name in packages)


def machine() -> str:
    """Describe the machine and the package versions of a measurement, in general terms."""
    where = f"{platform.system()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    return f"{where}; {versions(PACKAGES)}."


def document(figures: Figures, plan: Plan, sections: str) -> str:
    """Return the complete text of `docs/benchmarks.md`; `sections` are those of the other benchmarks."""
    return DOCUMENT.format(
        repeats=plan.repeats, machine=machine(), table=table(figures), joined=figures.joined, sections=sections
    )


def with_section(document: str, section: str) -> str:
    """Return the document with this section in place of that with the same title, or at the end if there is none."""
    title = section.partition("\n")[0]
    before, found, rest = document.partition(f"{title}\n")
    if not found:
        return f"{document.rstrip()}\n\n{section}"
    after = rest.partition("\n## ")
    return before + section + (f"\n## {after[2]}" if after[1] else "")


def write_section(name: str, section: str) -> None:
    """Replace the section in a file of `docs/`."""
    path = DOCS / name
    write_document(name, with_section(path.read_text(), section))


def write_document(name: str, text: str) -> None:
    """Write a file of `docs/`."""
    (DOCS / name).write_text(text)
    print(f"\nwritten: docs/{name}")


def log_progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def cell(values: Sequence[float] | None) -> str:
    """Format a table cell: the median of the figures, and `[lowest - highest]`."""
    if not values:
        return "–"
    return f"{number(statistics.median(values))} [{number(min(values))} - {number(max(values))}]"


def number(value: float) -> str:
    """Format a number with about three significant digits."""
    size = abs(value)
    return f"{value:.2f}" if size < 10 else f"{value:.1f}" if size < 100 else f"{value:.0f}"
