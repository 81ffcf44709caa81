"""`limelight retention`: shows which old sessions and runs will be deleted, and confirms the clock after a jump.

Both commands read the data folder and the clock of this machine, so they need no running server.
"""

import asyncio
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from limelight.cli.command_group import new_group
from limelight.cli.options import Config, Data, settings_of
from limelight.cli.output import print_json
from limelight.config import Settings
from limelight.ids import now_ms
from limelight.runs.retention_clock import (
    DAY_MS,
    Pause,
    advise,
    check_clock,
    describe,
    recorded_pause,
    trusted_at_start,
)
from limelight.runs.retention_guard import Confirmation, RetentionFiles
from limelight.server.app import make_store
from limelight.timestamps import iso

retention = new_group("retention", "Show what retention keeps, and confirm the clock. Without a command: status.")


class RetentionStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The state of retention, as `status --json` prints it. Times are in milliseconds since 1970."""

    retention_days: float
    max_gap_days: float
    clock_at: int
    newest_at: int | None
    sessions: int
    runs: int
    sessions_to_delete: int
    runs_to_delete: int
    pause: Pause | None


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@retention.callback(invoke_without_command=True)
def show(context: typer.Context, data: Data = None, config: Config = None, as_json: AsJson = False) -> None:
    """Run `limelight retention status` if no subcommand is named."""
    if context.invoked_subcommand is None:
        status(data, config, as_json)
    elif data is not None or config is not None or as_json:
        raise typer.BadParameter(f"write the options after {context.invoked_subcommand!r}")


@retention.command()
def status(data: Data = None, config: Config = None, as_json: AsJson = False) -> None:
    """Show what is stored, how much of it is old enough to be deleted, and whether deletion is paused."""
    found = retention_status(settings_of(data, config))
    if as_json:
        print_json(found)
        return
    newest = "none" if found.newest_at is None else iso(found.newest_at)
    gap = f"{found.max_gap_days:g} days" if found.max_gap_days else "off"
    for name, value in (
        ("kept for", f"{found.retention_days:g} days after a run's end (store.retention_days)"),
        ("kept now", f"{found.sessions} sessions, {found.runs} runs"),
        ("past that", f"{found.sessions_to_delete} sessions, {found.runs_to_delete} runs"),
        ("newest", f"{newest}, the clock is {iso(found.clock_at)}"),
        ("clock gap", f"{gap} (store.retention_max_gap_days)"),
        ("state", "active" if found.pause is None else f"paused, nothing is deleted: {describe(found.pause)}"),
    ):
        typer.echo(f"{name:<10} {value}")
    if found.pause is not None:
        typer.echo(f"What to do: {advise(found.pause)}")


@retention.command()
def confirm(data: Data = None, config: Config = None) -> None:
    """Confirm that the clock of this machine is right, so that a paused deletion of old runs continues."""
    settings = settings_of(data, config)
    found = retention_status(settings)
    if found.pause is None:
        typer.echo("Retention is not paused: there is nothing to confirm.")
        return
    RetentionFiles(Path(settings.store.data)).confirm(Confirmation(found.clock_at, found.pause))
    typer.echo(f"Confirmed that it is {iso(found.clock_at)}. Retention was paused because {describe(found.pause)}.")
    typer.echo(
        f"{found.sessions_to_delete} sessions and {found.runs_to_delete} runs are past their retention. A running"
        " server deletes them within seconds, otherwise the next start does."
    )


def retention_status(settings: Settings) -> RetentionStatus:
    """Return the state of retention: counts of sessions and runs, and whether deletion is paused.

    The pause is the one that a running server has decided, or that a server that starts now would decide. Raises
    StoreError or SetupError.
    """
    store, files = make_store(settings), RetentionFiles(Path(settings.store.data))
    clock = now_ms()
    newest_at = asyncio.run(store.newest_at())
    counts = asyncio.run(store.retention_counts(clock - round(settings.store.retention_days * DAY_MS)))
    trusted = trusted_at_start(files.load(), newest_at=newest_at, confirmed_at=files.confirmed_at(), clock_ms=clock)
    max_gap_ms = round(settings.store.retention_max_gap_days * DAY_MS)
    checked = check_clock(trusted, clock_ms=clock, elapsed_ms=0, max_gap_ms=max_gap_ms)
    return RetentionStatus(
        retention_days=settings.store.retention_days,
        max_gap_days=settings.store.retention_max_gap_days,
        clock_at=clock,
        newest_at=newest_at,
        sessions=counts.sessions,
        runs=counts.runs,
        sessions_to_delete=counts.sessions_to_delete,
        runs_to_delete=counts.runs_to_delete,
        pause=checked.pause or recorded_pause(trusted, clock),
    )
