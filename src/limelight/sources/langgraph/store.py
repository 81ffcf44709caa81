"""The default store of graphs: memories that outlive a conversation, in a SQLite file of the data folder.

Graphs read and write them as `runtime.store`, `get_store()` or in a tool, asynchronously or not. All graphs of a server
share one file and decide themselves under which namespace they keep what. Another backend is another subclass of
`SharedStore`, which `open_store` returns. This module imports LangGraph, so it is imported only when there is a graph.
"""

import asyncio
import sqlite3
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from langgraph.store.base import BaseStore, Op, Result, TTLConfig

from limelight.errors import SetupError
from limelight.private_files import create_private_database
from limelight.sources.langgraph.checkpointer import LOCK_SECONDS, setup_error

FILE = "langgraph-store.db"
SWEEP_SECONDS = 300
"""Interval at which items whose time to live has ended are deleted."""


class SharedStore(BaseStore):
    """A store whose sync methods work in any thread, also on the event loop. The last graph that uses it closes it."""

    supports_ttl = True

    @abstractmethod
    async def close(self) -> None:
        """Release what the store has opened, when no graph uses it any more."""


class SqliteGraphStore(SharedStore):
    """A store in a SQLite file, which the first operation opens. All operations share one connection.

    Asynchronous operations run in a thread of the store. A synchronous one runs in the thread of its caller; on the
    event loop it blocks other runs for the milliseconds that it takes.
    """

    ttl_config: TTLConfig | None = TTLConfig(refresh_on_read=True)

    def __init__(self, file: Path) -> None:
        super().__init__()
        self._file = file
        self._lock = threading.Lock()
        self._store: Any = None
        self._swept_at = 0.0
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="limelight-graph-store")
        self._closed = False

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        listed = list(ops)
        with self._lock:
            store = self._opened()
            try:
                if time.monotonic() - self._swept_at > SWEEP_SECONDS:
                    store.sweep_ttl()
                    self._swept_at = time.monotonic()
                return store.batch(listed)
            finally:
                if store.conn.in_transaction:  # after an error, or the next operation could not begin one
                    store.conn.rollback()

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        self._check_open()
        return await asyncio.get_running_loop().run_in_executor(self._thread, self.batch, list(ops))

    def _opened(self) -> Any:
        """Return LangGraph's store, and open it if it is not open. Raises SetupError if that fails."""
        self._check_open()
        if self._store is None:
            self._store = _open_sqlite(self._file)
            self._swept_at = -SWEEP_SECONDS
        return self._store

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("the store of this graph is closed, because its server has ended")

    async def close(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        self._thread.shutdown(wait=False)

    def _close(self) -> None:
        with self._lock:
            self._closed = True
            if self._store is not None:
                self._store.conn.close()
                self._store = None


def _open_sqlite(file: Path) -> Any:
    try:
        from langgraph.store.sqlite import SqliteStore  # pyright: ignore[reportMissingTypeStubs]
    except ModuleNotFoundError as error:
        raise SetupError(
            f"a graph needs the package {error.name} for its store: pip install 'limelight[langgraph]'"
        ) from error
    with suppress(OSError):  # SQLite reports why the file cannot be created
        create_private_database(file)
    connection: sqlite3.Connection | None = None
    try:
        connection = sqlite3.connect(file, timeout=LOCK_SECONDS, check_same_thread=False, isolation_level=None)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        store = SqliteStore(connection, ttl=SqliteGraphStore.ttl_config)
        store.setup()
    except BaseException as error:
        if connection is not None:
            connection.close()
        if isinstance(error, sqlite3.Error):
            raise setup_error(error, file) from error
        raise
    return store


# Sharing

_USERS: dict[Path, tuple[SharedStore, int]] = {}
"""The open stores by their file, each with the number of graphs that use it."""


def _file_in(data: Path) -> Path:
    return data.absolute() / FILE


def open_store(data: Path, make: Callable[[Path], SharedStore] = SqliteGraphStore) -> SharedStore:
    """Return the store of a data folder for one more graph. Each caller must call `release_store` in the end."""
    file = _file_in(data)
    store, users = _USERS.get(file) or (make(file), 0)
    _USERS[file] = store, users + 1
    return store


async def release_store(data: Path) -> None:
    """Close the store of a data folder if the caller is the last graph that uses it."""
    file = _file_in(data)
    store, users = _USERS[file]
    if users > 1:
        _USERS[file] = store, users - 1
        return
    del _USERS[file]
    await store.close()
