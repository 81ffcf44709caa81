"""Loads the settings: the file first, then the environment and the command line, which override it."""

import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from limelight.config.schema import Setting, Settings, all_settings
from limelight.config.setting_locations import Origin
from limelight.config.setting_locations import Path as KeyPath
from limelight.config.validation import Table, check_file, check_value
from limelight.errors import SetupError


def load_settings(
    config: Path | None = None,
    environ: Mapping[str, str] = os.environ,
    overrides: Mapping[tuple[str, str], Any] | None = None,
) -> Settings:
    """Load the settings from `config`, or from ./config.toml if it exists. Raises SetupError."""
    origin = _read_file(config)
    values = check_file(_parse(origin), origin)
    overridden: dict[KeyPath, str] = {}
    for setting in all_settings():
        for place, value in _overrides(setting, environ, overrides or {}):
            values.setdefault(setting.section, {})[setting.key] = check_value(value, setting, place)
            overridden[setting.section, setting.key] = place
    origin = msgspec.structs.replace(origin, overridden=overridden)
    return msgspec.structs.replace(msgspec.convert(values, Settings), origin=origin)


def _overrides(
    setting: Setting, environ: Mapping[str, str], overrides: Mapping[tuple[str, str], Any]
) -> Iterator[tuple[str, Any]]:
    """Yield the values that override one setting, from the environment and the command line, each with its origin."""
    name = f"`{setting.section}.{setting.key}`"
    if setting.env and setting.env in environ:
        yield f"{setting.env}, which sets {name},", environ[setting.env]
    value = overrides.get((setting.section, setting.key))
    if value is not None:
        yield f"{name} on the command line", value


def _read_file(config: Path | None) -> Origin:
    path = config or Path("config.toml")
    if config is None and not path.exists():
        return Origin()
    try:
        return Origin(str(path), path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise SetupError(f"the configuration {path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SetupError(f"{path} is not valid TOML: {error}") from error


def _parse(origin: Origin) -> Table:
    try:
        return tomllib.loads(origin.text)
    except tomllib.TOMLDecodeError as error:
        raise SetupError(f"{origin.file} is not valid TOML: {error}") from error
