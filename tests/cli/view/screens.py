"""Draws Records for tests of the views: as plain lines, as the final screen, as the part that is redrawn."""

import io
from pathlib import Path

import msgspec
from rich.console import Console

from limelight.cli.view.live_view import LiveView
from limelight.cli.view.plain_view import PlainView
from limelight.display_fields import DisplayFields
from limelight.events import AnyEvent, Record, RunStarted

RUNS = Path(__file__).parents[2] / "dialects" / "golden"
RUN_NAMES = sorted(path.stem for path in RUNS.glob("*.jsonl"))
HOSTILE = "red\x1b[31m \x1b]0;title\x07 back\x08 over\rwritten \x9b2J \u202eturned\u2069\x7f"


def golden_records(name: str) -> list[Record]:
    return [msgspec.json.decode(line, type=Record) for line in (RUNS / f"{name}.jsonl").read_bytes().splitlines()]


def numbered(*events: AnyEvent) -> list[Record]:
    present = DisplayFields().add_to
    return [Record(n, "run", n, present(event)) for n, event in enumerate(events, start=1)]


def plain_lines(*events: AnyEvent) -> list[str]:
    return plain_text(numbered(*events)).splitlines()


def plain_text(records: list[Record]) -> str:
    view = PlainView()
    return "".join(f"{line}\n" for record in records for line in view.feed(record))


def terminal_output(records: list[Record]) -> str:
    """Everything that the live view writes to a terminal of 100 columns."""
    screen = io.StringIO()
    with LiveView(Console(file=screen, force_terminal=True, width=100, height=40, color_system=None)) as view:
        for record in records:
            view.feed(record)
    return screen.getvalue()


def printed_lines(*events: AnyEvent, width: int = 70) -> list[str]:
    """The lines that the live view prints permanently, without empty ones."""
    screen = io.StringIO()
    view = LiveView(Console(file=screen, force_terminal=False, width=width, height=40))
    for record in numbered(RunStarted(agent="a"), *events):
        view.feed(record)
    return [line.rstrip() for line in screen.getvalue().splitlines() if line.strip()]


def redrawn_lines(*events: AnyEvent, width: int = 60, height: int = 20) -> list[str]:
    """The lines that the live view redraws after these events."""
    console = Console(file=io.StringIO(), force_terminal=True, width=width, height=height, color_system=None)
    view = LiveView(console)
    for record in numbered(*events):
        view.feed(record)
    lines = console.render_lines(view, pad=False)
    return ["".join(segment.text for segment in line).rstrip() for line in lines]
