"""Draws Records as a command wants them: live in a terminal, as plain lines elsewhere, or as they are."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Annotated, NamedTuple

import msgspec
import typer
from rich.console import Console

from limelight.cli.view.live import LiveView
from limelight.cli.view.plain import PlainView
from limelight.events import Record, RunCancelled, RunFailed, RunFinished, Terminal

AsJson = Annotated[bool, typer.Option("--json", help="Print Records as JSON lines.")]
Plain = Annotated[bool, typer.Option("--plain", help="Print plain lines, as when this is not a terminal.")]

FINISHED, FAILED, STOPPED = 0, 1, 3
"""Exit codes; 2 is for wrong usage and set-up."""


class Drawing(NamedTuple):
    """`show` shows one more Record; `live` is the view of a terminal, if it is one."""

    show: Callable[[Record], None]
    live: LiveView | None = None


@contextmanager
def drawing(as_json: bool, plain: bool) -> Generator[Drawing]:
    """The way to draw for as long as the block lasts."""
    if as_json:
        yield Drawing(_write_json)
    elif plain or not sys.stdout.isatty():
        view = PlainView()

        def show(record: Record) -> None:
            _write("\n".join(view.feed(record)))

        yield Drawing(show)
    else:
        with LiveView(Console()) as live:
            yield Drawing(live.feed, live)


def exit_code(terminal: Terminal | None) -> int:
    match terminal:
        case RunFinished():
            return FINISHED
        case RunCancelled():
            return STOPPED
        case RunFailed() | None:
            return FAILED


def _write_json(record: Record) -> None:
    _write(msgspec.json.encode(record).decode())


def _write(lines: str) -> None:
    if lines:
        sys.stdout.write(lines + "\n")
        sys.stdout.flush()
