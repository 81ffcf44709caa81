"""Makes the names of agents distinct if several targets of the command line have the same variable name. Pure."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePath
from typing import NamedTuple

INVALID_CHARS = re.compile(r"[^A-Za-z0-9._]+")
MAX_LENGTH = 64


class NamedTarget(NamedTuple):
    """The name of a target's agent, and the parts of its module or folder: those of `a/bot.py` are `a` and `bot`."""

    name: str
    place: tuple[str, ...] = ()


def path_parts(module: str) -> tuple[str, ...]:
    """Return the parts of a module's dotted name or of a file's path."""
    if module.endswith((".py", ".json")) or "/" in module:
        path = PurePath(module)
        parts = (path.parent if path.suffix == ".json" else path.parent / path.stem).parts
        return tuple(part for part in parts if part not in ("/", "..", "."))
    return tuple(filter(None, module.split(".")))


def distinct_names(targets: Sequence[NamedTarget]) -> list[str]:
    """Return a name for each target; equal names are made distinct by the last parts of their module or folder.

    As many parts as necessary are used: `a/bot.py:agent` and `b/bot.py:agent` become `a-bot-agent` and `b-bot-agent`.
    Names that no part distinguishes stay the same.
    """
    names = [target.name for target in targets]
    depth = max((len(target.place) for target in targets), default=0)
    counts = Counter(names)
    for length in range(1, depth + 1):
        longer = [
            _joined(target, length) if counts[target.name] > 1 and target.place else name
            for target, name in zip(targets, names, strict=True)
        ]
        if len(set(longer)) > len(set(names)):
            names = longer
        if len(set(names)) == len(targets):
            break
    return names


def _joined(target: NamedTarget, length: int) -> str:
    """Return a target's name, preceded by this number of the last parts of its module or folder."""
    parts = [*target.place[-length:], target.name]
    return INVALID_CHARS.sub("-", "-".join(parts)).strip("-._")[-MAX_LENGTH:].lstrip("-._")
