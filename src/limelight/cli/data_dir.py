"""The options `--data` and `--config`, and the settings and the store file that they lead to."""

from pathlib import Path
from typing import Annotated

import typer

from limelight.config import Settings, load_settings
from limelight.errors import SetupError
from limelight.server.app import make_store

Data = Annotated[Path | None, typer.Option(help="Data folder of the server.  [default: .limelight]")]
Config = Annotated[Path | None, typer.Option(help="Configuration.  [default: config.toml, if there is one]")]


def settings_of(data: Path | None, config: Path | None) -> Settings:
    return load_settings(config, overrides={("store", "data"): None if data is None else str(data)})


def store_file(settings: Settings) -> Path:
    """The file of the store. Raises SetupError if it is not a file, StoreUnavailable if a server uses another one."""
    store = make_store(settings)
    if store.file is None:
        raise SetupError(f"the store {settings.store.url} is not a file here: back it up with its own tools")
    store.check_place()
    return store.file
