"""Makes consistent copies of SQLite databases, even while another process writes to them.

`copy` works for any database; `backups/` uses it for all databases of a data folder. `copy_before_migration` and
`rescue_deleted` make the copies that a server writes beside its database. Limelight never deletes or overwrites them.
"""

import filecmp
import logging
import os
import sqlite3
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path

from limelight.errors import TryLater

log = logging.getLogger(__name__)
MAGIC = b"SQLite format 3\0"
STEP_PAGES = 2048
"""Number of pages that are copied between two progress reports: 8 MB with the usual page size."""
LOCK_SECONDS = 30
"""How long a copy waits for another program that has locked the file."""
Progress = Callable[[int, int], None]
"""Called with the number of copied pages and the number of all pages."""


def is_database(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def wal_of(path: Path) -> Path:
    """Return the path of a database's write-ahead log."""
    return path.with_name(path.name + "-wal")


def connect(path: Path, option: str, timeout: float) -> sqlite3.Connection:
    """Return a connection to a database that any thread may use. `option` says how to open it, such as `mode=ro`."""
    address = f"{path.absolute().as_uri()}?{option}"
    return sqlite3.connect(address, uri=True, timeout=timeout, isolation_level=None, check_same_thread=False)


def connect_read_only(path: Path) -> sqlite3.Connection:
    """Return a read-only connection to a database, which a server may be using. Raises sqlite3.Error."""
    try:
        return _connect_and_read(path, "mode=ro")
    except sqlite3.OperationalError:
        if wal_of(path).exists() or os.access(path.parent, os.W_OK):
            raise
        # SQLite cannot create its auxiliary files in this folder, so it reads the database only if declared immutable.
        return _connect_and_read(path, "immutable=1")


def _connect_and_read(path: Path, option: str) -> sqlite3.Connection:
    db = connect(path, option, LOCK_SECONDS)
    try:
        db.execute("PRAGMA schema_version").fetchone()
    except BaseException:
        db.close()
        raise
    return db


@contextmanager
def read_transaction(db: sqlite3.Connection) -> Generator[None]:
    """Let all reads of a `with` block see the same version of a database, even if others write to it.

    Has no effect if the database is not in WAL mode, because writers would have to wait for the block.
    """
    (mode,) = db.execute("PRAGMA journal_mode").fetchone()
    if mode != "wal" or db.in_transaction:
        yield
        return
    db.execute("BEGIN")
    try:
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        yield
    finally:
        if db.in_transaction:  # a disk error has ended the transaction
            db.execute("ROLLBACK")


def copy(source: sqlite3.Connection, target: Path, progress: Progress | None = None) -> None:
    """Copy the current version of a database into a new file that only its owner can read. Raises sqlite3.Error.

    Writers of a database in WAL mode continue, and their changes are not in the copy. Other databases are copied in one
    step, and their writers wait for it.
    """
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))

    def report(_: int, remaining: int, total: int) -> None:
        if progress is not None:
            progress(total - remaining, total)

    # Without the transaction, SQLite would restart the copy at each write of another process.
    with closing(sqlite3.connect(target, isolation_level=None)) as db, read_transaction(source):
        source.backup(db, pages=STEP_PAGES if source.in_transaction else -1, progress=report, sleep=0)


def integrity_error(db: sqlite3.Connection, *, quick: bool = False) -> str:
    """Check a database for damage. Return the first error that SQLite finds, or "". Raises sqlite3.DatabaseError."""
    (found,) = db.execute("PRAGMA quick_check(1)" if quick else "PRAGMA integrity_check(1)").fetchone()
    return "" if found == "ok" else str(found)


# Copies beside the database of a server


def copy_before_migration(db: sqlite3.Connection, path: Path, version: int) -> None:
    """Copy a database, before its schema is migrated, to a file beside it. Raises TryLater if this fails."""
    draft = path.with_name(f"{path.name}.v{version}.part")
    draft.unlink(missing_ok=True)  # a crash may have left it
    try:
        copy(db, draft)
    except (sqlite3.Error, OSError) as error:
        draft.unlink(missing_ok=True)
        raise TryLater(
            f"{path} has schema version {version} and must be migrated, but the copy that is made before that cannot"
            f" be written ({error}): make room for {path.stat().st_size // 1024**2 + 1} MB on that disk and start"
            " again; nothing has changed"
        ) from error
    # An interrupted start may have made an equal copy already; only one is needed.
    names = _names(path, f"v{version}", ".bak")
    kept = next(name for name in names if not name.exists() or filecmp.cmp(draft, name, shallow=False))
    draft.replace(kept)
    log.warning("%s is migrated from schema version %d; a copy of the old version is kept as %s", path, version, kept)


def rescue_deleted(db: sqlite3.Connection, path: Path) -> None:
    """Save the content of a database that was deleted while it was open, as a new file. Logs the outcome."""
    name = next(name for name in _names(path, "rescued", "") if not name.exists())
    draft = name.with_name(f"{name.name}.part")
    try:
        name.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft.unlink(missing_ok=True)
        copy(db, draft)
        draft.rename(name)
    except (sqlite3.Error, OSError) as error:
        log.error("%s was deleted, and its content cannot be written to %s: %s", path, name, error)
    else:
        log.error("%s was deleted while it was open: its content is in %s. To use it, rename it", path, name)


def _names(path: Path, label: str, suffix: str) -> Iterator[Path]:
    """Yield possible paths for a copy beside a database: first without a number, then with the numbers 2, 3, …"""
    yield path.with_name(f"{path.name}.{label}{suffix}")
    for number in count(2):
        yield path.with_name(f"{path.name}.{label}-{number}{suffix}")
