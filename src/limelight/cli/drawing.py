"""Draws Records as a command wants them: live in a terminal, as plain lines elsewhere, or as they are."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Annotated

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


@contextmanager
def drawing(as_json: bool, plain: bool) -> Generator[Callable[[Record], None]]:
    """A function that shows one more Record."""
    if as_json:
        yield lambda record: _write(msgspec.json.encode(record).decode())
    elif plain or not sys.stdout.isatty():
        view = PlainView()
        yield lambda record: _write("\n".join(view.feed(record)))
    else:
        with LiveView(Console()) as live:
            yield live.feed


def exit_code(terminal: Terminal | None) -> int:
    match terminal:
        case RunFinished():
            return FINISHED
        case RunCancelled():
            return STOPPED
        case RunFailed() | None:
            return FAILED


def _write(lines: str) -> None:
    if lines:
        sys.stdout.write(lines + "\n")
        sys.stdout.flush()
