"""`limelight restore`: a data folder from a backup."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from limelight.backups.restoring import restore as restore_backup
from limelight.cli.folder import Config, Data, settings_of
from limelight.cli.listing import when
from limelight.server.app import make_store


def restore(
    source: Annotated[Path, typer.Argument(help="What `limelight backup` has made.")],
    data: Data = None,
    config: Config = None,
) -> None:
    """Make a data folder of a backup. The folder has to be new or empty."""
    settings = settings_of(data, config)
    folder = Path(settings.store.data)

    def examine(draft: Path) -> None:
        settings.store.data, settings.store.url = str(draft), "sqlite"
        asyncio.run(make_store(settings).examine())

    manifest = restore_backup(source, folder, examine)
    typer.echo(f"Restored to {folder}, as it was on {when(manifest.made_at)}: limelight serve --data {folder}")
