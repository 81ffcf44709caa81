"""Where graphs that bring no checkpointer of their own keep their state: one SQLite file in the data folder.

Knows LangGraph's savers, so it is loaded only once there is a graph. All sources of a server share the file.
"""

import sqlite3
from pathlib import Path
from typing import Any

import aiosqlite
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from limelight.errors import SetupError, TryLater

FILE = "langgraph.db"
LOCK_SECONDS = 30
"""How long a statement waits for another program that uses the file."""
PASSING = {
    sqlite3.SQLITE_BUSY: ("another program has locked the graph's database", "end the program that uses it"),
    sqlite3.SQLITE_LOCKED: ("another program has locked the graph's database", "end the program that uses it"),
    sqlite3.SQLITE_FULL: ("the disk of the graph's database is full", "make room on that disk"),
    sqlite3.SQLITE_IOERR: ("the disk of the graph's database fails", "see that its disk works and has room"),
}
"""What may be over in a while, by SQLite's number: in words for anybody, and what to do about it."""


async def open_saver(data: Path) -> AsyncSqliteSaver:
    """A saver on the data folder's file. Several may be open at once; each has a connection of its own.

    Raises TryLater or SetupError, which name the file and the fix.
    """
    file = data / FILE
    connection = aiosqlite.connect(file, timeout=LOCK_SECONDS)
    try:
        await connection
        await connection.execute("PRAGMA journal_mode=WAL")
        await connection.execute("PRAGMA synchronous=NORMAL")
        saver = AsyncSqliteSaver(connection)
        await saver.setup()
    except BaseException as error:
        await connection.close()  # or its thread stays
        if isinstance(error, sqlite3.Error):
            raise _meaning_of(error, file) from error
        raise
    return saver


def _meaning_of(error: sqlite3.Error, file: Path) -> SetupError:
    words, fix = PASSING.get(getattr(error, "sqlite_errorcode", 0) & 0xFF, ("", ""))
    if words:
        return TryLater(f"{file} cannot be opened ({error}): {fix}", words=words)
    return SetupError(f"{file} cannot be opened ({error}): see that it is a database and that this user may write it")


async def close_saver(saver: Any) -> None:
    await saver.conn.close()
