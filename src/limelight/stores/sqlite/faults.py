"""What can be wrong with a database that was fine when it was opened: in words for anybody, and what to do about it."""

import errno
import os
import sqlite3
from pathlib import Path
from typing import NamedTuple


class Trouble(NamedTuple):
    """`words` name no file, so that strangers may hear them too; `fix` is for whoever runs the server."""

    words: str
    fix: str


FULL = Trouble("the disk is full", "make room on it")
LOCKED = Trouble("another program has locked the database", "end that program, or wait until it is done")
READ_ONLY = Trouble("the database can only be read", "make the file and its file system writable again")
FAILING = Trouble("the disk does not take what is written", "look at the disk; the system's log may say more")
DAMAGED = Trouble("the database is damaged", "end the server and restore a backup: limelight restore")
SILENT = Trouble(
    "the database does not answer", "see whether its disk answers, and whether another program has locked it"
)
GONE = Trouble("the database file is gone", "move it back to where it was")
DELETED = Trouble(
    "the database file was deleted",
    "end the server with SIGTERM or Ctrl-C: it then writes what it still has to a new file",
)
REPLACED = Trouble(
    "another file is in the place of the database",
    "move the former file back; or start the server anew, if the other one is to be used",
)
LOG_GONE = Trouble(
    "a part of the database is gone, its file -wal",
    "end the server with SIGTERM or Ctrl-C, which writes what is in it into the database, and start it again",
)
TAKEN = Trouble("another server has taken the data folder", "end one of the two")

_MEANINGS = {
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


NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
NO_RIGHT = (errno.EROFS, errno.EACCES, errno.EPERM)


def trouble_of_file(error: OSError) -> Trouble:
    """What it means that a file beside the database cannot be made or written."""
    if error.errno in NO_ROOM:
        return FULL
    return READ_ONLY if error.errno in NO_RIGHT else FAILING


def trouble_of(error: Exception, path: Path) -> Trouble | None:
    """What an error says about the database; None if it says something about the statement only."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF  # the rest of it tells finer kinds
    trouble = _MEANINGS.get(code)
    # A file system that has become read-only makes writes fail that were fine before; SQLite calls both the same.
    return READ_ONLY if trouble is FAILING and not os.access(path, os.W_OK) else trouble
