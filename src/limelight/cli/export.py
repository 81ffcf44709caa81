"""`limelight export RUN > run.jsonl` writes the Records of a run; `limelight replay run.jsonl` shows them.

Each line is one Record of the log, unchanged. A replay needs no server.
"""

import asyncio
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from limelight.cli.options import JsonRecords, Plain, RunId, Url, User
from limelight.cli.output import exit_code, open_view, print_json
from limelight.cli.server_choice import client_of
from limelight.client import Client
from limelight.errors import SetupError
from limelight.events import Record, Terminal, terminal_of

MAX_PAUSE_SECONDS = 3.0
_decoder = msgspec.json.Decoder(Record)


def export(run_id: RunId, url: Url = None, user: User = "") -> None:
    """Write a run as JSON lines to standard output, for `limelight replay`. Waits for the end of a live run."""
    asyncio.run(_export(client_of(url, user), run_id))


async def _export(server: Client, run_id: str) -> None:
    async with server as client:
        async for record in client.export(run_id):
            print_json(record)


def replay(
    file: Annotated[Path, typer.Argument(help="A file that `limelight export` wrote; - for standard input.")],
    speed: Annotated[float, typer.Option(min=0, help="2 is twice as fast; 0 draws everything at once.")] = 1.0,
    as_json: JsonRecords = False,
    plain: Plain = False,
) -> None:
    """Show an exported run at its original speed, with pauses of at most 3 s. Exit code as of `limelight run`."""
    terminal: Terminal | None = None
    previous_at: int | None = None
    with suppress(KeyboardInterrupt), open_view(as_json, plain) as view:
        for record in _read_records(file):
            if speed and previous_at is not None:
                time.sleep(min(MAX_PAUSE_SECONDS, max(0, record.at - previous_at) / 1000 / speed))
            previous_at = record.at
            view.show(record)
            terminal = terminal_of(record.event) or terminal
    if terminal is None:
        raise SetupError(f"{file} does not contain a complete run: it has no end")
    raise typer.Exit(exit_code(terminal))


def _read_records(file: Path) -> Iterator[Record]:
    name = "standard input" if str(file) == "-" else str(file)
    try:
        lines = sys.stdin.buffer if str(file) == "-" else file.open("rb")
    except OSError as error:
        raise SetupError(f"{name} cannot be read: {error.strerror}") from error
    with lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                try:
                    yield _decoder.decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError) as error:
                    raise SetupError(f"{name}, line {number} is not a Record: {error}") from error
