"""Looks at a database without changing it, also beside a server: is it there, whole, writable, of which version?"""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from limelight.errors import StoreCorrupt, StoreLocked, StoreNewer, StoreUnavailable
from limelight.stores.sqlite.database_copy import faults_of, reading
from limelight.stores.sqlite.faults import LOG_GONE, REPLACED
from limelight.stores.sqlite.lock import FolderLock
from limelight.stores.sqlite.schema import MIGRATIONS, version_of

T = TypeVar("T")
LOCK_SECONDS = 2
"""How long another program may have it for itself: a server's commits are much shorter."""


def examine(path: Path) -> str:
    """What there is, in words. Raises StoreError, with what to do."""
    served = FolderLock(path).is_taken()
    if not path.exists():
        if served:
            raise StoreUnavailable(
                f"{path} is gone, and a server runs that had it open: move the file back. If it was deleted, end the"
                " server with SIGTERM or Ctrl-C, and it writes what it still has to a new file"
            )
        if _size(path.with_name(path.name + "-wal")):
            raise StoreUnavailable(f"{path} is gone, but a file -wal that belongs to it is there: move it back")
        return "made at the first start"
    check_place(path)
    try:
        with closing(reading(path)) as db:
            version, faults = version_of(db), faults_of(db, quick=True)
    except sqlite3.OperationalError as error:
        raise StoreUnavailable(f"{path} cannot be read ({error}): see that its disk and its owner are right") from error
    except sqlite3.DatabaseError as error:
        raise StoreCorrupt(f"{path} is not a readable database ({error}): restore a backup") from error
    if faults:
        raise StoreCorrupt(f"{path} is damaged ({faults}): end the server and restore a backup")
    if version > len(MIGRATIONS):
        raise _newer(path, version)
    _try_to_write(path)
    size = path.stat().st_size + _size(path.with_name(path.name + "-wal"))
    words = [f"whole, schema version {version}, {size / 1024**2:.1f} MB"]
    if version < len(MIGRATIONS):
        words.append(f"the next start brings it to version {len(MIGRATIONS)} and keeps a copy")
    return "; ".join([*words, *(["a running server uses it"] if served else [])])


def query_unopened(path: Path, query: Callable[[sqlite3.Connection], T], default: T) -> T:
    """Run a query on a database that this process has not opened; `default` if it has no tables yet.

    Raises StoreError, with what to do.
    """
    if not path.exists():
        return default
    check_place(path)
    try:
        with closing(reading(path)) as db:
            version = version_of(db)
            if version > len(MIGRATIONS):
                raise _newer(path, version)
            return query(db) if version else default
    except sqlite3.OperationalError as error:
        raise StoreUnavailable(f"{path} cannot be read ({error}): see that its disk and its owner are right") from error
    except sqlite3.DatabaseError as error:
        raise StoreCorrupt(f"{path} is not a readable database ({error}): restore a backup") from error


def _newer(path: Path, version: int) -> StoreNewer:
    return StoreNewer(f"{path} has schema version {version}, this Limelight knows up to {len(MIGRATIONS)}: upgrade")


def check_place(path: Path) -> None:
    """Raises StoreUnavailable if a running server has something else open: to open this here would mix the two."""
    lock = FolderLock(path)
    if not lock.is_taken() or not path.exists():
        return
    for trouble, is_there in (
        (REPLACED, not lock.is_of(path.stat())),
        (LOG_GONE, not path.with_name(path.name + "-wal").exists()),
    ):
        if is_there:
            raise StoreUnavailable(f"{path}: {trouble.words}, and a server runs that had it open: {trouble.fix}")


def _try_to_write(path: Path) -> None:
    """Take the lock that a writer takes, and let go of it."""
    if not os.access(path, os.W_OK):
        raise StoreUnavailable(f"{path} can only be read: make the file and its file system writable again")
    try:
        address = f"{path.absolute().as_uri()}?mode=rw"
        with closing(sqlite3.connect(address, uri=True, timeout=LOCK_SECONDS, isolation_level=None)) as db:
            db.execute("BEGIN IMMEDIATE")
            db.execute("ROLLBACK")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
            raise StoreLocked(f"another program has locked {path}: end it, or wait until it is done") from error
        raise StoreUnavailable(f"{path} cannot be written ({error}): see whether its disk is full") from error


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
