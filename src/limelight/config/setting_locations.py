"""Finds where a setting was set: the file and the line, the environment or the command line. Pure."""

import tomllib
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, cast

import msgspec

Path = tuple[str, ...]
"""The path of a table or a key in the file, such as `("agents", "deep", "title")`."""


class Origin(msgspec.Struct, frozen=True):
    """Where the settings come from: the configuration file, and the settings that were overridden elsewhere.

    Error messages use it to name the place of a setting.
    """

    file: str = ""
    text: str = ""
    overridden: dict[Path, str] = {}
    """Settings from the environment or the command line, each with a text that names the variable or option."""

    def place(self, *path: str) -> str:
        """Return where a setting was set, as the prefix of an error message: `config.toml:7: `, or `config.toml: `."""
        if path in self.overridden:
            return f"{self.overridden[path].rstrip(',')}: "
        if not self.file:
            return ""
        line = key_lines(self.text).get(path)
        return f"{self.file}: " if line is None else f"{self.file}:{line}: "


@lru_cache(maxsize=1)
def key_lines(text: str) -> dict[Path, int]:
    """Return, for each table and key of a TOML file, the line that first names it; {} if the file is invalid.

    `tomllib` reports no line numbers, so this parses each statement alone: it adds lines until a statement is complete.
    """
    lines: dict[Path, int] = {}
    table: Path = ()
    statement, first_line = "", 1
    for number, line in enumerate(text.split("\n"), start=1):
        if not statement:
            first_line = number
        statement += f"{line}\n"
        try:
            values = tomllib.loads(statement)
        except tomllib.TOMLDecodeError:
            continue
        paths = list(_paths(values))
        if statement.lstrip().startswith("["):
            table = paths[-1]
        else:
            paths = [(*table, *path) for path in paths]
        for path in paths:
            lines.setdefault(path, first_line)
        statement = ""
    return {} if statement.strip() else lines


def _paths(values: dict[str, Any]) -> Iterator[Path]:
    for key, value in values.items():
        yield (key,)
        if isinstance(value, dict):
            yield from ((key, *path) for path in _paths(cast("dict[str, Any]", value)))
