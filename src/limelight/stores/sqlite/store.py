"""The embedded store's face: the contract of `stores/base.py` over one SQLite file in the data folder.

Writes go through the writer thread, reads through two reader threads with connections of their own. The newest
Records of a live run are served from memory. Reads that may take long are made one at a time for each owner.
"""

import asyncio
import queue
import sqlite3
import zlib
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

import msgspec

from limelight.errors import SetupError, StoreCorrupt, StoreUnavailable
from limelight.events import Record
from limelight.stores.base import (
    Append,
    Artifact,
    Begun,
    Memory,
    NewRun,
    NewSession,
    Owner,
    Result,
    RetentionCounts,
    Run,
    Session,
    SessionRef,
    Signal,
    Swept,
)
from limelight.stores.exit_lock import UNCUT
from limelight.stores.sqlite import memories, queries, results
from limelight.stores.sqlite.file import DatabaseFile
from limelight.stores.sqlite.health import Health
from limelight.stores.sqlite.inspection import check_place, examine, query_unopened
from limelight.stores.sqlite.journal import Journal, LiveRun
from limelight.stores.sqlite.read_limiter import Turns
from limelight.stores.sqlite.schema import touch
from limelight.stores.sqlite.snapshots import rescue
from limelight.stores.sqlite.wal_checkpoints import Checkpoints
from limelight.stores.sqlite.writer import Writer

T = TypeVar("T")
READERS = 2
PING_SECONDS = 4.0
"""How long the store may take to say that it can be written."""


