"""`limelight backup`: a copy of all that a server has, while it runs or not."""

import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from limelight import __version__
from limelight.backups.create import CreatedBackup, create_backup
from limelight.cli.data_dir import Config, Data, settings_of, store_file
from limelight.cli.tables import megabytes, printable

PAUSE_SECONDS = 2.0
"""Between two lines about work that takes long."""
NAMED = 10
"""How many of the things that are not in a backup are named."""


def backup(
    target: Annotated[Path, typer.Argument(help="A new folder, or a new file that ends in .tar.gz.")],
    data: Data = None,
    config: Config = None,
) -> None:
    """Back up the data folder: conversations, keys, what agents keep. A running server goes on."""
    settings = settings_of(data, config)
    made = create_backup(
        Path(settings.store.data),
        store_file(settings),
        target,
        at=int(time.time() * 1000),
        version=__version__,
        progress=Telling().tell,
    )
    inside = f"{', '.join(made.databases)} and {made.files} files, {megabytes(made.size)}"
    typer.echo(f"Backed up to {target}: {inside}, checked.")
    for line in warnings_of(made):
        typer.echo(line, err=True)


def warnings_of(made: CreatedBackup) -> Iterator[str]:
    """A line for each thing that is not in it as it should be."""
    for name, why in made.doubtful.items():
        yield f"{printable(name)} may be damaged ({why}): it is in the backup as it is"
    for name, why in islice(made.unread.items(), NAMED):
        yield f"{printable(name)} is not in the backup: {why}"
    if len(made.unread) > NAMED:
        yield f"and {len(made.unread) - NAMED} more"


class Telling:
    """Lines on standard error about work that takes long; quick work has none."""

    def __init__(self) -> None:
        self._told_at = time.monotonic()

    def tell(self, what: str, done: int, all_: int) -> None:
        now = time.monotonic()
        if now - self._told_at >= PAUSE_SECONDS:
            self._told_at = now
            typer.echo(f"{what}: {100 * done // max(1, all_)} %", err=True)
