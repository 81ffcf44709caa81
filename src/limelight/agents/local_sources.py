"""Loads source classes from the user's files: those in the table `[sources]` and of the option `--source`."""

import inspect
from collections.abc import Sequence
from typing import Any

import msgspec

from limelight.agents.load import import_target
from limelight.config import Settings
from limelight.errors import SetupError
from limelight.sources.base import Source

REQUIRED = ("framework", "accepts", "run")
"""The members of Source that every source class must define itself; the others have defaults."""


def with_sources(settings: Settings, targets: Sequence[str]) -> Settings:
    """Return the settings, extended by the sources of the command line. Their names are their targets."""
    overridden = {**settings.origin.overridden, **{("sources", target): "--source" for target in targets}}
    origin = msgspec.structs.replace(settings.origin, overridden=overridden)
    sources = {**settings.sources, **{target: target for target in targets}}
    return msgspec.structs.replace(settings, sources=sources, origin=origin)


def load_sources(settings: Settings) -> list[type[Source]]:
    """Import the source classes that the settings name. Raises SetupError with one line for each mistake."""
    sources: list[type[Source]] = []
    mistakes: list[str] = []
    for name, target in settings.sources.items():
        try:
            sources.append(_load_source(target))
        except SetupError as error:
            mistakes.append(f"{settings.origin.place('sources', name)}{error.detail}")
    if mistakes:
        raise SetupError("\n".join(mistakes))
    return sources


def _load_source(target: str) -> type[Source]:
    _, source = import_target(target, inspect.isclass, "Source")
    if not isinstance(source, type):
        kind = type(source).__name__
        raise SetupError(f"target {target!r} is a {kind}; a source is a class, so write file.py:ClassName")
    missing = [f"`{name}`" for name in REQUIRED if _is_missing(source, name)]
    if missing:
        raise SetupError(
            f"target {target!r}: the class {source.__name__} has no {' and no '.join(missing)}, so it is not a source"
        )
    return source


def _is_missing(source: Any, name: str) -> bool:
    member = getattr(source, name, None)
    inherited = getattr(Source, name, None)
    return member is None or getattr(member, "__func__", member) is getattr(inherited, "__func__", inherited)
