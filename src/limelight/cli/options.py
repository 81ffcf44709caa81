"""Command-line options that several commands share, and a function that loads the settings for two of them."""

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
TARGET_HELP = "module:name, path/to/file.py:name, a folder with a langgraph.json"
NoEnvFile = Annotated[
    bool, typer.Option("--no-env-file", help="Do not read .env, or the env of a langgraph.json, for your own agents.")
]


def env_file_override(no_env_file: bool) -> dict[tuple[str, str], str | None]:
    """Return the settings override for --no-env-file: it clears `server.env_file`."""
    return {("server", "env_file"): "" if no_env_file else None}


def settings_of(data: Path | None, config: Path | None) -> Settings:
    return load_settings(config, overrides={("store", "data"): None if data is None else str(data)})
