"""`limelight restore`: a data folder from a backup."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from limelight.backups.content import DATABASE
from limelight.backups.restore import restore as restore_backup
from limelight.cli.data_dir import Config, Data, settings_of
from limelight.cli.tables import printable, when
from limelight.server.app import make_store


def restore(
    source: Annotated[Path, typer.Argument(help="What `limelight backup` has made.")],
    data: Data = None,
    config: Config = None,
) -> None:
    """Make a data folder of a backup. The folder has to be new or empty."""
    settings = settings_of(data, config)
    folder, store = Path(settings.store.data), make_store(settings).file

    def examine(draft: Path) -> None:
        settings.store.data, settings.store.url = str(draft), "sqlite"
        asyncio.run(make_store(settings).examine())

    manifest = restore_backup(source, folder, examine)
    begin = f"limelight serve --data {folder}"
    if store is None:
        begin = f"store.url is not this file, so begin with: {begin} --store sqlite"
    elif store.absolute() != (folder / DATABASE).absolute():
        begin = f"move {folder / DATABASE} to {store}, where store.url says it is, then: {begin}"
    typer.echo(f"Restored to {folder}, as it was on {when(manifest.made_at)}: {begin}")
    for name, why in manifest.doubtful.items():
        typer.echo(f"{printable(name)} may be damaged, and was when the backup was made ({why})", err=True)
