"""The write side of the log: commits go to the journal and to memory, and are packed into chunks later.

A model that streams text makes commits of one token per run, so one row per run and commit would be one row per token.
Instead, a commit writes one page for all runs into the journal table, and the records are added to the tail of their
run, a list in memory. When a tail is long, or the run ends, the tail is written as one packed chunk. Pages whose
records are all in chunks are deleted. Pages are read only after a crash. Everything runs on the writer thread, except
that readers copy `LiveState.tail`, which grows and is replaced, but is never shortened in place.
"""

import sqlite3
from collections.abc import Callable, Collection, Sequence

import msgspec

from limelight.errors import LeaseLost
from limelight.events import AnyEvent, Record
from limelight.models import ENDED_STATES, Append, Result, RunState, fault_of
from limelight.stores.record_packing import pack

CHUNK_RECORDS = 128
MAX_CHUNK = 512
PINNED_PAGES = 2000
"""Number of newer pages at which the tail of a slow run is packed, so that its old pages can be deleted."""
TIDY_EVERY = 64
"""Number of commits between two deletions of old pages."""
PART_BYTES = 256 * 1024
"""Size of a part of a large result or file, in bytes. One transaction writes one part."""

PageEntry = tuple[str, list[tuple[int, int, AnyEvent]]]
"""A run id, and the (seq, at, event) of the run's records in one page."""

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(list[PageEntry])


class LiveState(msgspec.Struct):
    """The in-memory state of a live run: its lease, and its newest records, which are not in a chunk yet."""

    run_id: str
    session: int
    last_seq: int
    state: RunState
    lease_until: int
    held: bool
    tail: list[Record] = []
    first_page: int | None = None
    """The first page that contains records of the tail; None if the tail is empty."""
    ending: bool = False
    """Whether a transaction has tried to write the end of the run. It may have failed."""


class Journal:
    """The write-ahead journal of Records in a database.

    It writes each commit as a page, packs the newest Records of a run into compressed chunks, and deletes pages whose
    Records are all in chunks.
    """

    def __init__(self) -> None:
        self.live: dict[str, LiveState] = {}
        self._page = 0
        self._durable = 0
        """Number of the last committed page. Pages of the current transaction have higher numbers."""
        self._commits = 0

    def recover(self, db: sqlite3.Connection) -> None:
        """Load the live runs into memory when the store opens, with the records of their tails from the journal."""
        rows = db.execute("SELECT run_id, session, last_seq, state FROM runs WHERE state IN ('running', 'waiting')")
        for run_id, session, last_seq, state in rows.fetchall():
            # This process has the lock on the database, so the process that owned the run has ended.
            self.live[run_id] = LiveState(run_id, session, last_seq, state, lease_until=0, held=False)
        for page, body in db.execute("SELECT page, body FROM journal ORDER BY page"):
            self._page = self._durable = page
            for run_id, entries in _decoder.decode(body):
                live = self.live.get(run_id)
                fresh = [Record(s, run_id, at, e) for s, at, e in entries if live and s > live.last_seq]
                if live and fresh:
                    live.tail += fresh
                    live.last_seq = fresh[-1].seq
                    live.first_page = page if live.first_page is None else live.first_page

    def held(self, run_id: str) -> LiveState:
        """Return the in-memory state of a live run. Raises LeaseLost if this process does not own the run."""
        live = self.live.get(run_id)
        if live is None or not live.held:
            raise LeaseLost(f"run {run_id} is not held by this process")
        return live

    def write(self, db: sqlite3.Connection, batch: Sequence[Append]) -> Callable[[], None]:
        """Write a batch of records, results and run states to the tables. The caller has begun a transaction.

        Return a function that updates the in-memory state. The caller calls it after the commit.
        """
        runs = [self.held(append.run_id) for append in batch]
        entries: list[PageEntry] = []
        updates: list[Callable[[], None]] = []
        continuing: dict[str, tuple[LiveState, Append]] = {}
        for append, live in zip(batch, runs, strict=True):
            if append.results:
                _put_results(db, append.run_id, append.results)
            if append.state in ENDED_STATES:
                updates.append(self._end(db, live, append))
                continue
            continuing[append.run_id] = live, append
            if append.state is not None and append.state != live.state:
                _set_state(db, live, append.state)
            if append.records:
                entries.append((append.run_id, [(r.seq, r.at, r.event) for r in append.records]))
        if entries:
            self._page += 1
            db.execute("INSERT INTO journal (page, body) VALUES (?, ?)", (self._page, _encoder.encode(entries)))
        updates += self._tidy(db, [*continuing], {append.run_id for append in batch}.difference(continuing))
        page = self._page

        def apply() -> None:
            for live, append in continuing.values():
                if append.records:
                    live.tail.extend(append.records)
                    live.last_seq = append.records[-1].seq
                    live.first_page = self._durable + 1 if live.first_page is None else live.first_page
                live.state = append.state or live.state
            for update in updates:
                update()
            self._durable = page

        return apply

    def _end(self, db: sqlite3.Connection, live: LiveState, append: Append) -> Callable[[], None]:
        live.ending = True
        records = [*live.tail, *append.records]
        last = records[-1]
        _insert_chunks(db, live, records)
        fault = fault_of(last)
        error = None if fault is None else msgspec.json.encode(fault)
        db.execute(
            "UPDATE runs SET state = ?, ended_at = ?, last_seq = ?, error = ? WHERE run_id = ?",
            (append.state, last.at, last.seq, error, live.run_id),
        )
        db.execute(
            "UPDATE sessions SET active_at = ?, last_seq = ?, run_state = ? WHERE id = ?",
            (last.at, last.seq, append.state, live.session),
        )

        def remove() -> None:
            self.live.pop(live.run_id, None)

        return remove

    def _tidy(self, db: sqlite3.Connection, continuing: Collection[str], ended: set[str]) -> list[Callable[[], None]]:
        """Pack long tails into chunks. Every TIDY_EVERY commits, also pack tails on old pages, and delete unused pages.

        Return functions that remove the packed tails from memory; the caller calls them after the commit.
        """
        self._commits += 1
        if self.live.keys() <= ended:
            db.execute("DELETE FROM journal")
            return []
        if self._commits % TIDY_EVERY:
            return [self._pack(db, live) for r in continuing if len((live := self.live[r]).tail) >= CHUNK_RECORDS]
        updates: list[Callable[[], None]] = []
        first_needed = self._durable + 1
        for live in self.live.values():
            if live.first_page is None or live.run_id in ended:
                continue
            pins = self._page - live.first_page > PINNED_PAGES
            if (pins or len(live.tail) >= CHUNK_RECORDS) and not live.ending:
                updates.append(self._pack(db, live))
            else:
                first_needed = min(first_needed, live.first_page)
        db.execute("DELETE FROM journal WHERE page < ?", (first_needed,))
        return updates

    def _pack(self, db: sqlite3.Connection, live: LiveState) -> Callable[[], None]:
        """Pack the tail of a live run into a chunk. Return a function that removes the tail from memory.

        The caller calls it after the commit. The records of the current commit are not in the chunk; they become the
        new tail.
        """
        _insert_chunks(db, live, live.tail)
        packed, last_seq = len(live.tail), live.tail[-1].seq
        db.execute("UPDATE runs SET last_seq = ? WHERE run_id = ?", (last_seq, live.run_id))
        db.execute("UPDATE sessions SET last_seq = ? WHERE id = ?", (last_seq, live.session))
        first_page = self._durable + 1

        def replace() -> None:
            live.tail = live.tail[packed:]
            live.first_page = first_page if live.tail else None

        return replace