class SqliteStore:
    """Keeps everything in one file."""

    def __init__(self, path: Path, *, synchronous: str = "NORMAL") -> None:
        self._file = DatabaseFile(path, synchronous)
        self._journal = Journal()
        self._checkpoints = Checkpoints()
        self._health = Health(path, self._file.trouble)
        self._writer = Writer(self._checkpoints.committed, self._health)
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="limelight-sqlite-reader")
        self._idle: queue.SimpleQueue[sqlite3.Connection] = queue.SimpleQueue()
        """The readers' connections, all made at the start: later another file might be in the place of ours."""
        self._turns = Turns()
        self._signals: asyncio.Queue[Signal] = asyncio.Queue()

    @classmethod
    def from_url(cls, url: str, data: Path) -> Self:
        """`sqlite` or `sqlite:///relative.db` or `sqlite:////absolute.db`, with `?synchronous=FULL` for power loss."""
        location, _, query = url.partition("?")
        if query.lower() not in ("", "synchronous=normal", "synchronous=full"):
            raise SetupError(f"store {url!r}: the only option is synchronous=NORMAL or synchronous=FULL")
        scheme, slashes, name = location.partition(":///")
        if scheme not in ("sqlite", "sqlite://") or (slashes and not name) or name == ":memory:":
            raise SetupError(f"store {url!r}: name a file, as in sqlite:///relative.db or sqlite:////absolute.db")
        synchronous = query.partition("=")[2].upper() or "NORMAL"
        return cls(Path(name) if name else data / "limelight.db", synchronous=synchronous)

    @property
    def file(self) -> Path:
        return self._file.path

    def check_place(self) -> None:
        check_place(self._file.path)

    async def examine(self) -> str:
        return await asyncio.to_thread(examine, self._file.path)

    async def open(self) -> None:
        db, checkpoints = await asyncio.to_thread(self._open)
        self._writer.start(db)
        self._checkpoints.start(checkpoints)

    def _open(self) -> tuple[sqlite3.Connection, sqlite3.Connection]:
        """The connections for the writer and for the checkpoints."""
        opened = [self._file.open()]
        try:
            self._journal.recover(opened[0])
            opened += (self._file.connect() for _ in range(1 + READERS))
        except (sqlite3.Error, msgspec.DecodeError) as error:
            for db in opened:
                db.close()
            self._file.release()
            raise self._file.meaning_of(error) from error
        for reader in opened[2:]:
            self._idle.put(reader)
        return opened[0], opened[1]

    async def close(self) -> None:
        await self._writer.stop()
        await asyncio.to_thread(self._checkpoints.stop)
        await asyncio.to_thread(self._readers.shutdown)
        await asyncio.to_thread(self._let_go)

    def _let_go(self) -> None:
        while not self._idle.empty():
            db = self._idle.get()
            if self._file.is_deleted and self._idle.empty():
                with UNCUT:  # which takes its time, and is all that is left of what was acknowledged
                    rescue(db, self._file.path)
            db.close()
        self._file.release()

    async def _read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        return await self._begin_read(query)

    async def _read_much(self, owner: str, query: Callable[[sqlite3.Connection], T]) -> T:
        """What may take long, and what somebody may ask for many times at once."""
        return await self._turns.read(owner, lambda: self._begin_read(query))

    async def _read_opened_or_not(self, query: Callable[[sqlite3.Connection], T], default: T) -> T:
        """Query the database, also if this object has not opened it; `default` if there is no database yet."""
        if self._writer.is_running:
            return await self._read(query)
        return await asyncio.to_thread(query_unopened, self._file.path, query, default)

    def _begin_read(self, query: Callable[[sqlite3.Connection], T]) -> "asyncio.Future[T]":
        return asyncio.get_running_loop().run_in_executor(self._readers, self._query, query)

    def _query(self, query: Callable[[sqlite3.Connection], T]) -> T:
        db = self._idle.get()
        try:
            found = query(db)
        except sqlite3.DatabaseError as error:
            self._health.could_not_read(error)
            raise StoreUnavailable(f"the database cannot be read: {error}") from error
        except (zlib.error, msgspec.DecodeError) as error:
            raise StoreCorrupt(f"a part of the log cannot be read: {error}") from error
        else:
            self._health.could_read()
            return found
        finally:
            self._idle.put(db)

    @property
    def is_failing(self) -> bool:
        return self._health.is_failing

    async def ping(self) -> None:
        try:
            async with asyncio.timeout(PING_SECONDS):
                await self._writer.do(touch)
        except TimeoutError:
            raise self._health.unanswered() from None
        self._health.raise_if_held_up()

    # sessions

    async def session(self, ref: SessionRef) -> Session | None:
        return await self._read(lambda db: queries.session(db, ref, self._journal.live))

    async def sessions(
        self, owner: str, *, q: str = "", before: tuple[int, str] | None = None, limit: int = 50
    ) -> list[Session]:
        return await self._read_much(
            owner, lambda db: queries.sessions(db, owner, q, before, limit, self._journal.live)
        )

    async def owners(self, *, after: str = "", limit: int = 50) -> list[Owner]:
        return await self._read(lambda db: queries.owners(db, after, limit))

    async def create(self, new: NewSession) -> bool:
        return await self._writer.do(lambda db: queries.create(db, new))

    async def active_sessions(self, since: int) -> int:
        return await self._read(lambda db: queries.active_sessions(db, since))

    async def rename(self, ref: SessionRef, title: str) -> bool:
        return await self._writer.do(lambda db: queries.rename(db, ref, title))

    async def delete(self, ref: SessionRef) -> bool:
        return await self._writer.do(lambda db: queries.delete(db, ref))

    async def sweep(self, before: int, limit: int = 500) -> Swept:
        return await self._writer.do(lambda db: queries.sweep(db, before, limit))

    async def newest_at(self) -> int | None:
        return await self._read_opened_or_not(queries.newest_at, default=None)

    async def retention_counts(self, before: int) -> RetentionCounts:
        nothing = RetentionCounts(sessions=0, runs=0, sessions_to_delete=0, runs_to_delete=0)
        return await self._read_opened_or_not(lambda db: queries.retention_counts(db, before), default=nothing)

    # runs and their Records

    async def begin(self, new: NewRun) -> Begun:
        def remember() -> None:
            if begun.created:
                live = LiveRun(new.run_id, session, begun.run.first_seq - 1, "running", new.lease_until, held=True)
                self._journal.live[new.run_id] = live

        def work(db: sqlite3.Connection) -> Begun:
            nonlocal begun, session
            begun, session = queries.begin(db, new, self._journal.live)
            return begun

        self._health.raise_if_held_up()
        begun: Any = None
        session = 0
        return await self._writer.do(work, remember, [new.run_id])

    async def run(self, run_id: str) -> Run | None:
        return await self._read(lambda db: queries.run(db, run_id, self._journal.live))

    async def requested(self, ref: SessionRef, request_id: str) -> Run | None:
        return await self._read(lambda db: queries.requested(db, ref, request_id, self._journal.live))

    async def run_covering(self, ref: SessionRef, seq: int) -> Run | None:
        return await self._read(lambda db: queries.run_covering(db, ref, seq, self._journal.live))

    async def runs(self, ref: SessionRef) -> list[Run]:
        return await self._read_much(ref.owner, lambda db: queries.runs(db, ref, self._journal.live))

    async def note_messages(self, run_id: str, messages: int) -> None:
        await self._writer.do(lambda db: queries.note_messages(db, run_id, messages))

    async def append(self, batch: Sequence[Append]) -> None:
        for append in batch:
            for result in append.results:
                await self._put_parts(append.run_id, result)
        apply: Callable[[], None] = _nothing

        def work(db: sqlite3.Connection) -> None:
            nonlocal apply
            apply = self._journal.write(db, batch)

        runs = [append.run_id for append in batch]
        await self._writer.do(work, lambda: apply(), runs, comes_again=runs)

    async def _put_parts(self, run_id: str, result: Result) -> None:
        """Each part of a large result in a transaction of its own, so that others' commits come in between."""

        def work(db: sqlite3.Connection, part: int) -> None:
            self._journal.held(run_id)
            results.put_part(db, run_id, result, part)

        for part in range(1, results.last_part(result) + 1):
            await self._writer.do(partial(work, part=part), comes_again=[run_id], is_last=False)

    async def records(self, ref: SessionRef, *, after: int, limit: int) -> list[Record]:
        return await self._read_much(ref.owner, lambda db: queries.records(db, ref, after, limit, self._journal.live))

    async def records_naming(self, run: Run, id_: str) -> list[Record]:
        found: list[Record] = []
        after: int | None = run.first_seq - 1
        while after is not None:  # in stretches, so that others get their turn
            work = partial(queries.records_naming, run_id=run.run_id, id_=id_, after=after, live=self._journal.live)
            some, after = await self._read_much(run.ref.owner, work)
            found += some
        return found

    async def result(self, run_id: str, key: str) -> Result | None:
        return await self._read(lambda db: results.result(db, run_id, key))

    async def put_artifact(self, artifact: Artifact, run_id: str) -> None:
        await self._writer.do(lambda db: queries.put_artifact(db, artifact, run_id), comes_again=[run_id])

    async def artifact(self, artifact_id: str) -> Artifact | None:
        return await self._read(lambda db: queries.artifact(db, artifact_id))

    # memories

    async def memory(self, ref: SessionRef, agent: str) -> Memory | None:
        return await self._read(lambda db: memories.memory(db, ref, agent))

    async def remember(self, ref: SessionRef, memory: Memory) -> None:
        await self._writer.do(lambda db: memories.remember(db, ref, memory))

    async def stale_memories(self, agents: Collection[str], limit: int = 100) -> list[Memory]:
        return await self._read(lambda db: memories.stale(db, agents, limit))

    async def drop_memory(self, key: str) -> None:
        await self._writer.do(lambda db: memories.drop(db, key))

    # leases and signals

    async def renew(self, until: int) -> None:
        def work(_: sqlite3.Connection) -> None:
            for live in self._journal.live.values():
                if live.held:
                    live.lease_until = until

        await self._writer.do(work)

    # One process has the file, so whatever this one holds is in good hands, however late it is with its renewals.

    async def orphans(self, now: int) -> list[Run]:
        ids = [r.run_id for r in list(self._journal.live.values()) if not r.held and r.lease_until <= now]
        found = [await self.run(run_id) for run_id in ids]
        return [run for run in found if run is not None]

    async def take_over(self, run_id: str, *, until: int, now: int) -> bool:
        def work(_: sqlite3.Connection) -> bool:
            live = self._journal.live.get(run_id)
            return live is not None and not live.held and live.lease_until <= now

        def hold() -> None:
            live = self._journal.live.get(run_id)
            if live is not None and not live.held and live.lease_until <= now:
                live.held, live.lease_until = True, until

        return await self._writer.do(work, hold, [run_id])

    async def signal(self, signal: Signal) -> None:
        self._signals.put_nowait(signal)

    async def signals(self) -> AsyncIterator[Signal]:
        while True:
            yield await self._signals.get()


def _nothing() -> None: ...
