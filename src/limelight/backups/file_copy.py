"""Copies what a data folder has into a draft. What fails at reading is told, what fails at writing is raised."""

import errno
import os
import sqlite3
import stat
from collections.abc import Callable, Generator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

from limelight.backups.content import DATABASE
from limelight.errors import SetupError
from limelight.file_trees import Gone, Unreadable, looking, make_folders, open_below
from limelight.stores.sqlite.snapshots import connect_read_only, copy, integrity_error, read_transaction

PIECE = 1024 * 1024
LOGS = ("-wal", "-journal")
"""What belongs to a database, for a copy that SQLite does not make."""
DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
Tell = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done, and how much there is."""


def copy_file(root: Path, name: str, target: Path) -> None:
    """As much of a file as it has now, even if it grows meanwhile. Raises Gone, Unreadable, OSError for the target."""
    with looking():
        source = open_below(root, name)
    try:
        status = os.fstat(source)
        if not stat.S_ISREG(status.st_mode):
            raise Gone
        with os.fdopen(_new_file(target, status.st_mode & 0o100 | 0o600), "wb") as file:
            left = status.st_size
            while left > 0 and (piece := _read(source, min(left, PIECE))):
                file.write(piece)
                left -= len(piece)
    except Unreadable:
        target.unlink(missing_ok=True)
        raise
    finally:
        os.close(source)


def _new_file(target: Path, mode: int) -> int:
    try:
        make_folders(target.parent)
        return os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise Unreadable("its path would be too long in the backup") from error
        raise


def _read(source: int, size: int) -> bytes:
    with looking():
        return os.read(source, size)


def copy_databases(databases: dict[str, Path], folder: Path, tell: Tell) -> dict[str, str]:
    """Copy them and check the copies. Returns those that are damaged or cannot be read as databases, and why: the rest
    of the backup is worth having without them. For the store's own, it raises SetupError or sqlite3.Error."""
    doubtful, sources = dict[str, str](), dict[str, sqlite3.Connection]()
    with ExitStack() as stack:
        # They are held one right after the other, the store's first, and only then copied. That is not one moment, but
        # their moments are close together, however long the copying takes. One that is not in WAL mode is not held.
        for name, path in databases.items():
            with _doubting(name, doubtful):
                sources[name] = stack.enter_context(closing(connect_read_only(path)))
        for name, source in sources.items():
            with _doubting(name, doubtful):
                stack.enter_context(read_transaction(source))
        for name, source in sources.items():
            if name not in doubtful:
                with _doubting(name, doubtful):
                    copy(source, folder / name, lambda done, all_, name=name: tell(name, done, all_))
    for name in databases:
        if name in doubtful:
            continue
        tell(f"checking {name}", 0, 1)
        if faults := faults_in(folder / name):
            _doubt(name, faults, doubtful)
    return doubtful


@contextmanager
def _doubting(name: str, doubtful: dict[str, str]) -> Generator[None]:
    try:
        yield
    except sqlite3.Error as error:
        if name == DATABASE and getattr(error, "sqlite_errorcode", 0) & 0xFF not in DAMAGE:
            raise
        _doubt(name, str(error), doubtful)


def _doubt(name: str, why: str, doubtful: dict[str, str]) -> None:
    if name == DATABASE:
        raise SetupError(f"{name} is damaged ({why}), so there is no backup of it: go back to an earlier one")
    doubtful[name] = why


def copy_as_it_is(path: Path, target: Path) -> None:
    """A database that SQLite cannot copy, with what belongs to it. Raises Gone, Unreadable, OSError."""
    _clear(target)  # of a copy that was begun
    path = path.resolve()
    try:
        copy_file(path.parent, path.name, target)
        for ending in LOGS:
            with suppress(Gone):
                copy_file(path.parent, path.name + ending, target.with_name(target.name + ending))
    except Unreadable:
        _clear(target)  # without its log it would be another database
        raise


def _clear(target: Path) -> None:
    for ending in ("", *LOGS, "-shm"):
        target.with_name(target.name + ending).unlink(missing_ok=True)


def faults_in(database: Path) -> str:
    """What is wrong with a database, "" if it is whole."""
    try:
        with closing(sqlite3.connect(database)) as db:
            return integrity_error(db)
    except sqlite3.DatabaseError as error:
        return str(error)