def _set_state(db: sqlite3.Connection, live: LiveState, state: RunState) -> None:
    db.execute("UPDATE runs SET state = ? WHERE run_id = ?", (state, live.run_id))
    db.execute("UPDATE sessions SET run_state = ? WHERE id = ?", (state, live.session))


def _insert_chunks(db: sqlite3.Connection, live: LiveState, records: Sequence[Record]) -> None:
    """Write records of a run as chunks of at most MAX_CHUNK records, so that each chunk can be read quickly."""
    slices = [records[start : start + MAX_CHUNK] for start in range(0, len(records), MAX_CHUNK)]
    db.executemany(
        "INSERT INTO chunks (session, first_seq, last_seq, run_id, body) VALUES (?, ?, ?, ?, ?)",
        [(live.session, part[0].seq, part[-1].seq, live.run_id, pack(part)) for part in slices],
    )


# Results. A large result is written in parts, one per transaction, so that commits of other runs need not wait. Part 0
# is the row in `results`. It is written last, with the records that refer to the result: a result without part 0 is
# incomplete and is not returned. The parts of a result that replaces another one are staged under a different key until
# then, so that readers never get parts of both.


def last_results(results: Sequence[Result]) -> list[Result]:
    """Return the results of a commit; of several with the same key only the last one."""
    return list({result.key: result for result in results}.values())


def put_part(db: sqlite3.Connection, run_id: str, result: Result, part: int) -> None:
    """Write one of the parts 1, 2, … of a large result. `_put_results` writes part 0."""
    is_replacement = db.execute("SELECT 1 FROM results WHERE run_id = ? AND key = ?", (run_id, result.key)).fetchone()
    body = part_of(result.body, part)
    db.execute(
        "INSERT OR REPLACE INTO result_parts (run_id, key, part, body) VALUES (?, ?, ?, ?)",
        (run_id, _staging_key(result) if is_replacement else result.key, part, body),
    )


def part_of(body: bytes, part: int) -> memoryview:
    return memoryview(body).cast("B")[part * PART_BYTES : (part + 1) * PART_BYTES]


def last_part(body: bytes) -> int:
    """Return the number of the last part of a result or a file; 0 if it has only part 0."""
    return max(0, memoryview(body).nbytes - 1) // PART_BYTES


def _staging_key(result: Result) -> str:
    return f"new:{result.key}"  # no other key begins like this


def _put_results(db: sqlite3.Connection, run_id: str, results: Sequence[Result]) -> None:
    """Write part 0 of each result, after its other parts, which makes it readable. Delete the results they replace."""
    for result in last_results(results):
        last, staged = last_part(result.body), (run_id, _staging_key(result))
        row = (run_id, result.key, result.media_type, result.body[:PART_BYTES])
        # The rowid is the version of the result: it is higher than that of the row that is deleted next.
        (rowid,) = db.execute("SELECT ifnull(max(rowid), 0) + 1 FROM results").fetchone()
        replaced = db.execute("DELETE FROM results WHERE run_id = ? AND key = ?", row[:2]).rowcount
        db.execute("INSERT INTO results (rowid, run_id, key, media_type, body) VALUES (?, ?, ?, ?, ?)", (rowid, *row))
        kept = 0 if replaced else last
        db.execute("DELETE FROM result_parts WHERE run_id = ? AND key = ? AND part > ?", (*row[:2], kept))
        if replaced:
            move = "UPDATE result_parts SET key = ? WHERE run_id = ? AND key = ? AND part <= ?"
            db.execute(move, (result.key, *staged, last))
            db.execute("DELETE FROM result_parts WHERE run_id = ? AND key = ?", staged)  # of an interrupted write
