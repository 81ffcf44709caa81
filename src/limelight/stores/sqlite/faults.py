"""Faults of an open database: what prevents reads or writes, such as a full disk or a deleted file.

The writer thread checks for faults before each commit and reports the outcome of the commit; readers report their
errors. A fault is logged when it begins and when it ends, not in between.
"""

import errno
import logging
import os
import sqlite3
from collections.abc import Callable, Collection
from pathlib import Path
from typing import NamedTuple

from limelight.errors import StoreUnavailable
from limelight.stores.sqlite.snapshots import wal_of

log = logging.getLogger(__name__)


class Fault(NamedTuple):
    """A reason why the database cannot be used. `words` describe it without a path, so that clients may see them."""

    words: str
    fix: str
    """What the operator of the server can do."""


FULL = Fault("the disk is full", "make room on it")
LOCKED = Fault("another program has locked the database", "end that program, or wait until it is done")
READ_ONLY = Fault("the database can only be read", "make the file and its file system writable again")
FAILING = Fault("the disk does not take what is written", "look at the disk; the system's log may say more")
DAMAGED = Fault("the database is damaged", "end the server and restore a backup: limelight restore BACKUP")
SILENT = Fault(
    "the database does not answer", "see whether its disk answers, and whether another program has locked it"
)
GONE = Fault("the database file is gone", "move it back to where it was")
DELETED = Fault(
    "the database file was deleted",
    "end the server with SIGTERM or Ctrl-C: it then writes what it still has to a new file",
)
REPLACED = Fault(
    "another file is in the place of the database",
    "move the former file back; or restart the server to use the other one",
)
LOG_GONE = Fault(
    "a part of the database is gone, its file -wal",
    "end the server with SIGTERM or Ctrl-C, which writes what is in it into the database, and start it again",
)
TAKEN = Fault("another server has taken the data folder", "end one of the two")

_SQLITE_FAULTS = {
    sqlite3.SQLITE_FULL: FULL,
    sqlite3.SQLITE_BUSY: LOCKED,
    sqlite3.SQLITE_LOCKED: LOCKED,
    sqlite3.SQLITE_READONLY: READ_ONLY,
    sqlite3.SQLITE_PERM: READ_ONLY,
    sqlite3.SQLITE_CANTOPEN: FAILING,
    sqlite3.SQLITE_IOERR: FAILING,
    sqlite3.SQLITE_CORRUPT: DAMAGED,
    sqlite3.SQLITE_NOTADB: DAMAGED,
}
NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
NO_PERMISSION = (errno.EROFS, errno.EACCES, errno.EPERM)


def primary_code(error: Exception, default: int = sqlite3.SQLITE_ERROR) -> int:
    """Return the primary result code of an SQLite error, which is the low byte of its extended result code."""
    return getattr(error, "sqlite_errorcode", default) & 0xFF


def fault_of_error(error: Exception, path: Path) -> Fault | None:
    """Return the fault that an SQLite error reports; None if only the statement is wrong, not the database."""
    fault = _SQLITE_FAULTS.get(primary_code(error))
    # SQLite reports writes to a file system that has become read-only as I/O errors.
    return READ_ONLY if fault is FAILING and not os.access(path, os.W_OK) else fault


def is_damage(error: Exception) -> bool:
    """Whether an SQLite error says that the file is damaged."""
    return _SQLITE_FAULTS.get(primary_code(error)) is DAMAGED


def fault_of_file_error(error: OSError) -> Fault:
    """Return the fault for an OSError when a file beside the database could not be written."""
    if error.errno in NO_SPACE:
        return FULL
    return READ_ONLY if error.errno in NO_PERMISSION else FAILING


