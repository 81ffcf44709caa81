"""The SQL of sessions, runs, records and memories, as functions that a writer or reader thread calls.

`live` is the in-memory state of live runs. It takes precedence over the rows of these runs, which are updated only when
a chunk of records is written.
"""

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from limelight.errors import SessionNotFound
from limelight.events import Record
from limelight.models import (
    LIVE_STATES,
    Begun,
    Memory,
    MemoryTurn,
    NewRun,
    NewSession,
    Owner,
    Result,
    RetentionCounts,
    Run,
    RunFault,
    Session,
    SessionRef,
    Swept,
    refers_to,
)
from limelight.stores.base import check_not_busy, check_session_count, check_session_size
from limelight.stores.record_packing import unpack, unpack_naming
from limelight.stores.sqlite.journal import LiveState

Live = Mapping[str, LiveState]
Row = tuple[Any, ...]
MAX_SEQ = 2**62
"""Maximum of sequence numbers from clients, because SQLite rejects much larger integers."""
CHUNKS_PER_SEARCH = 8
"""Maximum number of chunks that one call of `records_naming` searches."""

_SESSION = "owner, session_id, agent, title, created_at, active_at, turns, last_seq, max_steps, run_id, run_state"
_RUN = (
    "s.owner, s.session_id, r.agent, r.turn, r.started_at, r.ended_at, r.first_seq, r.last_seq, r.request_id, r.error,"
    " r.messages, r.run_id, r.state FROM runs r JOIN sessions s ON s.id = r.session"
)


def _with_live(
    db: sqlite3.Connection, query: str, values: Sequence[Any], live: Live
) -> list[tuple[Row, LiveState | None]]:
    """Return the rows of a query for sessions or runs, each with the LiveState of its run; None if it is not live.

    The last two columns of the query must be the id and the state of the run.
    """

    def select() -> list[tuple[Row, LiveState | None]]:
        found = db.execute(query, values).fetchall()
        return [(row, live.get(row[-2]) if row[-1] in LIVE_STATES else None) for row in found]

    found = select()
    if any(now is None and row[-1] in LIVE_STATES for row, now in found):
        found = select()  # a run began or ended after the query; a new query returns its current row
    return found


# Sessions


def session(db: sqlite3.Connection, ref: SessionRef, live: Live) -> Session | None:
    query = f"SELECT {_SESSION} FROM sessions WHERE owner = ? AND session_id = ?"
    return next((_session(*found) for found in _with_live(db, query, ref, live)), None)


def sessions(
    db: sqlite3.Connection, owner: str, q: str, before: tuple[int, str] | None, limit: int, live: Live
) -> list[Session]:
    # (active_at, session_id) is unique per owner, so pages have no overlaps and no gaps.
    active_at, session_id = before or (2**62, "")
    query = (
        f"SELECT {_SESSION} FROM sessions WHERE owner = ? AND instr(lower(title), lower(?))"
        " AND (active_at < ? OR (active_at = ? AND session_id > ?))"
        " ORDER BY active_at DESC, session_id LIMIT ?"
    )
    values = (owner, q, active_at, active_at, session_id, limit)
    return [_session(*found) for found in _with_live(db, query, values, live)]


def owners(db: sqlite3.Connection, after: str, limit: int) -> list[Owner]:
    query = "SELECT owner, count(*), max(active_at) FROM sessions WHERE owner > ? GROUP BY owner ORDER BY owner LIMIT ?"
    return [
        Owner(owner=owner, sessions=count, active_at=active_at)
        for owner, count, active_at in db.execute(query, (after, limit))
    ]


def _session(row: Row, now: LiveState | None) -> Session:
    owner, session_id, agent, title, created_at, active_at, turns, last_seq, max_steps, run_id, run_state = row
    return Session(
        ref=SessionRef(owner, session_id),
        agent=agent,
        title=title,
        created_at=created_at,
        active_at=active_at,
        turns=turns,
        last_seq=now.last_seq if now else last_seq,
        run_id=run_id,
        run_state=now.state if now else run_state,
        max_steps=max_steps,
    )


def create(db: sqlite3.Connection, new: NewSession) -> bool:
    if db.execute("SELECT 1 FROM sessions WHERE owner = ? AND session_id = ?", new.ref).fetchone():
        return False
    _insert_session(db, new)
    return True


