"""Finds sources, dialects and stores by entry point, the built-in ones and those of others alike."""

from importlib.metadata import entry_points
from typing import Any

from limelight.errors import SetupError


def find(group: str) -> dict[str, Any]:
    """All parts of a group (`sources`, `dialects`, `stores`) by name."""
    return {entry.name: entry.load() for entry in entry_points(group=f"limelight.{group}")}


def one(group: str, name: str) -> Any:
    """The part of that name. Raises SetupError, which names those that there are."""
    for entry in entry_points(group=f"limelight.{group}", name=name):
        return entry.load()
    known = ", ".join(sorted(entry.name for entry in entry_points(group=f"limelight.{group}"))) or "none"
    raise SetupError(f"there is no {group.removesuffix('s')} {name!r}; installed: {known}")
