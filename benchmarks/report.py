"""The figures as a table, for the terminal and for `docs/benchmarks.md`."""

import os
import platform
import statistics
from collections.abc import Sequence
from importlib.metadata import version

from benchmarks.measure import Figures, Plan, Row
from benchmarks.server import BARE, NAMES

PACKAGES = ("starlette", "uvicorn", "uvloop", "httptools", "fastapi", "sse-starlette", "msgspec")

DOCUMENT = """# What an event costs

`make bench` measures Limelight against two other servers, frameworks with and without it, sockets, users beside each
other, and the page in a browser, and prints these tables; `.venv/bin/python -m benchmarks --write` writes it. `--quick`
takes five minutes.

## What is measured

One run is two statuses, five tools (200 B of arguments, 2 KB of result), two sub-agents, 1,000 text tokens and the end:
1,017 events, about 110 kB. Unless the row says burst, the source gives the event loop one turn per event, as tokens of
a real model do.

- **limelight**: `limelight serve` with a function agent and the typed stream. Every event is checked, numbered,
  committed to SQLite and only then sent; it can be resumed and watched by others.
- **bare**: Starlette's `StreamingResponse` on uvicorn (uvloop, httptools), sending the same bytes, encoded
  beforehand. It keeps nothing and checks nothing: this is the floor of that server.
- **sse-starlette**: FastAPI with sse-starlette's `EventSourceResponse` and one `json.dumps` per event, which is how
  such a stream is usually written. It keeps nothing either.

CPU is that of the server process with all its threads, user and system, by the kernel's clock. The client is another
process, on another core if there are two; it counts the events of every stream and the benchmark fails if one is
missing. Everything goes over loopback. In each of {repeats} repeats the servers take turns, row by row. A cell is the
median of the repeats [lowest - highest]; the ratio is the median of the ratios to `bare` within each repeat.

## Result

{machine}

{table}

## How to read it

- Trust the ratios more than the figures: a shared machine varies by half, and what is measured in the same
  repeat varies together. Do not make anything of differences under 30 %.
- `bare` pays one wake-up and one write per event, and next to nothing else. Limelight checks, numbers, commits and
  encodes each event, and then saves on commits and writes: it commits and shows what comes after a pause at once, and
  while pieces of a text keep coming it does both every 25 ms. That is how a durable stream comes near the floor.
- The first event of Limelight comes after two commits (the run, then its first event); `bare` has nothing to wait for.
- All viewers of a run share its bytes, so a further viewer costs a write every 25 ms and nothing per event.
- Memory of a stream contains its run: the task of the agent, its newest events, the frames for its viewers.
- {joined:.1%} of Limelight's events came joined with their neighbours in one frame: they were said faster than they
  could be committed, or the client had fallen behind. `bare` sends each by itself.
- The machine has few cores and no network in between: this says what an event costs, not how many users a server has.

{sections}"""


def table(figures: Figures) -> str:
    """Markdown that is readable as it is."""
    head = ["", *NAMES, *(f"{name} ÷ {BARE}" for name in NAMES if name != BARE)]
    lines = [head, ["---"] * len(head)]
    for row, by_server in figures.rows.items():
        cells = [cell(by_server.get(name)) for name in NAMES]
        ratios = [_ratio(figures, row, name) for name in NAMES if name != BARE]
        lines.append([f"{row.what} ({row.unit})", *cells, *ratios])
    return aligned(lines)


def aligned(lines: list[list[str]]) -> str:
    """A table in Markdown; the second line is the rule below the head."""
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    lines[1] = ["-" * width for width in widths]
    return "\n".join("| " + " | ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) + " |" for line in lines)


def versions(names: Sequence[str]) -> str:
    return ", ".join(f"{name} {version(name)}" for name in names)


def machine() -> str:
    """Where it was measured, in general terms."""
    packages = versions(PACKAGES)
    where = f"{platform.system()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    return f"{where}; {packages}."


def document(figures: Figures, plan: Plan, sections: str) -> str:
    """The whole page; `sections` are those that others write."""
    return DOCUMENT.format(
        repeats=plan.repeats, machine=machine(), table=table(figures), joined=figures.joined, sections=sections
    )


def with_section(document: str, section: str) -> str:
    """A document with this section in the place of the one of that title, or behind all others."""
    title = section.partition("\n")[0]
    before, found, rest = document.partition(f"{title}\n")
    if not found:
        return f"{document.rstrip()}\n\n{section}"
    after = rest.partition("\n## ")
    return before + section + (f"\n## {after[2]}" if after[1] else "")


def cell(values: list[float] | None) -> str:
    """The median [lowest - highest]."""
    if not values:
        return "–"
    return f"{number(statistics.median(values))} [{number(min(values))} - {number(max(values))}]"


def _ratio(figures: Figures, row: Row, name: str) -> str:
    ratio = figures.ratio(row, name) if name in figures.rows[row] else None
    return "–" if ratio is None else f"{ratio:.2f}"


def number(value: float) -> str:
    """Three digits or so."""
    size = abs(value)
    return f"{value:.2f}" if size < 10 else f"{value:.1f}" if size < 100 else f"{value:.0f}"
