"""Command-line options that several commands share, and the loading of settings with `--data` and `--config`."""

from pathlib import Path
from typing import Annotated

import typer

from limelight.config import Settings, load_settings

Data = Annotated[Path | None, typer.Option(help="Data folder of the server.  [default: .limelight]")]
Config = Annotated[Path | None, typer.Option(help="Configuration.  [default: config.toml, if there is one]")]
Url = Annotated[str | None, typer.Option("--url", help="Server.  [default: LIMELIGHT_URL, else http://127.0.0.1:8000]")]
User = Annotated[
    str, typer.Option("--user", envvar="LIMELIGHT_USER", help="Act for this user; the key must allow that.")
]
RunId = Annotated[str, typer.Argument(metavar="RUN", help="The run's id.")]
JsonLines = Annotated[bool, typer.Option("--json", help="Print JSON lines.")]
JsonRecords = Annotated[bool, typer.Option("--json", help="Print Records as JSON lines.")]
Plain = Annotated[bool, typer.Option("--plain", help="Print plain lines, as when this is not a terminal.")]


def settings_of(data: Path | None, config: Path | None) -> Settings:
    return load_settings(config, overrides={("store", "data"): None if data is None else str(data)})
