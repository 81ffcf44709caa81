"""The SQL: rows into values and back. Functions of a connection, called on a writer or a reader thread.

`live` is what memory knows of live runs; their rows are as old as their last chunk, so it wins over them.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from limelight.errors import SessionBusy, SessionFull, SessionNotFound, TooManySessions
from limelight.events import Record
from limelight.stores.base import (
    LIVE_STATES,
    Artifact,
    Begun,
    NewRun,
    NewSession,
    Owner,
    RetentionCounts,
    Run,
    RunFault,
    Session,
    SessionRef,
    Swept,
)
from limelight.stores.packing import names, unpack, unpack_naming
from limelight.stores.sqlite import memories
from limelight.stores.sqlite.journal import LiveRun

Live = Mapping[str, LiveRun]
Row = tuple[Any, ...]
MAX_SEQ = 2**62
"""Cursors come from clients; SQLite takes no larger number."""
SEARCHED_CHUNKS = 8
"""So many are looked through in one go."""

_SESSION = "owner, session_id, agent, title, created_at, active_at, turns, last_seq, max_steps, run_id, run_state"
_RUN = (
    "s.owner, s.session_id, r.agent, r.turn, r.started_at, r.ended_at, r.first_seq, r.last_seq, r.request_id, r.error,"
    " r.messages, r.run_id, r.state FROM runs r JOIN sessions s ON s.id = r.session"
)


def _with_memory(
    db: sqlite3.Connection, query: str, values: Sequence[Any], live: Live
) -> list[tuple[Row, LiveRun | None]]:
    """Rows that end in a run's id and state, each with what memory holds of that run if it is live."""

    def look() -> list[tuple[Row, LiveRun | None]]:
        found = db.execute(query, values).fetchall()
        return [(row, live.get(row[-2]) if row[-1] in LIVE_STATES else None) for row in found]

    found = look()
    if any(now is None and row[-1] in LIVE_STATES for row, now in found):
        found = look()  # a run has ended between the two looks, or begun: its row is right now
    return found


def session(db: sqlite3.Connection, ref: SessionRef, live: Live) -> Session | None:
    query = f"SELECT {_SESSION} FROM sessions WHERE owner = ? AND session_id = ?"
    return next((_session(*found) for found in _with_memory(db, query, ref, live)), None)


def sessions(
    db: sqlite3.Connection, owner: str, q: str, before: tuple[int, str] | None, limit: int, live: Live
) -> list[Session]:
    # (active_at, session_id) is unique per owner, so a page begins exactly behind the one before it.
    active_at, session_id = before or (2**62, "")
    query = (
        f"SELECT {_SESSION} FROM sessions WHERE owner = ? AND instr(lower(title), lower(?))"
        " AND (active_at < ? OR (active_at = ? AND session_id > ?))"
        " ORDER BY active_at DESC, session_id LIMIT ?"
    )
    values = (owner, q, active_at, active_at, session_id, limit)
    return [_session(*found) for found in _with_memory(db, query, values, live)]


def owners(db: sqlite3.Connection, after: str, limit: int) -> list[Owner]:
    query = "SELECT owner, count(*), max(active_at) FROM sessions WHERE owner > ? GROUP BY owner ORDER BY owner LIMIT ?"
    return [
        Owner(owner=owner, sessions=count, active_at=active_at)
        for owner, count, active_at in db.execute(query, (after, limit))
    ]


def _session(row: Row, now: LiveRun | None) -> Session:
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
    _check_one_more(db, new.ref.owner, new.sessions_max)
    db.execute(
        "INSERT INTO sessions (owner, session_id, agent, title, created_at, active_at, max_steps)"
        " VALUES (?, ?, ?, '', ?, ?, ?)",
        (*new.ref, new.agent, new.at, new.at, new.max_steps),
    )
    return True


