"""The SQL of memories: which state of an agent belongs to which session. Functions of a connection, as in `rows`."""

import sqlite3
from collections.abc import Collection
from typing import Any

import msgspec

from limelight.stores.base import Memory, MemoryTurn, SessionRef

_MEMORY = "key, agent, turns FROM memories"


def memory(db: sqlite3.Connection, ref: SessionRef, agent: str) -> Memory | None:
    query = f"SELECT {_MEMORY} WHERE owner = ? AND session_id = ? AND agent = ? AND NOT stale"
    row = db.execute(query, (*ref, agent)).fetchone()
    return None if row is None else _memory(row)


def remember(db: sqlite3.Connection, ref: SessionRef, memory: Memory) -> None:
    db.execute(
        "UPDATE memories SET stale = 1 WHERE owner = ? AND session_id = ? AND agent = ? AND key <> ?",
        (*ref, memory.agent, memory.key),
    )
    db.execute(
        "INSERT OR REPLACE INTO memories (key, owner, session_id, agent, turns) VALUES (?, ?, ?, ?, ?)",
        (memory.key, *ref, memory.agent, msgspec.json.encode(memory.turns)),
    )


def outdate(db: sqlite3.Connection, ref: SessionRef) -> None:
    """The session is gone."""
    db.execute("UPDATE memories SET stale = 1 WHERE owner = ? AND session_id = ?", ref)


def stale(db: sqlite3.Connection, agents: Collection[str], limit: int) -> list[Memory]:
    marks = ", ".join("?" * len(agents))
    query = f"SELECT {_MEMORY} WHERE stale AND agent IN ({marks}) LIMIT ?"
    return [_memory(row) for row in db.execute(query, (*agents, limit))]


def drop(db: sqlite3.Connection, key: str) -> None:
    db.execute("DELETE FROM memories WHERE key = ?", (key,))


def _memory(row: tuple[Any, ...]) -> Memory:
    key, agent, turns = row
    return Memory(key=key, agent=agent, turns=msgspec.json.decode(turns, type=tuple[MemoryTurn, ...]))
