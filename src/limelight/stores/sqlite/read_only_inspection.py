"""Reads and checks a database that this process has not opened, without changing it. A server may be using it."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from limelight.errors import StoreCorrupt, StoreLocked, StoreNewer, StoreUnavailable
from limelight.stores.sqlite.database_file import FileLock, evidence_of_lost_content
from limelight.stores.sqlite.faults import DAMAGED, LOG_GONE, REPLACED, primary_code, size_of
from limelight.stores.sqlite.schema import MIGRATIONS, version_of
from limelight.stores.sqlite.snapshots import connect, connect_read_only, integrity_error, wal_of

T = TypeVar("T")
LOCK_SECONDS = 2
"""How long to wait for a lock of another program. The commits of a server are much shorter."""


def examine(path: Path) -> str:
    """Return a description of a database's condition. Raises StoreError, with advice, if it cannot be used."""
    is_served = FileLock(path).is_held()
    if not path.exists():
        if is_served:
            raise StoreUnavailable(
                f"{path} is gone, and a server runs that had it open: move the file back. If it was deleted, end the"
                " server with SIGTERM or Ctrl-C, and it writes what it still has to a new file"
            )
        if size_of(wal_of(path)):
            raise StoreUnavailable(f"{path} is gone, but a file -wal that belongs to it is there: move it back")
        return "made at the first start"
    if not is_served and (evidence := evidence_of_lost_content(path)):
        raise StoreCorrupt(f"{path} {evidence}")

    def check(db: sqlite3.Connection) -> tuple[int, str]:
        return version_of(db), integrity_error(db)

    version, damage = _query(path, check)
    if damage:
        raise StoreCorrupt(f"{path} is damaged ({damage}): {DAMAGED.fix}")
    _check_version(path, version)
    _check_writable(path)
    size = size_of(path) + size_of(wal_of(path))
    words = [f"whole, schema version {version}, {size / 1024**2:.1f} MB"]
    if version < len(MIGRATIONS):
        words.append(f"the next start brings it to version {len(MIGRATIONS)} and keeps a copy")
    return "; ".join([*words, *(["a running server uses it"] if is_served else [])])


def query_unopened(path: Path, query: Callable[[sqlite3.Connection], T], default: T) -> T:
    """Return the result of a query, or `default` if the database does not exist or has no tables. Raises StoreError."""

    def run(db: sqlite3.Connection) -> T:
        version = version_of(db)
        _check_version(path, version)
        return query(db) if version else default

    return _query(path, run) if path.exists() else default


def check_place(path: Path) -> None:
    """Raise StoreUnavailable if a running server has another database open, or if its write-ahead log is missing.

    Opening the file at `path` would then mix two databases.
    """
    lock = FileLock(path)
    if not lock.is_held() or not path.exists():
        return
    for fault, is_present in (
        (REPLACED, not lock.matches(path.stat())),
        (LOG_GONE, not wal_of(path).exists()),
    ):
        if is_present:
            raise StoreUnavailable(f"{path}: {fault.words}, and a server runs that had it open: {fault.fix}")


def _query(path: Path, query: Callable[[sqlite3.Connection], T]) -> T:
    check_place(path)
    try:
        with closing(connect_read_only(path)) as db:
            return query(db)
    except sqlite3.OperationalError as error:
        raise StoreUnavailable(f"{path} cannot be read ({error}): check its disk and its permissions") from error
    except sqlite3.DatabaseError as error:
        raise StoreCorrupt(f"{path} is not a readable database ({error}): restore a backup") from error


def _check_version(path: Path, version: int) -> None:
    if version > len(MIGRATIONS):
        raise StoreNewer(f"{path} has schema version {version}, this Limelight knows up to {len(MIGRATIONS)}: upgrade")


def _check_writable(path: Path) -> None:
    """Test that a database can be written: acquire the lock that a writer needs, and release it. Raises StoreError."""
    if not os.access(path, os.W_OK):
        raise StoreUnavailable(f"{path} can only be read: make the file and its file system writable again")
    try:
        with closing(connect(path, "mode=rw", LOCK_SECONDS)) as db:
            db.execute("BEGIN IMMEDIATE")
            db.execute("ROLLBACK")
    except sqlite3.OperationalError as error:
        if primary_code(error) == sqlite3.SQLITE_BUSY:
            raise StoreLocked(f"another program has locked {path}: end it, or wait until it is done") from error
        raise StoreUnavailable(f"{path} cannot be written ({error}): check whether its disk is full") from error