def _check_one_more(db: sqlite3.Connection, owner: str, most: int) -> None:
    """Asked by the writer right before it makes a session: nobody can make another one in between."""
    if not most:
        return
    (own,) = db.execute("SELECT count(*) FROM sessions WHERE owner = ?", (owner,)).fetchone()
    if own >= most:
        raise TooManySessions(f"you have {most} sessions, which is the limit: delete some")


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
    if run_state in ("running", "waiting"):
        raise SessionBusy(f"run {run_id} is live: stop it first", run_id=run_id)
    for (old,) in db.execute("SELECT run_id FROM runs WHERE session = ?", (id_,)).fetchall():
        _delete_run(db, old)
    db.execute("DELETE FROM sessions WHERE id = ?", (id_,))
    memories.outdate(db, ref)
    return True


def sweep(db: sqlite3.Connection, before: int, limit: int) -> Swept:
    old = db.execute("SELECT run_id FROM runs WHERE ended_at < ? LIMIT ?", (before, limit)).fetchall()
    for (run_id,) in old:
        _delete_run(db, run_id)
    empty = db.execute(
        "DELETE FROM sessions WHERE active_at < ? AND NOT EXISTS (SELECT 1 FROM runs WHERE session = sessions.id)"
        " RETURNING owner, session_id",
        (before,),
    ).fetchall()
    gone = [SessionRef(*row) for row in empty]
    for ref in gone:
        memories.outdate(db, ref)
    return Swept(len(old), gone)


def newest_at(db: sqlite3.Connection) -> int | None:
    """Both are looked up in an index. A run may have ended later than its session was active: a clock went back."""
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
    for table in ("chunks", "results", "result_parts", "artifacts", "runs"):
        db.execute(f"DELETE FROM {table} WHERE run_id = ?", (run_id,))


def begin(db: sqlite3.Connection, new: NewRun, live: Live) -> tuple[Begun, int]:
    """Insert the run; returns it with its session's row number. Checks come first, so a refusal leaves no trace."""
    row = db.execute(
        "SELECT id, turns, last_seq, run_id, run_state FROM sessions WHERE owner = ? AND session_id = ?",
        new.ref,
    ).fetchone()
    if row is not None:
        id_, turns, last_seq, run_id, run_state = row
        earlier = (
            new.request_id
            and db.execute(
                "SELECT run_id FROM runs WHERE session = ? AND request_id = ?", (id_, new.request_id)
            ).fetchone()
        )
        if earlier:
            known = run(db, earlier[0], live)
            assert known is not None
            return Begun(known, created=False), id_
        if run_state in ("running", "waiting"):
            raise SessionBusy(f"run {run_id} is live in session {new.ref.session_id}", run_id=run_id)
        kept = _bytes_of(db, id_)
        if new.session_max and kept >= new.session_max:
            raise SessionFull(f"{kept:,} bytes are kept of this session, which is the limit: begin a new session")
    elif not new.makes_session:
        raise SessionNotFound(f"there is no session {new.ref.session_id!r}")
    else:
        _check_one_more(db, new.ref.owner, new.sessions_max)
        id_ = db.execute(
            "INSERT INTO sessions (owner, session_id, agent, title, created_at, active_at) VALUES (?, ?, ?, ?, ?, ?)",
            (*new.ref, new.agent, new.title, new.at, new.at),
        ).lastrowid
        assert id_ is not None
        turns, last_seq, kept = 0, 0, 0
    begun = Run(
        run_id=new.run_id,
        ref=new.ref,
        agent=new.agent,
        turn=turns + 1,
        state="running",
        started_at=new.at,
        ended_at=None,
        first_seq=last_seq + 1,
        last_seq=last_seq,
        request_id=new.request_id,
    )
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
    return Begun(begun, created=True, session_bytes=kept), id_


def _bytes_of(db: sqlite3.Connection, session: int) -> int:
    """What is kept of a session: its log, large results, and files. SQLite knows lengths without reading bodies."""
    (kept,) = db.execute(
        "SELECT (SELECT ifnull(sum(length(body)), 0) FROM chunks WHERE session = ?1)"
        " + (SELECT ifnull(sum(length(b.body)), 0) FROM runs r JOIN results b USING (run_id) WHERE r.session = ?1)"
        " + (SELECT ifnull(sum(length(b.body)), 0) FROM runs r JOIN result_parts b USING (run_id) WHERE r.session = ?1)"
        " + (SELECT ifnull(sum(length(b.body)), 0) FROM runs r JOIN artifacts b USING (run_id) WHERE r.session = ?1)",
        (session,),
    ).fetchone()
    return kept


