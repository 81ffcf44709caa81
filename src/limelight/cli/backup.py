"""`limelight backup` copies the data folder of a server; `limelight restore` creates a data folder from a copy."""

import asyncio
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from limelight import __version__
from limelight.backups.content import DATABASE
from limelight.backups.create import CreatedBackup, create_backup
from limelight.backups.restore import restore as restore_backup
from limelight.cli.options import Config, Data, settings_of
from limelight.cli.output import local_time, megabytes, printable
from limelight.config import Settings
from limelight.errors import SetupError
from limelight.ids import now_ms
from limelight.server.app import make_store

PROGRESS_SECONDS = 2.0
"""Time between two lines that report the progress of a backup."""
MAX_NAMED = 10
"""Maximum number of missing files that are listed by name."""


def backup(
    target: Annotated[Path, typer.Argument(help="A new folder, or a new file that ends in .tar.gz.")],
    data: Data = None,
    config: Config = None,
) -> None:
    """Back up the data folder: conversations, keys, files and memories of agents. A server may be running."""
    settings = settings_of(data, config)
    made = create_backup(
        Path(settings.store.data),
        _store_file(settings),
        target,
        at=now_ms(),
        version=__version__,
        progress=progress_printer(),
    )
    inside = f"{', '.join(made.databases)} and {made.files} files, {megabytes(made.size)}"
    typer.echo(f"Backed up to {target}: {inside}, checked.")
    for line in warning_lines(made):
        typer.echo(line, err=True)


def _store_file(settings: Settings) -> Path:
    """Return the path of the store's database file.

    Raises SetupError if the store is not a file, and StoreUnavailable if a running server uses another file.
    """
    store = make_store(settings)
    if store.file is None:
        raise SetupError(f"the store {settings.store.url} is not a file here: back it up with its own tools")
    store.check_place()
    return store.file


def warning_lines(made: CreatedBackup) -> Iterator[str]:
    """Yield a warning for each file that may be damaged or is missing in a backup."""
    for name, why in made.doubtful.items():
        yield f"{printable(name)} may be damaged ({why}): it is in the backup unchanged"
    for name, why in islice(made.unread.items(), MAX_NAMED):
        yield f"{printable(name)} is not in the backup: {why}"
    if len(made.unread) > MAX_NAMED:
        yield f"and {len(made.unread) - MAX_NAMED} more"


def progress_printer() -> Callable[[str, int, int], None]:
    """Return a callback that prints the progress of a backup to stderr, at most every two seconds."""
    printed_at = time.monotonic()

    def print_progress(what: str, done: int, total: int) -> None:
        nonlocal printed_at
        now = time.monotonic()
        if now - printed_at >= PROGRESS_SECONDS:
            printed_at = now
            typer.echo(f"{what}: {100 * done // max(1, total)} %", err=True)

    return print_progress


def restore(
    source: Annotated[Path, typer.Argument(help="A backup that `limelight backup` has created.")],
    data: Data = None,
    config: Config = None,
) -> None:
    """Create a data folder from a backup. The folder must be new or empty."""
    settings = settings_of(data, config)
    folder, store = Path(settings.store.data), make_store(settings).file

    def examine(draft: Path) -> None:
        settings.store.data, settings.store.url = str(draft), "sqlite"
        asyncio.run(make_store(settings).examine())

    manifest = restore_backup(source, folder, examine)
    command = f"limelight serve --data {folder}"
    if store is None:
        command = f"store.url is not this file, so begin with: {command} --store sqlite"
    elif store.absolute() != (folder / DATABASE).absolute():
        command = f"move {folder / DATABASE} to {store}, where store.url says it is, then: {command}"
    typer.echo(f"Restored to {folder}, as it was on {local_time(manifest.made_at)}: {command}")
    for name, why in manifest.doubtful.items():
        typer.echo(f"{printable(name)} may be damaged, and was when the backup was made ({why})", err=True)