def _insert_session(db: sqlite3.Connection, new: NewSession) -> int:
    """Check the session limit, insert a session and return its row number. Only the writer thread calls this."""
    if new.max_sessions:
        (count,) = db.execute("SELECT count(*) FROM sessions WHERE owner = ?", (new.ref.owner,)).fetchone()
        check_session_count(count, new.max_sessions)
    inserted = db.execute(
        "INSERT INTO sessions (owner, session_id, agent, title, created_at, active_at, max_steps)"
        " VALUES (?, ?, ?, '', ?, ?, ?)",
        (*new.ref, new.agent, new.at, new.at, new.max_steps),
    )
    assert inserted.lastrowid is not None
    return inserted.lastrowid


def active_sessions(db: sqlite3.Connection, since: int) -> int:
    query = "SELECT count(*) FROM sessions WHERE active_at >= ? OR run_state IN ('running', 'waiting')"
    return db.execute(query, (since,)).fetchone()[0]


def rename(db: sqlite3.Connection, ref: SessionRef, title: str) -> bool:
    done = db.execute("UPDATE sessions SET title = ? WHERE owner = ? AND session_id = ?", (title, *ref))
    return done.rowcount == 1


def delete(db: sqlite3.Connection, ref: SessionRef) -> bool:
    row = db.execute("SELECT id, run_id, run_state FROM sessions WHERE owner = ? AND session_id = ?", ref).fetchone()
    if row is None:
        return False
    id_, run_id, run_state = row
    check_not_busy(run_id, run_state)
    for (old,) in db.execute("SELECT run_id FROM runs WHERE session = ?", (id_,)).fetchall():
        _delete_run(db, old)
    db.execute("DELETE FROM sessions WHERE id = ?", (id_,))
    _mark_memories_stale(db, ref)
    return True


# Retention


def sweep(db: sqlite3.Connection, before: int, limit: int) -> Swept:
    old = db.execute("SELECT run_id FROM runs WHERE ended_at < ? LIMIT ?", (before, limit)).fetchall()
    for (run_id,) in old:
        _delete_run(db, run_id)
    empty = db.execute(
        "DELETE FROM sessions WHERE active_at < ? AND NOT EXISTS (SELECT 1 FROM runs WHERE session = sessions.id)"
        " RETURNING owner, session_id",
        (before,),
    ).fetchall()
    deleted = [SessionRef(*row) for row in empty]
    for ref in deleted:
        _mark_memories_stale(db, ref)
    return Swept(len(old), deleted)


def newest_at(db: sqlite3.Connection) -> int | None:
    """Return the latest time at which a session was active or a run ended; None if the store is empty.

    If the clock was set back, a run may have an end that is later than the activity of its session.
    """
    (active,) = db.execute("SELECT max(active_at) FROM sessions").fetchone()
    (ended,) = db.execute("SELECT max(ended_at) FROM runs").fetchone()
    return max((at for at in (active, ended) if at is not None), default=None)


def retention_counts(db: sqlite3.Connection, before: int) -> RetentionCounts:
    sessions, runs, runs_to_delete, sessions_to_delete = db.execute(
        "SELECT (SELECT count(*) FROM sessions), (SELECT count(*) FROM runs),"
        " (SELECT count(*) FROM runs WHERE ended_at < ?1),"
        " (SELECT count(*) FROM sessions WHERE active_at < ?1 AND NOT EXISTS"
        " (SELECT 1 FROM runs WHERE session = sessions.id AND (ended_at IS NULL OR ended_at >= ?1)))",
        (before,),
    ).fetchone()
    return RetentionCounts(
        sessions=sessions, runs=runs, sessions_to_delete=sessions_to_delete, runs_to_delete=runs_to_delete
    )


def _delete_run(db: sqlite3.Connection, run_id: str) -> None:
    for table in ("chunks", "results", "result_parts", "artifacts", "artifact_parts", "runs"):
        db.execute(f"DELETE FROM {table} WHERE run_id = ?", (run_id,))


# Runs


