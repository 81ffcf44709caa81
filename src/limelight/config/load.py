"""Reads the settings: the file first, then environment and command line over it."""

import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from limelight.config.schema import Origin, Setting, Settings, all_settings
from limelight.config.validation import Table, checked, checked_file
from limelight.errors import SetupError


def load_settings(
    config: Path | None = None,
    environ: Mapping[str, str] = os.environ,
    overrides: Mapping[tuple[str, str], Any] | None = None,
) -> Settings:
    """Read the file (`config`, else ./config.toml if there is one), then let environment and command line win."""
    origin = _origin(config)
    values = checked_file(_read(origin), origin)
    elsewhere: dict[tuple[str, ...], str] = {}
    for setting in all_settings():
        path = (setting.section, setting.key)
        for where, value in _given(setting, environ, overrides or {}):
            values.setdefault(setting.section, {})[setting.key] = checked(value, setting, where)
            elsewhere[path] = where
    origin = msgspec.structs.replace(origin, elsewhere=elsewhere)
    return msgspec.structs.replace(msgspec.convert(values, Settings), origin=origin)


def _given(
    setting: Setting, environ: Mapping[str, str], overrides: Mapping[tuple[str, str], Any]
) -> Iterator[tuple[str, Any]]:
    """What environment and command line say, each with where it was said; the last one wins."""
    name = f"`{setting.section}.{setting.key}`"
    if setting.env and setting.env in environ:
        yield f"{setting.env}, which sets {name},", environ[setting.env]
    given = overrides.get((setting.section, setting.key))
    if given is not None:
        yield f"{name} on the command line", given


def _origin(config: Path | None) -> Origin:
    path = config or Path("config.toml")
    if config is None and not path.exists():
        return Origin()
    try:
        return Origin(str(path), path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise SetupError(f"the configuration {path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SetupError(f"{path} is not valid TOML: {error}") from error


def _read(origin: Origin) -> Table:
    try:
        return tomllib.loads(origin.text)
    except tomllib.TOMLDecodeError as error:
        raise SetupError(f"{origin.file} is not valid TOML: {error}") from error
