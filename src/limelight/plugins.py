"""Finds sources, dialects and stores, Limelight's own and those of other packages, by their entry points."""

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from limelight.errors import SetupError


def find(group: str) -> dict[str, Any]:
    """Load all plug-ins of a kind (`sources`, `dialects` or `stores`) and return them by name."""
    return {name: entry.load() for name, entry in _entries(group).items()}


def get(group: str, name: str) -> Any:
    """Load and return the plug-in with this name. Raises SetupError, which lists the installed plug-ins."""
    entries = _entries(group)
    if name in entries:
        return entries[name].load()
    known = ", ".join(sorted(entries)) or "none"
    raise SetupError(f"there is no {group.removesuffix('s')} {name!r}; installed: {known}")


@cache
def _entries(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of a kind of plug-in, cached because each lookup reads all packages' metadata."""
    return {entry.name: entry for entry in entry_points(group=f"limelight.{group}")}
