"""Output of commands: Records in a live view, as plain lines or as JSON; tables, times and sizes as text."""

import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple, TextIO

import msgspec
import typer
from rich.console import Console

from limelight.cli.view.live_view import LiveView
from limelight.cli.view.plain_view import PlainView
from limelight.events import Record, RunCancelled, RunFailed, RunFinished, Terminal

FINISHED, FAILED, STOPPED = 0, 1, 3
"""Exit codes of a run. Exit code 2 means wrong usage or a set-up error."""


class RunView(NamedTuple):
    """The open view of a run: `show` prints one Record; `live` is the live view, None if another view is open."""

    show: Callable[[Record], None]
    live: LiveView | None = None


def is_live(as_json: bool, plain: bool) -> bool:
    """Whether a command shows runs in the live view: stdout is a terminal, and no option asks for another view."""
    return not as_json and not plain and sys.stdout.isatty()


@contextmanager
def open_view(as_json: bool, plain: bool, stdout: TextIO | None = None) -> Generator[RunView]:
    """Context manager that opens the view of a run: live, plain or JSON, as the options and stdout require.

    `stdout` replaces `sys.stdout`.
    """
    if as_json:
        yield RunView(partial(print_json, stdout=stdout))
    elif stdout is not None or not is_live(as_json, plain):
        view = PlainView()

        def show(record: Record) -> None:
            if lines := view.feed(record):
                typer.echo("\n".join(lines), stdout)

        yield RunView(show)
    else:
        with LiveView(Console()) as live:
            yield RunView(live.feed, live)


def print_json(value: object, stdout: TextIO | None = None) -> None:
    """Print a value as one line of JSON, to `sys.stdout` or to the file that replaces it."""
    typer.echo(msgspec.json.encode(value), stdout)


def exit_code(terminal: Terminal | None) -> int:
    match terminal:
        case RunFinished():
            return FINISHED
        case RunCancelled():
            return STOPPED
        case RunFailed() | None:
            return FAILED


def table_lines(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table, one for each row. Lines are not cut, so that other programs can read them."""
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
