"""The command line: a file a command."""

import sys

import typer

from limelight import __version__
from limelight.cli import (
    approve,
    backup,
    doctor,
    export,
    keys,
    openwebui,
    replay,
    restore,
    retention,
    run,
    serve,
    sessions,
    understudy,
    watch,
)
from limelight.client import ClientError, ConnectionLost
from limelight.errors import SetupError, StoreError, StoreLocked, StoreUnavailable, TryLater

app = typer.Typer(
    name="limelight",
    help="Puts an agent's work in the light.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for command in (
    serve.serve,
    run.run,
    watch.watch,
    approve.approve,
    sessions.sessions,
    export.export,
    replay.replay,
    understudy.understudy,
    backup.backup,
    restore.restore,
    doctor.doctor,
):
    app.command()(command)
app.add_typer(openwebui.openwebui)
app.add_typer(keys.keys)
app.add_typer(retention.retention)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"limelight {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Say the version and exit."
    ),
) -> None:
    """Options of the program itself."""


WRONG = 2
LATER = 75
"""`EX_TEMPFAIL` of sysexits.h: who called did nothing wrong, and may call again."""


def main() -> None:
    """Run a command; what is wrong with the set-up is a line each on stderr, and exit code 2, or 75 if it may pass."""
    try:
        app()
    except (SetupError, StoreError, ClientError) as error:
        hint = ": start one with `limelight serve`, or name another with --url"
        told = f"{error.detail}{hint if isinstance(error, ConnectionLost) else ''}"
        typer.echo("\n".join(f"limelight: {line}" for line in told.splitlines()), err=True)
        sys.exit(LATER if isinstance(error, (TryLater, StoreLocked, StoreUnavailable)) else WRONG)