def begin(db: sqlite3.Connection, new: NewRun, live: Live) -> tuple[Begun, int]:
    """Begin a run, or find the run with the same request id. Return it with the row number of its session.

    Makes all checks before its first write.
    """
    row = db.execute(
        "SELECT id, turns, last_seq, run_id, run_state FROM sessions WHERE owner = ? AND session_id = ?",
        new.ref,
    ).fetchone()
    turns = last_seq = size = 0
    if row is not None:
        id_, turns, last_seq, run_id, run_state = row
        earlier = requested(db, new.ref, new.request_id, live) if new.request_id else None
        if earlier is not None:
            return Begun(earlier, created=False), id_
        check_not_busy(run_id, run_state)
        size = _session_bytes(db, id_)
        check_session_size(size, new.max_session_bytes)
    elif not new.create_session:
        raise SessionNotFound(f"there is no session {new.ref.session_id!r}")
    else:
        id_ = _insert_session(db, new.to_session())
    begun = new.to_run(turns=turns, last_seq=last_seq)
    db.execute(
        "INSERT INTO runs (run_id, session, agent, turn, state, started_at, first_seq, last_seq, request_id)"
        " VALUES (?, ?, ?, ?, 'running', ?, ?, ?, ?)",
        (new.run_id, id_, new.agent, begun.turn, new.at, begun.first_seq, last_seq, new.request_id or None),
    )
    db.execute(
        "UPDATE sessions SET agent = ?, title = iif(title = '', ?, title), turns = ?, active_at = ?, run_id = ?,"
        " run_state = 'running' WHERE id = ?",
        (new.agent, new.title, begun.turn, new.at, new.run_id, id_),
    )
    return Begun(begun, created=True, session_bytes=size), id_


def _session_bytes(db: sqlite3.Connection, session: int) -> int:
    """Return the size of a session in bytes: its log, results and artifacts."""
    (size,) = db.execute(
        "SELECT (SELECT ifnull(sum(length(body)), 0) FROM chunks WHERE session = ?1)"
        " + (SELECT ifnull(sum(length(b.body)), 0) FROM runs r JOIN results b USING (run_id) WHERE r.session = ?1)"
        " + (SELECT ifnull(sum(length(b.body)), 0) FROM runs r JOIN result_parts b USING (run_id) WHERE r.session = ?1)"
        " + (SELECT ifnull(sum(length(b.body)), 0) FROM runs r JOIN artifacts b USING (run_id) WHERE r.session = ?1)"
        " + (SELECT ifnull(sum(length(b.body)), 0) FROM runs r JOIN artifact_parts b USING (run_id)"
        " WHERE r.session = ?1)",
        (session,),
    ).fetchone()
    return size


def run(db: sqlite3.Connection, run_id: str, live: Live) -> Run | None:
    return _first_run(db, f"SELECT {_RUN} WHERE r.run_id = ?", (run_id,), live)


def requested(db: sqlite3.Connection, ref: SessionRef, request_id: str, live: Live) -> Run | None:
    query = f"SELECT {_RUN} WHERE s.owner = ? AND s.session_id = ? AND r.request_id = ?"
    return _first_run(db, query, (*ref, request_id), live)


def run_covering(db: sqlite3.Connection, ref: SessionRef, seq: int, live: Live) -> Run | None:
    # `last_seq` in the row of a live run is outdated, so the query includes live runs in any case.
    query = (
        f"SELECT {_RUN} WHERE s.owner = ? AND s.session_id = ?"
        " AND (r.last_seq >= ? OR r.state IN ('running', 'waiting')) ORDER BY r.first_seq LIMIT 1"
    )
    return _first_run(db, query, (*ref, min(seq, MAX_SEQ)), live)


def runs(db: sqlite3.Connection, ref: SessionRef, live: Live) -> list[Run]:
    query = f"SELECT {_RUN} WHERE s.owner = ? AND s.session_id = ? ORDER BY r.first_seq"
    return [_run(*found) for found in _with_live(db, query, ref, live)]


def note_messages(db: sqlite3.Connection, run_id: str, messages: int) -> None:
    query = "UPDATE runs SET messages = ? WHERE run_id = ? AND state NOT IN ('running', 'waiting')"
    db.execute(query, (messages, run_id))


def _first_run(db: sqlite3.Connection, query: str, values: Sequence[Any], live: Live) -> Run | None:
    return next((_run(*found) for found in _with_live(db, query, values, live)), None)


