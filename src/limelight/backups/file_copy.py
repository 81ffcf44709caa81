"""Copies the files and databases of a data folder into the folder in which a backup is prepared.

An error at reading concerns one file only: it is returned, or raised as FileRemoved or FileUnreadable. An error at
writing is raised as OSError or sqlite3.Error, and the backup fails.
"""

import errno
import os
import sqlite3
import stat
from collections.abc import Callable, Generator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

from limelight.backups.content import DATABASE
from limelight.errors import SetupError
from limelight.file_trees import FileRemoved, FileUnreadable, make_folders, open_inside, translate_errors
from limelight.stores.sqlite.snapshots import connect_read_only, copy, integrity_error, read_transaction

READ_BYTES = 1024 * 1024
LOGS = ("-wal", "-journal")
"""Suffixes of the log files beside a database, which are copied with it if it is copied byte by byte."""
DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
Progress = Callable[[str, int, int], None]
"""A callback that gets the name of a step, the amount of its work that is done, and the total amount."""


def copy_file(root: Path, name: str, target: Path) -> None:
    """Copy a file into a backup. Of a file that grows, only the bytes up to its size at the start are copied.

    Raises FileRemoved or FileUnreadable if the file cannot be read, and OSError if the copy cannot be written.
    """
    with translate_errors():
        source = open_inside(root, name)
    try:
        status = os.fstat(source)
        if not stat.S_ISREG(status.st_mode):
            raise FileRemoved
        with os.fdopen(_new_file(target, status.st_mode & 0o100 | 0o600), "wb") as file:
            left = status.st_size
            while left > 0 and (piece := _read(source, min(left, READ_BYTES))):
                file.write(piece)
                left -= len(piece)
    except FileUnreadable:
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
            raise FileUnreadable("its path would be too long in the backup") from error
        raise


def _read(source: int, size: int) -> bytes:
    with translate_errors():
        return os.read(source, size)


def copy_databases(databases: dict[str, Path], folder: Path, progress: Progress) -> dict[str, str]:
    """Copy databases into a backup and check the copies. Return the damaged or unreadable databases, with the reasons.

    Raises SetupError or sqlite3.Error if the store's database is damaged or unreadable: a backup without it is useless.
    """
    doubtful, sources = dict[str, str](), dict[str, sqlite3.Connection]()
    with ExitStack() as stack:
        # All read transactions begin before the first copy, the store's first. So the snapshots are close together in
        # time, however long the copies take. A database that is not in WAL mode gets no transaction.
        for name, path in databases.items():
            with _collect_damage(name, doubtful):
                sources[name] = stack.enter_context(closing(connect_read_only(path)))
        for name, source in sources.items():
            with _collect_damage(name, doubtful):
                stack.enter_context(read_transaction(source))
        for name, source in sources.items():
            if name not in doubtful:
                with _collect_damage(name, doubtful):
                    copy(source, folder / name, lambda done, total, name=name: progress(name, done, total))
    for name in databases:
        if name in doubtful:
            continue
        progress(f"checking {name}", 0, 1)
        if damage := damage_in(folder / name):
            _add_damage(name, damage, doubtful)
    return doubtful


@contextmanager
def _collect_damage(name: str, doubtful: dict[str, str]) -> Generator[None]:
    try:
        yield
    except sqlite3.Error as error:
        if name == DATABASE and getattr(error, "sqlite_errorcode", 0) & 0xFF not in DAMAGE:
            raise
        _add_damage(name, str(error), doubtful)


def _add_damage(name: str, reason: str, doubtful: dict[str, str]) -> None:
    if name == DATABASE:
        raise SetupError(f"{name} is damaged ({reason}), so there is no backup of it: restore an earlier one")
    doubtful[name] = reason


def copy_database_bytes(path: Path, target: Path) -> None:
    """Copy the files of a database byte by byte, after SQLite could not copy it.

    Raises FileRemoved, FileUnreadable or OSError.
    """
    _remove(target)  # an incomplete copy by SQLite may be there
    path = path.resolve()
    try:
        copy_file(path.parent, path.name, target)
        for ending in LOGS:
            with suppress(FileRemoved):
                copy_file(path.parent, path.name + ending, target.with_name(target.name + ending))
    except FileUnreadable:
        _remove(target)  # without the log, the copied database would lack committed data
        raise


def _remove(target: Path) -> None:
    for ending in ("", *LOGS, "-shm"):
        target.with_name(target.name + ending).unlink(missing_ok=True)


def damage_in(database: Path) -> str:
    """Check a database, and return a description of its first damage; "" if it is intact."""
    try:
        with closing(sqlite3.connect(database)) as db:
            return integrity_error(db)
    except sqlite3.DatabaseError as error:
        return str(error)
