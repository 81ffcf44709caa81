"""Where graphs that bring no checkpointer of their own keep their state: one SQLite file in the data folder.

Knows LangGraph's savers, so it is loaded only once there is a graph. All sources of a server share the file.
"""

from pathlib import Path
from typing import Any

import aiosqlite
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

FILE = "langgraph.db"


async def open_saver(data: Path) -> AsyncSqliteSaver:
    """A saver on the data folder's file. Several may be open at once; each has a connection of its own."""
    connection = await aiosqlite.connect(data / FILE, timeout=30)
    await connection.execute("PRAGMA journal_mode=WAL")
    await connection.execute("PRAGMA synchronous=NORMAL")
    saver = AsyncSqliteSaver(connection)
    await saver.setup()
    return saver


async def close_saver(saver: Any) -> None:
    await saver.conn.close()