def _run(row: Row, now: LiveState | None) -> Run:
    owner, session_id, agent, turn, started, ended, first_seq, last_seq, *more = row
    request_id, error, messages, run_id, state = more
    return Run(
        run_id=run_id,
        ref=SessionRef(owner, session_id),
        agent=agent,
        turn=turn,
        state=now.state if now else state,
        started_at=started,
        ended_at=ended,
        first_seq=first_seq,
        last_seq=now.last_seq if now else last_seq,
        request_id=request_id or "",
        error=None if error is None else msgspec.json.decode(error, type=RunFault),
        messages=messages,
    )


# Records and results


def records(db: sqlite3.Connection, ref: SessionRef, after: int, limit: int, live: Live) -> list[Record]:
    after = min(after, MAX_SEQ)
    # The tail is read before the chunks, so that records that are packed in between are found in a chunk.
    session, tail = _tail(db, ref, live)
    found: list[Record] = []
    for (body,) in db.execute(
        "SELECT body FROM chunks WHERE session = ?1 AND last_seq > ?2 AND first_seq >="
        " ifnull((SELECT max(first_seq) FROM chunks WHERE session = ?1 AND first_seq <= ?2 + 1), 0) ORDER BY first_seq",
        (session, after),
    ):
        found += [record for record in unpack(body) if record.seq > after]
        if len(found) >= limit:
            return found[:limit]
    done = found[-1].seq if found else after
    return (found + [record for record in tail if record.seq > done])[:limit]


def _tail(db: sqlite3.Connection, ref: SessionRef, live: Live) -> tuple[int, list[Record]]:
    """Return the row number of a session, and the records of its live run that are not in a chunk yet."""
    row = db.execute("SELECT id, run_id FROM sessions WHERE owner = ? AND session_id = ?", ref).fetchone()
    if row is None:
        return 0, []
    now = live.get(row[1])
    return row[0], [] if now is None else list(now.tail)


def records_naming(
    db: sqlite3.Connection, run_id: str, id_: str, after: int, live: Live
) -> tuple[list[Record], int | None]:
    """Search up to CHUNKS_PER_SEARCH chunks of a run for records that have this `call_id` or `approval_id`.

    Return the records, and the value of `after` for the next search; None if all chunks were searched.
    """
    now = live.get(run_id)
    tail = [] if now is None else list(now.tail)  # before the chunks, as in `records`
    query = "SELECT body, last_seq FROM chunks WHERE run_id = ? AND first_seq > ? ORDER BY first_seq LIMIT ?"
    chunks = db.execute(query, (run_id, after, CHUNKS_PER_SEARCH)).fetchall()
    found = [record for body, _ in chunks for record in unpack_naming(body, id_)]
    done = chunks[-1][1] if chunks else after
    if len(chunks) == CHUNKS_PER_SEARCH:
        return found, done
    return found + [record for record in tail if record.seq > done and refers_to(record, id_)], None


def result(db: sqlite3.Connection, run_id: str, key: str) -> Result | None:
    found = db.execute(
        "SELECT media_type, body, 0 AS part FROM results WHERE run_id = :run_id AND key = :key"
        " UNION ALL SELECT '', body, part FROM result_parts WHERE run_id = :run_id AND key = :key ORDER BY part",
        {"run_id": run_id, "key": key},
    ).fetchall()
    if not found or found[0][2]:  # a result without part 0 is still being written
        return None
    return Result(key=key, media_type=found[0][0], body=b"".join(row[1] for row in found))


# Agent memories

_MEMORY = "key, agent, turns, owner, session_id FROM memories"


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


def stale_memories(db: sqlite3.Connection, agents: Collection[str], limit: int) -> list[Memory]:
    marks = ", ".join("?" * len(agents))
    query = f"SELECT {_MEMORY} WHERE stale AND agent IN ({marks}) LIMIT ?"
    return [_memory(row) for row in db.execute(query, (*agents, limit))]


def drop_memory(db: sqlite3.Connection, key: str) -> None:
    db.execute("DELETE FROM memories WHERE key = ?", (key,))


def _mark_memories_stale(db: sqlite3.Connection, ref: SessionRef) -> None:
    """Mark all agent memories of a deleted session as stale."""
    db.execute("UPDATE memories SET stale = 1 WHERE owner = ? AND session_id = ?", ref)


def _memory(row: Row) -> Memory:
    key, agent, turns, owner, session_id = row
    decoded = msgspec.json.decode(turns, type=tuple[MemoryTurn, ...])
    return Memory(key=key, agent=agent, turns=decoded, ref=SessionRef(owner, session_id))
