"""Environment files (`.env`): parses them, and puts their variables into the environment of the user's agents.

The package `agents` applies the files of the working folder and of projects before it imports an agent of the user.
This module records which variables come from files, because settings and built-in agents must not use them (they read
`environ_without_files`), and redaction removes the secrets in them (it reads `file_variables`).
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from limelight.errors import SetupError

OWN_PREFIX = "LIMELIGHT_"
"""Prefix of the variables that configure Limelight itself. An environment file cannot set them."""
ASSIGNMENT = re.compile(
    r"""[ \t]*(?:export[ \t]+)?(?P<name>[A-Za-z_][\w.-]*)[ \t]*=[ \t]*
    (?:'(?P<single>(?:\\.|[^'\\])*)'|"(?P<double>(?:\\.|[^"\\])*)"|(?P<plain>[^'"\s][^\n]*?)?)
    [ \t]*(?:(?<!\S)\#[^\n]*)?(?:\n|\Z)""",
    re.VERBOSE | re.DOTALL,
)
"""Matches an assignment. A value in quotes may span lines; in a value without quotes, ` #` begins a comment."""
BLANK = re.compile(r"[ \t]*(?:\#[^\n]*)?(?:\n|\Z)")
REFERENCE = re.compile(r"\$\{(?P<name>[A-Za-z_]\w*)(?::-(?P<default>[^}]*))?\}")
ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}

_applied: dict[str, str] = {}
"""The variables, with their values, that this module has put into the environment."""
_origins: dict[str, str] = {}
"""By name, the file from which each variable in `_applied` comes."""
_read: set[tuple[str, str]] = set()
"""The names and values of all variables in all files, also of those that were not put into the environment."""


class EnvFile(NamedTuple):
    """The variables of an environment file, and the numbers of lines that are not assignments."""

    variables: dict[str, str]
    invalid_lines: list[int]


def parse(text: str, environ: Mapping[str, str]) -> EnvFile:
    """Parse the text of an environment file. `environ` and earlier lines provide the values of `${NAME}`."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    variables: dict[str, str] = {}
    invalid_lines: list[int] = []
    position = 0
    while position < len(text):
        if match := ASSIGNMENT.match(text, position):
            variables[match["name"]] = _value(match, {**variables, **environ})
        elif not (match := BLANK.match(text, position)):
            invalid_lines.append(text.count("\n", 0, position) + 1)
        end = text.find("\n", position)
        position = match.end() if match else end + 1 if end >= 0 else len(text)
    return EnvFile(variables, invalid_lines)


def _value(match: re.Match[str], known: Mapping[str, str]) -> str:
    if match["single"] is not None:
        return re.sub(r"\\(['\\])", r"\1", match["single"])

    def referenced(reference: re.Match[str]) -> str:
        return known.get(reference["name"]) or reference["default"] or ""

    if match["double"] is not None:
        return REFERENCE.sub(referenced, re.sub(r"\\(.)", _unescaped, match["double"], flags=re.DOTALL))
    return REFERENCE.sub(referenced, re.split(r"(?:^|[ \t]+)#", match["plain"] or "", maxsplit=1)[0])


def _unescaped(escape: re.Match[str]) -> str:
    return ESCAPES.get(escape[1], escape[1] if escape[1] in "\"'\\$" else escape[0])


def apply_file(path: Path) -> list[str]:
    """Put the variables of a file into the environment. Returns a notice for each part of the file without effect.

    Raises SetupError if the file cannot be read.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise SetupError(f"{_shown(path)} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SetupError(f"{_shown(path)} is not a text in UTF-8: {error.reason}") from error
    file = parse(text, environ_without_files())
    invalid = [f"{_shown(path)}:{line}: is not NAME=value, and is skipped" for line in file.invalid_lines]
    return [*invalid, *apply_variables(file.variables, _shown(path))]


def apply_variables(variables: Mapping[str, str], origin: str) -> list[str]:
    """Put variables into the environment, except those that exist already. Returns notices about skipped variables.

    `origin` names the file of the variables. Variables of Limelight itself are skipped.
    """
    notices: list[str] = []
    own = [name for name in variables if name.upper().startswith(OWN_PREFIX)]
    if own:
        notices.append(f"{origin}: {', '.join(own)} skipped: a file cannot set variables of Limelight itself")
    _read.update(variables.items())
    for name, value in variables.items():
        if name in own or "\0" in value:
            continue
        if name not in os.environ:
            os.environ[name] = _applied[name] = value
            _origins[name] = origin
        elif _applied.get(name) == os.environ[name] != value and _origins[name] != origin:
            notices.append(f"{origin}: {name} skipped: {_origins[name]} has set another value")
    return notices


def environ_without_files() -> dict[str, str]:
    """Return the environment without the variables that come from environment files, for Limelight's own use."""
    return {name: value for name, value in os.environ.items() if _applied.get(name) != value}


def file_variables() -> list[dict[str, str]]:
    """Return the variables of all environment files that were read, so that redaction finds the secrets in them."""
    return [{name: value} for name, value in sorted(_read)]


def _shown(path: Path) -> str:
    return os.path.relpath(path) if path.resolve().is_relative_to(Path.cwd()) else str(path)
