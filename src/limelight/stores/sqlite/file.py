"""The file on disk: one server at a time, connections to it, and what its errors mean to whoever starts a server."""

import fcntl
import sqlite3
from pathlib import Path
from typing import IO

from limelight.errors import LimelightError, SetupError, StoreCorrupt, StoreLocked
from limelight.stores.sqlite.checkpoints import MAX_PAGES
from limelight.stores.sqlite.schema import migrate, touch

PRIVATE = 0o700
"""A folder that is made for it is for nobody else's eyes: all conversations are in there."""
LOCK_SECONDS = 5
"""How long a statement waits for another program that uses the file, a backup say."""


class DatabaseFile:
    """A database that this process has for itself while it is open. A lock file beside it says so to a second one."""

    def __init__(self, path: Path, synchronous: str) -> None:
        self._path = path
        self._synchronous = synchronous
        self._lock: IO[str] | None = None

    def open(self) -> sqlite3.Connection:
        """Take the lock, bring the tables up to date, see that they can be written. Returns the connection for it."""
        try:
            self._path.parent.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
            self._take_lock()
        except OSError as error:
            self.release()
            raise SetupError(
                f"the data folder {self._path.parent} cannot be written ({error.strerror}): choose another with --data"
            ) from error
        try:
            db = self.connect()
            try:
                migrate(db, self._path)
                touch(db)
            except BaseException:
                db.close()
                raise
            return db
        except sqlite3.Error as error:
            self.release()
            raise self.meaning_of(error) from error
        except BaseException:
            self.release()
            raise

    def connect(self) -> sqlite3.Connection:
        """One more connection. Raises sqlite3.Error."""
        db = sqlite3.connect(self._path, timeout=LOCK_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute(f"PRAGMA synchronous = {self._synchronous}")
            db.execute(f"PRAGMA wal_autocheckpoint = {MAX_PAGES}")
        except BaseException:
            db.close()
            raise
        return db

    def meaning_of(self, error: Exception) -> LimelightError:
        """Why it cannot be opened, with the fix."""
        match getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF:  # the rest of it tells finer kinds
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                return StoreLocked(f"{self._path} cannot be opened ({error}): end the program that uses it")
            case (
                sqlite3.SQLITE_CANTOPEN
                | sqlite3.SQLITE_READONLY
                | sqlite3.SQLITE_PERM
                | sqlite3.SQLITE_FULL
                | sqlite3.SQLITE_IOERR
            ):
                return SetupError(f"{self._path} cannot be written ({error}): choose another folder with --data")
            case _:
                return StoreCorrupt(
                    f"{self._path} is not a readable database ({error}): restore a copy, or move it away to begin anew"
                )

    def _take_lock(self) -> None:
        self._lock = self._path.with_name(self._path.name + ".lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.release()
            raise StoreLocked(
                f"another server uses {self._path}: end it, or choose another folder with --data"
            ) from None

    def release(self) -> None:
        """Let another server have it."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None
