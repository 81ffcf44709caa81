"""The database file of a server: locks and opens it, connects to it, and explains why it cannot be opened."""

import fcntl
import os
import sqlite3
import threading
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from limelight.errors import LimelightError, SetupError, StoreCorrupt, StoreLocked, TryLater
from limelight.private_files import FOLDER_MODE, create_private_database, make_private
from limelight.stores.sqlite.faults import (
    NO_SPACE,
    TAKEN,
    Fault,
    FileIdentity,
    fault_of_file_error,
    primary_code,
    size_of,
    status_of,
)
from limelight.stores.sqlite.schema import check_tables, migrate, touch
from limelight.stores.sqlite.snapshots import connect, wal_of
from limelight.stores.sqlite.wal_checkpoints import MAX_PAGES

LOCK_SECONDS = 5
"""How long a statement waits for another program that has locked the file, such as a backup."""
ACQUIRE_TRIES = 10
ACQUIRE_PAUSE_SECONDS = 0.05
"""Pause between two attempts to acquire the lock. A process that only tests the lock holds it for a moment."""


class FileLock:
    """An exclusive lock on a file beside the database, so that only one server uses the database.

    The system releases the lock when the process ends, also after a crash. If the lock file is deleted, the server that
    held the lock acquires it again on a new file, or finds that another server has it.

    The lock file contains the identity (device and inode) of the database that its holder has open. A tool compares it
    with the file that it wants to open: if the file was replaced, SQLite would mix it with the holder's `-wal` file.
    """

    def __init__(self, database: Path) -> None:
        self._database = database
        self._path = database.with_name(database.name + ".lock")
        self._file: BinaryIO | None = None
        self._has_inodes = True
        """Whether the file system has stable inode numbers, which most file systems have."""
        self._content = ""
        self._is_written = True

    def acquire(self) -> None:
        """Acquire the lock. Raises StoreLocked if another server has it, OSError if the lock file cannot be created.

        Until `clear`, the lock file still contains the identity of the database that the previous holder had open.
        """
        while self._file is None:
            # Unbuffered, so that closing the file does not repeat a write that a full disk has rejected.
            file: BinaryIO = self._path.open("ab", buffering=0)
            try:
                _lock(file)
            except BlockingIOError:
                file.close()
                raise StoreLocked(
                    f"another server uses {self._database}: end it, or choose another folder with --data"
                ) from None
            if os.fstat(file.fileno()).st_nlink:
                make_private(self._path)
                self._file = file
            else:  # the file was deleted before it was locked, so other servers would not see this lock
                file.close()
        self._has_inodes = self._is_in_place(self._file)

    def clear(self) -> None:
        """Remove the database's identity from the lock file, before another database is opened. Raises OSError."""
        self._write()

    def identify(self, database: os.stat_result) -> None:
        """Write the identity of the open database into the lock file. Raises OSError."""
        self._content = _identity(database)
        self._write()

    def _write(self) -> None:
        if self._file is not None:
            self._is_written = False
            self._file.truncate(0)
            self._file.write(self._content.encode())
            self._is_written = True

    def matches(self, database: os.stat_result) -> bool:
        """Whether this is the database whose identity the lock file contains. True for an empty lock file."""
        content = self._path.read_text()
        return not content or content == _identity(database)

    def has_identity(self) -> bool:
        """Whether the lock file contains the identity of any database, because a server has opened one here before."""
        try:
            return bool(self._path.read_text())
        except FileNotFoundError:
            return False

    def keep(self) -> bool:
        """Acquire the lock again if the lock file was deleted. Return False if another server has the lock now.

        Raises OSError if the lock file cannot be created; another server may or may not have the lock then.
        """
        if self._file is None or (self._has_inodes and not self._is_in_place(self._file)):
            previous, self._file = self._file, None
            try:
                self.acquire()
            except (StoreLocked, OSError) as error:
                self._file = previous  # this file locks nothing any more, but `release` has to close it
                if isinstance(error, OSError):
                    raise
                return False
            if previous is not None:
                previous.close()
            self._is_written = False
        if not self._is_written:
            with suppress(OSError):  # a tool that finds the file empty relies on the lock alone
                self._write()
        return True

    def _is_in_place(self, file: BinaryIO) -> bool:
        status = status_of(self._path)
        return status is not None and os.path.samestat(os.fstat(file.fileno()), status)

    def is_held(self) -> bool:
        """Whether a server holds the lock. Tests it with a shared lock, which is released at once."""
        try:
            with self._path.open() as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def release(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def _lock(file: BinaryIO) -> None:
    for tries in range(ACQUIRE_TRIES):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if tries == ACQUIRE_TRIES - 1:
                raise
            threading.Event().wait(ACQUIRE_PAUSE_SECONDS)
        else:
            return


def _identity(status: os.stat_result) -> str:
    return f"{status.st_dev} {status.st_ino}"


TRACES = ("workspaces", "langgraph.db", "langgraph-store.db", "agno.db", "retention.json", "last-backup.json")
"""Names of files and folders that a server or a backup leaves beside a database that it has opened."""


def evidence_of_lost_content(path: Path) -> str:
    """Return why a database file of zero bytes has lost its content, with the fix; "" if it is new or has content.

    SQLite would treat such a file as a new database. A power loss or a copy to a full disk may leave one.
    """
    status = status_of(path)
    if status is None or status.st_size:
        return ""
    wal = wal_of(path)
    has_wal = size_of(wal) > 0
    if has_wal:
        trace = wal.name
    elif FileLock(path).has_identity():
        trace = f"{path.name}.lock"
    else:
        trace = next((name for name in TRACES if path.with_name(name).exists()), "")
    if not trace:
        return ""
    files = f"{path.name} and {wal.name}" if has_wal else path.name
    return (
        f"is empty, but {trace} beside it shows that it was in use: restore a backup (limelight restore BACKUP), or"
        f" remove {files} to start with an empty database"
    )


class DatabaseFile:
    """The database file of a server. While it is open, no other server can open it."""

    def __init__(self, path: Path, synchronous: str) -> None:
        self.path = path
        self._synchronous = synchronous
        self._lock = FileLock(path)
        self._identity: FileIdentity | None = None

    def open(self) -> sqlite3.Connection:
        """Acquire the lock, migrate the schema and test that the file is writable. Return the writer's connection."""
        try:
            self.path.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
            self._lock.acquire()
            self._check_wal_has_database()
            if evidence := evidence_of_lost_content(self.path):
                raise StoreCorrupt(f"{self.path} {evidence}")
            self._lock.clear()
            create_private_database(self.path)
            return self._open()
        except BaseException as error:
            self.release()
            if isinstance(error, sqlite3.Error):
                raise self.open_error(error) from error
            if isinstance(error, OSError):
                raise self._folder_error(error) from error
            raise

    def _open(self) -> sqlite3.Connection:
        db = self._connect("rwc")
        try:
            migrate(db, self.path)
            check_tables(db)
            touch(db)
            self._identity = FileIdentity(self.path)
            self._lock.identify(self._identity.status)
        except BaseException:
            db.close()
            raise
        return db

    def _check_wal_has_database(self) -> None:
        """Raise SetupError if the database is missing but its write-ahead log exists.

        SQLite would create a new database and delete the log, with the data that only the log contains.
        """
        wal = wal_of(self.path)
        if not self.path.exists() and size_of(wal):
            raise SetupError(
                f"{self.path} is gone, but {wal.name}, which belongs to it, is there: move the database back, or both "
                "away to start with an empty database"
            )

    def connect(self) -> sqlite3.Connection:
        """Return another connection to the open database. Raises sqlite3.Error."""
        return self._connect("rw")

    def _connect(self, mode: str) -> sqlite3.Connection:
        db = connect(self.path, f"mode={mode}", LOCK_SECONDS)
        try:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute(f"PRAGMA synchronous = {self._synchronous}")
            db.execute(f"PRAGMA wal_autocheckpoint = {MAX_PAGES}")
        except BaseException:
            db.close()
            raise
        return db

    def fault(self) -> Fault | None:
        """Return a Fault if the open files were moved or deleted, or if another server has the lock; else None."""
        fault = self._identity.fault() if self._identity is not None else None
        if fault is not None:
            return fault
        try:
            return None if self._lock.keep() else TAKEN
        except OSError as error:
            return fault_of_file_error(error)

    @property
    def is_deleted(self) -> bool:
        """Whether the open file was deleted, so that its data is lost when this process ends."""
        return self._identity is not None and self._identity.is_deleted()

    def open_error(self, error: Exception) -> LimelightError:
        """Return the error for a database that cannot be opened, with the reason and the fix."""
        match primary_code(error, default=sqlite3.SQLITE_CORRUPT):
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                return StoreLocked(f"{self.path} cannot be opened ({error}): end the program that uses it")
            case sqlite3.SQLITE_FULL:
                return TryLater(f"{self.path} cannot be written ({error}): make room on that disk")
            case sqlite3.SQLITE_IOERR:  # also if the disk has no room for SQLite's own files
                return TryLater(f"{self.path} cannot be written ({error}): check that its disk works and has room")
            case sqlite3.SQLITE_READONLY:  # also if the system has remounted the file system after a fault
                return TryLater(
                    f"{self.path} can only be read ({error}): make the file and its file system writable again, or "
                    "choose another folder with --data"
                )
            case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
                return SetupError(
                    f"{self.path} cannot be written ({error}): check that its disk has room and that this user may "
                    "write there, or choose another folder with --data"
                )
            case _:
                return StoreCorrupt(
                    f"{self.path} is not a readable database ({error}): restore a copy, or move it away to start "
                    "with an empty database"
                )

    def _folder_error(self, error: OSError) -> SetupError:
        problem = f"the data folder {self.path.parent} cannot be written ({error.strerror})"
        if error.errno in NO_SPACE:
            return TryLater(f"{problem}: make room on that disk")
        return SetupError(f"{problem}: choose another with --data")

    def release(self) -> None:
        """Release the lock, so that another server can use the database. Call this after all connections are closed."""
        if self._identity is not None:
            self._identity.close()
            self._identity = None
        self._lock.release()
