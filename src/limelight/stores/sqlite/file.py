"""The file on disk: one server at a time, connections to it, and what its errors mean to whoever starts a server."""

import sqlite3
from pathlib import Path

from limelight.errors import LimelightError, SetupError, StoreCorrupt, StoreLocked, TryLater
from limelight.stores.sqlite.faults import NO_ROOM, TAKEN, Trouble, trouble_of_file
from limelight.stores.sqlite.file_identity import Whereabouts
from limelight.stores.sqlite.lock import FolderLock
from limelight.stores.sqlite.schema import migrate, touch
from limelight.stores.sqlite.wal_checkpoints import MAX_PAGES

PRIVATE = 0o700
"""A folder that is made for it is for nobody else's eyes: all conversations are in there."""
LOCK_SECONDS = 5
"""How long a statement waits for another program that uses the file, a backup say."""


class DatabaseFile:
    """A database that this process has for itself while it is open. A lock file beside it says so to a second one."""

    def __init__(self, path: Path, synchronous: str) -> None:
        self.path = path
        self._synchronous = synchronous
        self._lock = FolderLock(path)
        self._whereabouts: Whereabouts | None = None

    def open(self) -> sqlite3.Connection:
        """Take the lock, bring the tables up to date, see that they can be written. Returns the connection for it."""
        try:
            self.path.parent.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
            self._lock.take()
        except OSError as error:
            self._lock.release()
            raise self._meaning_for_folder(error) from error
        except BaseException:
            self._lock.release()
            raise
        try:
            self._check_nothing_is_missing()
            db = self._connect("rwc")
            try:
                migrate(db, self.path)
                touch(db)
                self._whereabouts = Whereabouts(self.path)
                self._lock.note(self._whereabouts.opened)
            except BaseException:
                db.close()
                raise
            return db
        except sqlite3.Error as error:
            self.release()
            raise self.meaning_of(error) from error
        except OSError as error:
            self.release()
            raise self._meaning_for_folder(error) from error
        except BaseException:
            self.release()
            raise

    def _check_nothing_is_missing(self) -> None:
        """SQLite would drop the log of a database that is not there, and with it what only the log has."""
        log = self.path.with_name(self.path.name + "-wal")
        if not self.path.exists() and log.exists() and log.stat().st_size:
            raise SetupError(
                f"{self.path} is gone, but {log.name}, which belongs to it, is there: move the database back, or both "
                "away to begin anew"
            )

    def connect(self) -> sqlite3.Connection:
        """One more connection to the file that is open. Raises sqlite3.Error."""
        return self._connect("rw")

    def _connect(self, mode: str) -> sqlite3.Connection:
        address = f"{self.path.absolute().as_uri()}?mode={mode}"
        db = sqlite3.connect(address, uri=True, timeout=LOCK_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute(f"PRAGMA synchronous = {self._synchronous}")
            db.execute(f"PRAGMA wal_autocheckpoint = {MAX_PAGES}")
        except BaseException:
            db.close()
            raise
        return db

    def trouble(self) -> Trouble | None:
        """What keeps us from writing, as far as the files' names and places show it."""
        trouble = self._whereabouts.trouble() if self._whereabouts is not None else None
        if trouble is not None:
            return trouble
        try:
            return None if self._lock.still_held() else TAKEN
        except OSError as error:
            return trouble_of_file(error)

    @property
    def is_deleted(self) -> bool:
        """Whether all that was written ends with this process."""
        return self._whereabouts is not None and self._whereabouts.is_deleted()

    def meaning_of(self, error: Exception) -> LimelightError:
        """Why it cannot be opened, with the fix."""
        match getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF:  # the rest of it tells finer kinds
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                return StoreLocked(f"{self.path} cannot be opened ({error}): end the program that uses it")
            case sqlite3.SQLITE_FULL:
                return TryLater(f"{self.path} cannot be written ({error}): make room on that disk")
            case sqlite3.SQLITE_IOERR:  # also of a disk that has no room for SQLite's own files
                return TryLater(f"{self.path} cannot be written ({error}): see that its disk works and has room")
            case sqlite3.SQLITE_READONLY:  # also of a file system that was mounted anew after a fault
                return TryLater(
                    f"{self.path} can only be read ({error}): make the file and its file system writable again, or "
                    "choose another folder with --data"
                )
            case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
                return SetupError(
                    f"{self.path} cannot be written ({error}): see that its disk has room and that this user may write "
                    "there, or choose another folder with --data"
                )
            case _:
                return StoreCorrupt(
                    f"{self.path} is not a readable database ({error}): restore a copy, or move it away to begin anew"
                )

    def _meaning_for_folder(self, error: OSError) -> SetupError:
        told = f"the data folder {self.path.parent} cannot be written ({error.strerror})"
        if error.errno in NO_ROOM:
            return TryLater(f"{told}: make room on that disk")
        return SetupError(f"{told}: choose another with --data")

    def release(self) -> None:
        """Let another server have it. To be called when all connections are closed."""
        if self._whereabouts is not None:
            self._whereabouts.close()
            self._whereabouts = None
        self._lock.release()
