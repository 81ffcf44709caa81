"""The command line `limelight`: one module for each command, and modules that several commands share.

Shared are the options, the output, the approval dialogue, and `view/`, which draws a run in the terminal.
"""

import sys

import typer

from limelight import __version__
from limelight.cli.command_group import CommandGroup

app = typer.Typer(
    name="limelight",
    cls=CommandGroup,
    help="Serves agents, and shows their work live.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"limelight {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    """Define the options that stand before a command, such as `limelight --version`."""


USAGE_ERROR = 2
TEMPORARY_FAILURE = 75
"""Exit code of temporary errors, such as a locked data folder: `EX_TEMPFAIL` of sysexits.h."""


def main() -> None:
    """Run the program. Errors are printed to stderr. Exit code: 2, or 75 if the same command may succeed later."""
    try:
        app()
    except Exception as error:
        # These modules are imported only for an error, because the client's package imports the HTTP library.
        from limelight.client import ClientError, ConnectionLost
        from limelight.errors import SetupError, StoreError, StoreLocked, StoreUnavailable, TryLater

        if not isinstance(error, (SetupError, StoreError, ClientError)):
            raise
        hint = ": start one with `limelight serve`, or name another with --url"
        text = f"{error.detail}{hint if isinstance(error, ConnectionLost) else ''}"
        typer.echo("\n".join(f"limelight: {line}" for line in text.splitlines()), err=True)
        temporary = isinstance(error, (TryLater, StoreLocked, StoreUnavailable))
        sys.exit(TEMPORARY_FAILURE if temporary else USAGE_ERROR)
