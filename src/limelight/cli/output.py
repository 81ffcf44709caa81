"""Output of commands: Records in a live view, as plain lines or as JSON; tables, times and sizes as text."""

import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec
import typer
from rich.console import Console

from limelight.cli.view.live import LiveView
from limelight.cli.view.plain import PlainView
from limelight.events import Record, RunCancelled, RunFailed, RunFinished, Terminal

FINISHED, FAILED, STOPPED = 0, 1, 3
"""Exit codes of a run. Exit code 2 means wrong usage or a set-up error."""


class RunView(NamedTuple):
    """The output of a run: `show` draws one Record; `live` is the live view, None if stdout is not a terminal."""

    show: Callable[[Record], None]
    live: LiveView | None = None


@contextmanager
def open_view(as_json: bool, plain: bool) -> Generator[RunView]:
    """Open the view that fits the options and stdout: live, plain or JSON."""
    if as_json:
        yield RunView(print_json)
    elif plain or not sys.stdout.isatty():
        view = PlainView()

        def show(record: Record) -> None:
            if lines := view.feed(record):
                typer.echo("\n".join(lines))

        yield RunView(show)
    else:
        with LiveView(Console()) as live:
            yield RunView(live.feed, live)


def print_json(value: object) -> None:
    """Print a value as one line of JSON."""
    typer.echo(msgspec.json.encode(value))


def exit_code(terminal: Terminal | None) -> int:
    match terminal:
        case RunFinished():
            return FINISHED
        case RunCancelled():
            return STOPPED
        case RunFailed() | None:
            return FAILED


def table_lines(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Format a table with one line per row. Lines are not cut, so that other programs can read them."""
    widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
    for row in (columns, *rows):
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def local_time(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).astimezone().strftime("%Y-%m-%d %H:%M")


def megabytes(size: int) -> str:
    return f"{size / 1024**2:.1f} MB"


def printable(name: str) -> str:
    """Return a file name on one line, with control characters escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)
