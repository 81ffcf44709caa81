"""Opens the default checkpointer of graphs, and adds async methods to checkpointers that have only sync ones.

A graph without a checkpointer stores its state in a SQLite file in the data folder, which all graphs of a server share.
This module imports LangGraph, so it is imported only when there is a graph.
"""

import asyncio
import copy
import sqlite3
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from langgraph.checkpoint.base import BaseCheckpointSaver

from limelight.errors import SetupError, TryLater
from limelight.private_files import create_private_database

FILE = "langgraph.db"
LOCK_SECONDS = 30
"""How long an SQL statement waits while another program locks the file."""
TEMPORARY_ERRORS = {
    sqlite3.SQLITE_BUSY: ("another program has locked the graph's database", "end the program that uses it"),
    sqlite3.SQLITE_LOCKED: ("another program has locked the graph's database", "end the program that uses it"),
    sqlite3.SQLITE_FULL: ("the disk of the graph's database is full", "make room on that disk"),
    sqlite3.SQLITE_IOERR: ("the disk of the graph's database fails", "see that its disk works and has room"),
}
"""SQLite error codes that may be temporary, each with the reason and the remedy for the user."""
ASYNC_METHODS = ("aget_tuple", "aput", "aput_writes")
"""The async methods of a checkpointer that LangGraph's `astream` calls."""


_OPENING: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
"""The lock of each event loop that lets graphs open their checkpointers one after the other. SQLite does not wait while
another connection changes the journal of a new file, but raises an error."""


async def open_saver(data: Path) -> Any:
    """Open a checkpointer on the SQLite file in the data folder. Each checkpointer has its own connection.

    Raises TryLater if the error may be temporary, else SetupError. The message names the file and the remedy.
    """
    async with _OPENING.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
        return await _open_saver(data)


async def _open_saver(data: Path) -> Any:
    import aiosqlite
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    file = data / FILE
    with suppress(OSError):  # SQLite reports why the file cannot be created
        create_private_database(file)
    connection = aiosqlite.connect(file, timeout=LOCK_SECONDS)
    try:
        await connection
        await connection.execute("PRAGMA journal_mode=WAL")
        await connection.execute("PRAGMA synchronous=NORMAL")
        saver = AsyncSqliteSaver(connection)
        await saver.setup()
    except BaseException as error:
        await connection.close()  # otherwise the thread of the connection keeps running
        if isinstance(error, sqlite3.Error):
            raise setup_error(error, file) from error
        raise
    return saver


def setup_error(error: sqlite3.Error, file: Path) -> SetupError:
    """Return the error for a database that cannot be opened: TryLater if the cause may be temporary."""
    words, fix = TEMPORARY_ERRORS.get(getattr(error, "sqlite_errorcode", 0) & 0xFF, ("", ""))
    if words:
        return TryLater(f"{file} cannot be opened ({error}): {fix}", words=words)
    return SetupError(f"{file} cannot be opened ({error}): see that it is a database and that this user may write it")


def is_blocking(saver: Any) -> bool:
    """Whether a checkpointer lacks one of the async methods, as `SqliteSaver` does."""
    kind: Any = saver.__class__
    return any(getattr(kind, name, None) is getattr(BaseCheckpointSaver, name) for name in ASYNC_METHODS)


def with_async_methods(saver: Any) -> Any:
    """Return a copy of a checkpointer whose async methods call the sync methods in threads.

    The copy uses the same connection.
    """
    threaded = copy.copy(saver)
    methods = {name: method for name, method in vars(_AsyncMethods).items() if name.startswith("a")}
    kind: Any = saver.__class__
    threaded.__class__ = type(f"Awaitable{kind.__name__}", (kind,), methods)
    return threaded


class _AsyncMethods:
    async def aget_tuple(self: Any, config: Any) -> Any:
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(self: Any, config: Any, **options: Any) -> AsyncIterator[Any]:
        for item in await asyncio.to_thread(lambda: list(self.list(config, **options))):
            yield item

    async def aput(self: Any, *args: Any, **kwargs: Any) -> Any:
        return await asyncio.to_thread(self.put, *args, **kwargs)

    async def aput_writes(self: Any, *args: Any, **kwargs: Any) -> None:
        await asyncio.to_thread(self.put_writes, *args, **kwargs)

    async def adelete_thread(self: Any, thread_id: str) -> None:
        await asyncio.to_thread(self.delete_thread, thread_id)
