"""Opens the default checkpointer of graphs, and adds async methods to checkpointers that have only sync ones.

A graph without a checkpointer stores its state in a SQLite file in the data folder, which all graphs of a server share.
This module imports LangGraph, so it is imported only when there is a graph.
"""

import asyncio
import copy
import sqlite3
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
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
    file, thread = data / FILE, ThreadPoolExecutor(1, "limelight-checkpointer")
    try:
        saver = await asyncio.get_running_loop().run_in_executor(thread, _open_sqlite, file)
    except BaseException as error:
        thread.shutdown(wait=False)
        if isinstance(error, sqlite3.Error):
            raise setup_error(error, file) from error
        raise
    return with_async_methods(saver, thread)


def _open_sqlite(file: Path) -> Any:
    """Open LangGraph's synchronous checkpointer, which a node may also use on the event loop.

    The asynchronous one raises an error there, so an async node could not call another graph with `invoke`.
    """
    from langgraph.checkpoint.sqlite import SqliteSaver

    with suppress(OSError):  # SQLite reports why the file cannot be created
        create_private_database(file)
    connection = sqlite3.connect(file, timeout=LOCK_SECONDS, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        saver = SqliteSaver(connection)
        saver.setup()
    except BaseException:
        connection.close()
        raise
    return saver


async def close_saver(saver: Any) -> None:
    """Close a checkpointer that `open_saver` has returned, after the writes that it has begun."""
    await asyncio.get_running_loop().run_in_executor(saver.thread, saver.conn.close)
    saver.thread.shutdown(wait=False)


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


def with_async_methods(saver: Any, thread: Executor | None = None) -> Any:
    """Return a copy of a checkpointer whose async methods call the sync methods in a thread.

    The copy uses the same connection. Without a `thread`, it uses the threads of the event loop.
    """
    threaded = copy.copy(saver)
    methods = {name: value for name, value in vars(_AsyncMethods).items() if not name.startswith("__")}
    kind: Any = saver.__class__
    threaded.__class__ = type(f"Awaitable{kind.__name__}", (kind,), methods)
    threaded.thread = thread
    return threaded


class _AsyncMethods:
    thread: Executor | None

    async def _call(self, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self.thread, partial(method, *args, **kwargs))

    async def aget_tuple(self: Any, config: Any) -> Any:
        return await self._call(self.get_tuple, config)

    async def alist(self: Any, config: Any, **options: Any) -> AsyncIterator[Any]:
        for item in await self._call(lambda: list(self.list(config, **options))):
            yield item

    async def aput(self: Any, *args: Any, **kwargs: Any) -> Any:
        return await self._call(self.put, *args, **kwargs)

    async def aput_writes(self: Any, *args: Any, **kwargs: Any) -> None:
        await self._call(self.put_writes, *args, **kwargs)

    async def adelete_thread(self: Any, thread_id: str) -> None:
        await self._call(self.delete_thread, thread_id)
