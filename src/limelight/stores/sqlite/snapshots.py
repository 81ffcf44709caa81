"""Copies of a database that a server makes beside it: before a migration, and when it was deleted while it was open.

They are never removed by us, and never written over.
"""

import filecmp
import logging
import sqlite3
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from limelight.errors import TryLater
from limelight.stores.sqlite.database_copy import copy

log = logging.getLogger(__name__)


def keep_before_migrating(db: sqlite3.Connection, path: Path, version: int) -> None:
    """Copy a database that is of this version still. Raises TryLater if there is no room for that."""
    draft = path.with_name(f"{path.name}.v{version}.part")
    draft.unlink(missing_ok=True)  # a crash has left it
    try:
        copy(db, draft)
    except (sqlite3.Error, OSError) as error:
        draft.unlink(missing_ok=True)
        raise TryLater(
            f"{path} is of version {version} and has to be brought up to date, but the copy that is made first"
            f" cannot be written ({error}): make room for {_megabytes(path)} MB on that disk and start again;"
            " nothing has changed"
        ) from error
    # A start that was cut off before this one has made the same copy: one is enough.
    names = _names(path, f"v{version}", ".bak")
    kept = next(name for name in names if not name.exists() or filecmp.cmp(draft, name, shallow=False))
    draft.replace(kept)
    log.warning("%s is brought up to date from version %d; as it was before, it is kept as %s", path, version, kept)


def rescue(db: sqlite3.Connection, path: Path) -> None:
    """Write what a deleted database holds to a new file. Says in the log where that is, or that it cannot be."""
    name = next(name for name in _names(path, "rescued", "") if not name.exists())
    draft = name.with_name(f"{name.name}.part")
    try:
        name.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft.unlink(missing_ok=True)
        copy(db, draft)
        draft.rename(name)
    except (sqlite3.Error, OSError) as error:
        log.error("%s was deleted, and what it held cannot be written to %s: %s", path, name, error)
    else:
        log.error("%s was deleted while it was open: what it held is in %s. To go on with it, rename it", path, name)


def _names(path: Path, what: str, ending: str) -> Iterator[Path]:
    yield path.with_name(f"{path.name}.{what}{ending}")
    for number in count(2):
        yield path.with_name(f"{path.name}.{what}-{number}{ending}")


def _megabytes(path: Path) -> int:
    return path.stat().st_size // 1024**2 + 1
