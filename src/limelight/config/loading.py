"""Reads the settings: the file first, then environment and command line over it."""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from limelight.config.mistakes import Table, checked, checked_file
from limelight.config.schema import Origin, Settings, all_settings
from limelight.errors import SetupError


def load_settings(
    config: Path | None = None,
    environ: Mapping[str, str] = os.environ,
    overrides: Mapping[tuple[str, str], Any] | None = None,
) -> Settings:
    """Read the file (`config`, else ./config.toml if there is one), then let environment and command line win."""
    origin = _origin(config)
    values = checked_file(_read(origin), origin)
    for setting in all_settings():
        name = f"`{setting.section}.{setting.key}`"
        given = (overrides or {}).get((setting.section, setting.key))
        if setting.env and setting.env in environ:
            value = checked(environ[setting.env], setting, f"{setting.env}, which sets {name},", strict=False)
            values.setdefault(setting.section, {})[setting.key] = value
        if given is not None:
            value = checked(given, setting, f"{name} on the command line", strict=False)
            values.setdefault(setting.section, {})[setting.key] = value
    return msgspec.structs.replace(msgspec.convert(values, Settings), origin=origin)


def _origin(config: Path | None) -> Origin:
    path = config or Path("config.toml")
    if config is None and not path.exists():
        return Origin()
    try:
        return Origin(str(path), path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SetupError(f"the configuration {path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SetupError(f"{path} is not valid TOML: {error}") from error


def _read(origin: Origin) -> Table:
    try:
        return tomllib.loads(origin.text)
    except tomllib.TOMLDecodeError as error:
        raise SetupError(f"{origin.file} is not valid TOML: {error}") from error
