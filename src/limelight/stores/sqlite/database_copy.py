"""SQLite files, whoever's they are: a consistent copy of one that is in use, and whether one is whole.

It knows no tables and no store. Stores copy with it before they migrate, `backups/` copies a data folder.
"""

import os
import sqlite3
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path

MAGIC = b"SQLite format 3\0"
PAGES = 2048
"""What is copied at a time, 8 MB of a usual file; then there is progress to tell."""
PATIENCE_SECONDS = 30
"""For a program that has the file for itself for a moment."""
Progress = Callable[[int, int], None]
"""Told how many pages are copied, of how many."""


def is_database(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def reading(path: Path) -> sqlite3.Connection:
    """A connection that changes nothing, also beside a server. Raises sqlite3.Error."""
    try:
        return _opened(path, "mode=ro")
    except sqlite3.OperationalError:
        if path.with_name(path.name + "-wal").exists() or os.access(path.parent, os.W_OK):
            raise
        # In a folder where nothing can be made, SQLite reads only what it is told that nobody changes.
        return _opened(path, "immutable=1")


def _opened(path: Path, option: str) -> sqlite3.Connection:
    address = f"{path.absolute().as_uri()}?{option}"
    db = sqlite3.connect(address, uri=True, timeout=PATIENCE_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        db.execute("PRAGMA schema_version").fetchone()
    except BaseException:
        db.close()
        raise
    return db


@contextmanager
def hold(db: sqlite3.Connection) -> Generator[None]:
    """See the database as it is now, whoever writes meanwhile. One that is not in WAL mode is not held: its writers
    would have to wait."""
    (mode,) = db.execute("PRAGMA journal_mode").fetchone()
    if mode != "wal" or db.in_transaction:
        yield
        return
    db.execute("BEGIN")
    try:
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        yield
    finally:
        if db.in_transaction:  # a disk that fails has ended it
            db.execute("ROLLBACK")


def copy(source: sqlite3.Connection, target: Path, progress: Progress | None = None) -> None:
    """Copy the database as it is at this moment into a new file, for its owner's eyes only. Raises sqlite3.Error.

    Whoever writes goes on writing meanwhile: a reader of a database in WAL mode holds nobody up, and what comes later
    is not in the copy. Other databases are copied in one go, for which their writers wait.
    """
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))

    def tell(_: int, remaining: int, total: int) -> None:
        if progress is not None:
            progress(total - remaining, total)

    # Unless it is held, each write of others would make the copy begin anew.
    with closing(sqlite3.connect(target, isolation_level=None)) as db, hold(source):
        source.backup(db, pages=PAGES if source.in_transaction else -1, progress=tell, sleep=0)


def faults_of(db: sqlite3.Connection, *, quick: bool = False) -> str:
    """What is damaged, "" if it is whole. Raises sqlite3.DatabaseError if it is no database at all."""
    (found,) = db.execute("PRAGMA quick_check(1)" if quick else "PRAGMA integrity_check(1)").fetchone()
    return "" if found == "ok" else str(found)
