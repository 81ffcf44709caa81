"""The live end of the log: what is committed and not yet packed into chunks.

At the pace of a talking model a commit holds one token of each run, so a row per run would be a row per token.
Therefore a commit writes one page for all runs into the journal, and each live run keeps the same Records in memory.
When these are many, or the run ends, they become one packed chunk, and pages that nobody needs are deleted. Pages are
read only after a crash. Everything here runs on the writer thread, except that readers look at `LiveRun.tail`, which
is replaced, never cut.
"""

import sqlite3
from collections.abc import Callable, Collection, Sequence

import msgspec

from limelight.errors import LeaseLost
from limelight.events import AnyEvent, Record
from limelight.stores.base import ENDED_STATES, Append, RunState, fault_of
from limelight.stores.packing import pack
from limelight.stores.sqlite.results import put_results

CHUNK_RECORDS = 128
MAX_CHUNK = 512
PINNED_PAGES = 2000
"""A quiet run whose first page is this far behind is packed, so that it does not keep the whole journal alive."""
TIDY_EVERY = 64
"""Delete old pages once in so many commits."""

PageEntry = tuple[str, list[tuple[int, int, AnyEvent]]]
"""A run and its Records' (seq, at, event) in one page."""

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(list[PageEntry])


class LiveRun(msgspec.Struct):
    """What memory holds of a live run."""

    run_id: str
    session: int
    last_seq: int
    state: RunState
    lease_until: int
    held: bool
    tail: list[Record] = []
    first_page: int | None = None
    """No page below this one has a Record of the tail; None if the tail is empty."""
    ending: bool = False
    """Its end is being written, in this transaction or in one that failed."""


class Journal:
    """Writes commits, packs tails, drops pages."""

    def __init__(self) -> None:
        self.live: dict[str, LiveRun] = {}
        self._page = 0
        self._durable = 0
        """The last page that is committed: those of a transaction that goes on are above it."""
        self._commits = 0

    def recover(self, db: sqlite3.Connection) -> None:
        """After a start: find live runs in the tables, and the Records of their tails in the pages."""
        rows = db.execute("SELECT run_id, session, last_seq, state FROM runs WHERE state IN ('running', 'waiting')")
        for run_id, session, last_seq, state in rows.fetchall():
            # Whoever held these is gone: the data folder's lock is ours.
            self.live[run_id] = LiveRun(run_id, session, last_seq, state, lease_until=0, held=False)
        for page, body in db.execute("SELECT page, body FROM journal ORDER BY page"):
            self._page = self._durable = page
            for run_id, entries in _decoder.decode(body):
                live = self.live.get(run_id)
                fresh = [Record(s, run_id, at, e) for s, at, e in entries if live and s > live.last_seq]
                if live and fresh:
                    live.tail += fresh
                    live.last_seq = fresh[-1].seq
                    live.first_page = page if live.first_page is None else live.first_page

    def held(self, run_id: str) -> LiveRun:
        """The run, if this process may write to it."""
        live = self.live.get(run_id)
        if live is None or not live.held:
            raise LeaseLost(f"run {run_id} is not held by this process")
        return live

    def write(self, db: sqlite3.Connection, batch: Sequence[Append]) -> Callable[[], None]:
        """Write a commit. Returns what has to be done to memory once it is durable."""
        runs = [self.held(append.run_id) for append in batch]
        entries: list[PageEntry] = []
        after: list[Callable[[], None]] = []
        going_on: dict[str, tuple[LiveRun, Append]] = {}
        for append, live in zip(batch, runs, strict=True):
            if append.results:
                put_results(db, append.run_id, append.results)
            if append.state in ENDED_STATES:
                after.append(self._end(db, live, append))
                continue
            going_on[append.run_id] = live, append
            if append.state is not None and append.state != live.state:
                _set_state(db, live, append.state)
            if append.records:
                entries.append((append.run_id, [(r.seq, r.at, r.event) for r in append.records]))
        if entries:
            self._page += 1
            db.execute("INSERT INTO journal (page, body) VALUES (?, ?)", (self._page, _encoder.encode(entries)))
        after += self._tidy(db, going_on, {append.run_id for append in batch}.difference(going_on))
        page = self._page

        def apply() -> None:
            for live, append in going_on.values():
                self._grow(live, append)
            for step in after:
                step()
            self._durable = page

        return apply

    def _grow(self, live: LiveRun, append: Append) -> None:
        if append.records:
            live.tail.extend(append.records)
            live.last_seq = append.records[-1].seq
            live.first_page = self._durable + 1 if live.first_page is None else live.first_page
        live.state = append.state or live.state

    def _end(self, db: sqlite3.Connection, live: LiveRun, append: Append) -> Callable[[], None]:
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

        def forget() -> None:
            self.live.pop(live.run_id, None)

        return forget

    def _tidy(self, db: sqlite3.Connection, going_on: Collection[str], ended: set[str]) -> list[Callable[[], None]]:
        """Pack the tails that have become long; now and then also those that pin old pages, and drop what none pins."""
        self._commits += 1
        if self.live.keys() <= ended:
            db.execute("DELETE FROM journal")
            return []
        if self._commits % TIDY_EVERY:
            return [self._pack(db, live) for r in going_on if len((live := self.live[r]).tail) >= CHUNK_RECORDS]
        after: list[Callable[[], None]] = []
        floor = self._durable + 1
        for live in self.live.values():
            if live.first_page is None or live.run_id in ended:
                continue
            pins = self._page - live.first_page > PINNED_PAGES
            if (pins or len(live.tail) >= CHUNK_RECORDS) and not live.ending:
                after.append(self._pack(db, live))
            else:
                floor = min(floor, live.first_page)
        db.execute("DELETE FROM journal WHERE page < ?", (floor,))
        return after

    def _pack(self, db: sqlite3.Connection, live: LiveRun) -> Callable[[], None]:
        """Make the tail as it was before this commit a chunk; what this commit adds is the new tail."""
        _insert_chunks(db, live, live.tail)
        packed, last_seq = len(live.tail), live.tail[-1].seq
        db.execute("UPDATE runs SET last_seq = ? WHERE run_id = ?", (last_seq, live.run_id))
        db.execute("UPDATE sessions SET last_seq = ? WHERE id = ?", (last_seq, live.session))
        first_page = self._durable + 1

        def replace() -> None:
            live.tail = live.tail[packed:]
            live.first_page = first_page if live.tail else None

        return replace


def _set_state(db: sqlite3.Connection, live: LiveRun, state: RunState) -> None:
    db.execute("UPDATE runs SET state = ? WHERE run_id = ?", (state, live.run_id))
    db.execute("UPDATE sessions SET run_state = ? WHERE id = ?", (state, live.session))


def _insert_chunks(db: sqlite3.Connection, live: LiveRun, records: Sequence[Record]) -> None:
    """Usually one; a source that was far ahead gives several, so that none takes long to read."""
    slices = [records[start : start + MAX_CHUNK] for start in range(0, len(records), MAX_CHUNK)]
    db.executemany(
        "INSERT INTO chunks (session, first_seq, last_seq, run_id, body) VALUES (?, ?, ?, ?, ?)",
        [(live.session, part[0].seq, part[-1].seq, live.run_id, pack(part)) for part in slices],
    )