def run(db: sqlite3.Connection, run_id: str, live: Live) -> Run | None:
    found = _with_memory(db, f"SELECT {_RUN} WHERE r.run_id = ?", (run_id,), live)
    return _run(*found[0]) if found else None


def requested(db: sqlite3.Connection, ref: SessionRef, request_id: str, live: Live) -> Run | None:
    query = f"SELECT {_RUN} WHERE s.owner = ? AND s.session_id = ? AND r.request_id = ?"
    found = _with_memory(db, query, (*ref, request_id), live)
    return _run(*found[0]) if found else None


def run_covering(db: sqlite3.Connection, ref: SessionRef, seq: int, live: Live) -> Run | None:
    ended = "r.state NOT IN ('running', 'waiting')"  # a live run's row is behind its log, and is the last one anyway
    query = (
        f"SELECT {_RUN} WHERE s.owner = ? AND s.session_id = ? AND (r.last_seq >= ? OR NOT {ended})"
        " ORDER BY r.first_seq LIMIT 1"
    )
    found = _with_memory(db, query, (*ref, min(seq, MAX_SEQ)), live)
    return _run(*found[0]) if found else None


def runs(db: sqlite3.Connection, ref: SessionRef, live: Live) -> list[Run]:
    query = f"SELECT {_RUN} WHERE s.owner = ? AND s.session_id = ? ORDER BY r.first_seq"
    return [_run(*found) for found in _with_memory(db, query, ref, live)]


def note_messages(db: sqlite3.Connection, run_id: str, messages: int) -> None:
    query = "UPDATE runs SET messages = ? WHERE run_id = ? AND state NOT IN ('running', 'waiting')"
    db.execute(query, (messages, run_id))


def _run(row: Row, now: LiveRun | None) -> Run:
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


def records(db: sqlite3.Connection, ref: SessionRef, after: int, limit: int, live: Live) -> list[Record]:
    after = min(after, MAX_SEQ)
    # The tail first: what leaves it afterwards is then found in a chunk, so nothing falls between the two.
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
    """The session's row number, and what memory holds of its live run."""
    row = db.execute("SELECT id, run_id FROM sessions WHERE owner = ? AND session_id = ?", ref).fetchone()
    if row is None:
        return 0, []
    now = live.get(row[1])
    return row[0], [] if now is None else list(now.tail)


def records_naming(
    db: sqlite3.Connection, run_id: str, id_: str, after: int, live: Live
) -> tuple[list[Record], int | None]:
    """What names this call or approval in the next stretch of a run, and where that ends; None if the run does."""
    now = live.get(run_id)
    tail = [] if now is None else list(now.tail)  # first, as above
    query = "SELECT body, last_seq FROM chunks WHERE run_id = ? AND first_seq > ? ORDER BY first_seq LIMIT ?"
    chunks = db.execute(query, (run_id, after, SEARCHED_CHUNKS)).fetchall()
    found = [record for body, _ in chunks for record in unpack_naming(body, id_)]
    done = chunks[-1][1] if chunks else after
    if len(chunks) == SEARCHED_CHUNKS:
        return found, done
    return found + [record for record in tail if record.seq > done and names(record, id_)], None


def put_artifact(db: sqlite3.Connection, artifact: Artifact, run_id: str) -> None:
    db.execute(
        "INSERT INTO artifacts (artifact_id, session, run_id, name, media_type, body)"
        " SELECT ?, id, ?, ?, ?, ? FROM sessions WHERE owner = ? AND session_id = ?",
        (artifact.artifact_id, run_id, artifact.name, artifact.media_type, artifact.body, *artifact.ref),
    )


def artifact(db: sqlite3.Connection, artifact_id: str) -> Artifact | None:
    row = db.execute(
        "SELECT a.artifact_id, s.owner, s.session_id, a.name, a.media_type, a.body"
        " FROM artifacts a JOIN sessions s ON s.id = a.session WHERE a.artifact_id = ?",
        (artifact_id,),
    ).fetchone()
    if row is None:
        return None
    return Artifact(artifact_id=row[0], ref=SessionRef(row[1], row[2]), name=row[3], media_type=row[4], body=row[5])