class FileIdentity:
    """Detects that the files of an open database were moved, deleted or replaced.

    The system lets a process write to a deleted file, and SQLite in WAL mode does not notice. The data would be lost
    with the process, or be written to a file that no restart opens. A check takes a few microseconds.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._wal = wal_of(path)
        # The descriptor stays open as long as there are connections: closing it would release SQLite's POSIX locks.
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._wal_status = status_of(self._wal)
        # On a file system without stable inode numbers, every file would seem to have been replaced.
        status = status_of(path)
        self._has_inodes = status is not None and os.path.samestat(status, self.status)

    @property
    def status(self) -> os.stat_result:
        """The `stat` result of the open database file, which may differ from the file now at its path."""
        return os.fstat(self._descriptor)

    def is_deleted(self) -> bool:
        """Whether the open file was deleted, so that its data is lost when this process ends."""
        return self.status.st_nlink == 0

    def fault(self) -> Fault | None:
        in_place = status_of(self._path)
        if in_place is None:
            return DELETED if self.is_deleted() else GONE
        if not self._has_inodes:
            return None
        if not os.path.samestat(in_place, self.status):
            return REPLACED
        wal = status_of(self._wal)
        if self._wal_status is not None and (wal is None or not os.path.samestat(wal, self._wal_status)):
            return LOG_GONE
        return None

    def close(self) -> None:
        """Close the file descriptor of the database. Call this after all connections are closed."""
        os.close(self._descriptor)


def status_of(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


def size_of(path: Path) -> int:
    """Return the size of a file; 0 if there is no such file."""
    status = status_of(path)
    return 0 if status is None else status.st_size


class Health:
    """The current fault of one database: when it begins, which errors it causes, and when it ends.

    `find_fault` detects faults without writing. A full disk may still accept small writes, so a fault ends only when
    every run whose write failed has repeated it successfully; until then no run begins. A damaged file may accept
    writes and lose them, so damage never ends.
    """

    def __init__(self, path: Path, find_fault: Callable[[], Fault | None]) -> None:
        self._path = path
        self._find_fault = find_fault
        self._fault: Fault | None = None
        self._reads_fail = False
        self._blocked: set[str] = set()
        """The runs whose write failed and that will retry it."""

    @property
    def is_failing(self) -> bool:
        return self._fault is not None or self._reads_fail

    def check(self, runs: Collection[str]) -> StoreUnavailable | None:
        """Check for faults before a commit. If there is one, return its error, and note that `runs` will retry."""
        fault = DAMAGED if self._fault is DAMAGED else self._find_fault()
        return None if fault is None else self._begin(fault, runs)

    def write_failed(self, error: Exception, runs: Collection[str]) -> StoreUnavailable:
        """Record that a commit failed and that `runs` will retry it. Return the error to raise."""
        fault = fault_of_error(error, self._path)
        if fault is None:
            return StoreUnavailable(f"the database cannot be written: {error}")
        return self._begin(fault, runs, str(error) if fault is DAMAGED else "")

    def write_succeeded(self, runs: Collection[str]) -> None:
        """Record that a commit succeeded, and that `runs` have nothing left to retry."""
        self._blocked.difference_update(runs)
        if self._fault not in (None, DAMAGED) and not self._blocked:
            self._fault = None
            log.warning("%s can be written again; all delayed writes have succeeded", self._path)

    def raise_if_blocked(self) -> None:
        """Raise StoreUnavailable if the file is damaged, or if there is a fault and runs still have to retry writes."""
        fault = self._fault
        if fault is not None and (self._blocked or fault is DAMAGED):
            raise _unavailable(fault)

    def read_failed(self, error: Exception) -> None:
        if is_damage(error):
            self.damage_found(str(error))
        elif not self._reads_fail:
            self._reads_fail = True
            log.error("%s cannot be read: %s. What to do: %s", self._path, error, FAILING.fix)

    def damage_found(self, damage: str) -> None:
        """Record that the database file is damaged. `damage` is SQLite's description for the log."""
        self._begin(DAMAGED, (), damage)

    def read_succeeded(self) -> None:
        if self._reads_fail:
            self._reads_fail = False
            log.warning("%s can be read again", self._path)

    def timeout_error(self) -> StoreUnavailable:
        """Return the error to raise to a caller whose write was not committed in time."""
        return _unavailable(self._fault or SILENT)

    def _begin(self, fault: Fault, runs: Collection[str], detail: str = "") -> StoreUnavailable:
        self._blocked.update(runs)
        if fault != self._fault and self._fault is not DAMAGED:
            self._fault = fault
            words = f"{fault.words} ({detail})" if detail else fault.words
            effect = "live runs wait, new ones are refused"
            log.error("%s cannot be written: %s; %s. What to do: %s", self._path, words, effect, fault.fix)
        return _unavailable(fault)


def _unavailable(fault: Fault) -> StoreUnavailable:
    detail = f"the database cannot be written: {fault.words}; try again when that is mended"
    words = f"{fault.words}; {fault.fix}" if fault is DAMAGED else fault.words  # only damage does not end by itself
    return StoreUnavailable(detail, words=words)
