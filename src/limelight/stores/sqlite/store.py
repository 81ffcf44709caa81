"""The SQLite store: implements the contract of `stores/base.py` with one database file, for one server process.

Writes go through the writer thread, reads through two reader threads, each with its own connection. The newest records
of a live run are read from memory. Reads that may take long are limited to one at a time for each owner.
"""

import asyncio
import queue
import sqlite3
import zlib
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Self, TypeVar

import msgspec

from limelight.errors import SetupError, StoreCorrupt, StoreUnavailable
from limelight.events import Record
from limelight.models import (
    ENDED_STATES,
    Append,
    Artifact,
    ArtifactInfo,
    Begun,
    Memory,
    NewRun,
    NewSession,
    Owner,
    Result,
    ResultInfo,
    RetentionCounts,
    Run,
    Session,
    SessionRef,
    Signal,
    SignalOutcome,
    Swept,
)
from limelight.stores.base import EXIT_LOCK, Store
from limelight.stores.sqlite import large_values, queries
from limelight.stores.sqlite.database_file import DatabaseFile
from limelight.stores.sqlite.faults import Health
from limelight.stores.sqlite.integrity_check import IntegrityCheck
from limelight.stores.sqlite.journal import Journal, LiveState, last_part, last_results, put_part
from limelight.stores.sqlite.read_limiter import ReadLimiter
from limelight.stores.sqlite.read_only_inspection import check_place, examine, query_unopened
from limelight.stores.sqlite.schema import touch
from limelight.stores.sqlite.snapshots import rescue_deleted
from limelight.stores.sqlite.wal_checkpoints import Checkpoints
from limelight.stores.sqlite.writer_thread import Writer

T = TypeVar("T")
READERS = 2
PING_SECONDS = 4.0
"""How long `ping` waits for a commit."""


class SqliteStore(Store):
    """A store in one SQLite file, which only one process can open at a time."""

    def __init__(self, path: Path, *, synchronous: str = "NORMAL") -> None:
        super().__init__()
        self._file = DatabaseFile(path, synchronous)
        self._journal = Journal()
        self._checkpoints = Checkpoints()
        self._health = Health(path, self._file.fault)
        self._integrity_check = IntegrityCheck(self._health.damage_found)
        self._writer = Writer(self._checkpoints.committed, self._health)
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="limelight-sqlite-reader")
        self._idle: queue.SimpleQueue[sqlite3.Connection] = queue.SimpleQueue()
        """Idle connections of the reader threads. All are opened at the start: the file may be replaced later."""
        self._read_limiter = ReadLimiter()

    @classmethod
    def from_url(cls, url: str, data: Path) -> Self:
        """Return the store for `sqlite` (in the data folder), `sqlite:///relative.db` or `sqlite:////absolute.db`.

        Each may end in `?synchronous=NORMAL` or `?synchronous=FULL`. Raises SetupError for other URLs.
        """
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
        db, checkpoints, check = await asyncio.to_thread(self._open)
        self._writer.start(db)
        self._checkpoints.start(checkpoints)
        self._integrity_check.start(check)

    def _open(self) -> list[sqlite3.Connection]:
        """Open the database file and all connections to it, and load live runs into memory.

        Return the connections of the writer, the checkpoints and the integrity check.
        """
        connections = [self._file.open()]
        try:
            self._journal.recover(connections[0])
            connections += (self._file.connect() for _ in range(2 + READERS))
        except (sqlite3.Error, msgspec.DecodeError) as error:
            for db in connections:
                db.close()
            self._file.release()
            raise self._file.open_error(error) from error
        for reader in connections[3:]:
            self._idle.put(reader)
        return connections[:3]

    async def close(self) -> None:
        await self._writer.stop()
        await asyncio.to_thread(self._checkpoints.stop)
        await asyncio.to_thread(self._integrity_check.stop)
        await asyncio.to_thread(self._readers.shutdown)
        await asyncio.to_thread(self._release)

    def _release(self) -> None:
        while not self._idle.empty():
            db = self._idle.get()
            if self._file.is_deleted and self._idle.empty():
                with EXIT_LOCK:  # a forced exit must wait: committed data is lost without this copy
                    rescue_deleted(db, self._file.path)
            db.close()
        self._file.release()

    def _read(self, query: Callable[[sqlite3.Connection], T]) -> "asyncio.Future[T]":
        return asyncio.get_running_loop().run_in_executor(self._readers, self._query, query)

    async def _read_limited(self, owner: str, query: Callable[[sqlite3.Connection], T]) -> T:
        """Run a query after the owner's previous one. For queries that take long or that clients may repeat."""
        return await self._read_limiter.read(owner, lambda: self._read(query))

    async def _read_unopened(self, query: Callable[[sqlite3.Connection], T], default: T) -> T:
        """Run a query, even if this store is not open. Return `default` if the database does not exist."""
        if self._writer.is_running:
            return await self._read(query)
        return await asyncio.to_thread(query_unopened, self._file.path, query, default)

    def _query(self, query: Callable[[sqlite3.Connection], T]) -> T:
        db = self._idle.get()
        try:
            found = query(db)
        except sqlite3.DatabaseError as error:
            self._health.read_failed(error)
            raise StoreUnavailable(f"the database cannot be read: {error}") from error
        except (zlib.error, msgspec.DecodeError) as error:
            raise StoreCorrupt(f"a part of the log cannot be read: {error}") from error
        else:
            self._health.read_succeeded()
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
            raise self._health.timeout_error() from None
        self._health.raise_if_blocked()

    # Sessions and retention

    async def session(self, ref: SessionRef) -> Session | None:
        return await self._read(lambda db: queries.session(db, ref, self._journal.live))

    async def sessions(
        self, owner: str, *, q: str = "", before: tuple[int, str] | None = None, limit: int = 50
    ) -> list[Session]:
        return await self._read_limited(
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
        return await self._read_unopened(queries.newest_at, default=None)

    async def retention_counts(self, before: int) -> RetentionCounts:
        nothing = RetentionCounts(sessions=0, runs=0, sessions_to_delete=0, runs_to_delete=0)
        return await self._read_unopened(lambda db: queries.retention_counts(db, before), default=nothing)

    # Runs and records

    async def begin(self, new: NewRun) -> Begun:
        def add_live(outcome: tuple[Begun, int]) -> None:
            begun, session = outcome
            if begun.created:
                live = LiveState(new.run_id, session, begun.run.first_seq - 1, "running", new.lease_until, held=True)
                self._journal.live[new.run_id] = live

        self._health.raise_if_blocked()
        begun, _ = await self._writer.do(lambda db: queries.begin(db, new, self._journal.live), add_live, [new.run_id])
        return begun

    async def run(self, run_id: str) -> Run | None:
        return await self._read(lambda db: queries.run(db, run_id, self._journal.live))

    async def requested(self, ref: SessionRef, request_id: str) -> Run | None:
        return await self._read(lambda db: queries.requested(db, ref, request_id, self._journal.live))

    async def run_covering(self, ref: SessionRef, seq: int) -> Run | None:
        return await self._read(lambda db: queries.run_covering(db, ref, seq, self._journal.live))

    async def runs(self, ref: SessionRef) -> list[Run]:
        return await self._read_limited(ref.owner, lambda db: queries.runs(db, ref, self._journal.live))

    async def note_messages(self, run_id: str, messages: int) -> None:
        await self._writer.do(lambda db: queries.note_messages(db, run_id, messages))

    async def append(self, batch: Sequence[Append]) -> None:
        for append in batch:
            for result in last_results(append.results):
                await self._put_parts(append.run_id, result)
        runs = [append.run_id for append in batch]
        await self._writer.do(lambda db: self._journal.write(db, batch), lambda apply: apply(), runs, retried_by=runs)
        for append in batch:
            if append.state in ENDED_STATES:
                self._drop_signals(append.run_id)

    async def _put_parts(self, run_id: str, result: Result) -> None:
        """Write the parts 1, 2, … of a large result, each in its own transaction, so that other commits need not wait.

        `append` then writes part 0, which makes the result readable.
        """

        def work(db: sqlite3.Connection, part: int) -> None:
            self._journal.held(run_id)
            put_part(db, run_id, result, part)

        for part in range(1, last_part(result.body) + 1):
            await self._writer.do(partial(work, part=part), retried_by=[run_id], is_last=False)

    async def records(self, ref: SessionRef, *, after: int, limit: int) -> list[Record]:
        return await self._read_limited(
            ref.owner, lambda db: queries.records(db, ref, after, limit, self._journal.live)
        )

    async def records_naming(self, run: Run, id_: str) -> list[Record]:
        found: list[Record] = []
        after: int | None = run.first_seq - 1
        while after is not None:  # several short reads, so that other reads need not wait
            work = partial(queries.records_naming, run_id=run.run_id, id_=id_, after=after, live=self._journal.live)
            more, after = await self._read_limited(run.ref.owner, work)
            found += more
        return found

    async def result(self, run_id: str, key: str) -> Result | None:
        return await self._read(lambda db: queries.result(db, run_id, key))

    async def result_info(self, run: Run, key: str) -> ResultInfo | None:
        return await self._read(lambda db: large_values.result_info(db, run.run_id, key))

    async def result_part(self, run: Run, info: ResultInfo, offset: int, size: int) -> bytes | None:
        work = partial(large_values.result_part, run_id=run.run_id, info=info, offset=offset, size=size)
        return await self._read_limited(run.ref.owner, work)

    async def put_artifact(self, artifact: Artifact, run_id: str) -> None:
        work = large_values.put_artifact_part
        for part in range(1, last_part(artifact.body) + 1):  # each in its own transaction, as the parts of results
            await self._writer.do(
                partial(work, artifact=artifact, run_id=run_id, part=part), retried_by=[run_id], is_last=False
            )
        await self._writer.do(lambda db: large_values.put_artifact(db, artifact, run_id), retried_by=[run_id])

    async def artifact(self, artifact_id: str) -> Artifact | None:
        return await self._read(lambda db: large_values.artifact(db, artifact_id))

    async def artifact_info(self, artifact_id: str) -> ArtifactInfo | None:
        return await self._read(lambda db: large_values.artifact_info(db, artifact_id))

    async def artifact_part(self, info: ArtifactInfo, offset: int, size: int) -> bytes | None:
        work = partial(large_values.artifact_part, artifact_id=info.artifact_id, offset=offset, size=size)
        return await self._read_limited(info.ref.owner, work)

    # Agent memories

    async def memory(self, ref: SessionRef, agent: str) -> Memory | None:
        return await self._read(lambda db: queries.memory(db, ref, agent))

    async def remember(self, ref: SessionRef, memory: Memory) -> None:
        await self._writer.do(lambda db: queries.remember(db, ref, memory))

    async def stale_memories(self, agents: Collection[str], limit: int = 100) -> list[Memory]:
        return await self._read(lambda db: queries.stale_memories(db, agents, limit))

    async def drop_memory(self, key: str) -> None:
        await self._writer.do(lambda db: queries.drop_memory(db, key))

    # Leases. Only this process uses the file, so a run that it owns is never an orphan, even if its lease has expired.

    async def renew(self, until: int) -> None:
        def work(_: sqlite3.Connection) -> None:
            for live in self._journal.live.values():
                if live.held:
                    live.lease_until = until

        await self._writer.do(work)

    async def orphans(self, now: int) -> list[Run]:
        ids = [live.run_id for live in list(self._journal.live.values()) if _is_orphan(live, now)]
        found = [await self.run(run_id) for run_id in ids]
        return [run for run in found if run is not None]

    async def take_over(self, run_id: str, *, until: int, now: int) -> bool:
        def work(_: sqlite3.Connection) -> bool:
            live = self._journal.live.get(run_id)
            return live is not None and _is_orphan(live, now)

        def hold(is_orphan: bool) -> None:
            if is_orphan:
                live = self._journal.live[run_id]
                live.held, live.lease_until = True, until

        return await self._writer.do(work, hold, [run_id])

    async def signal(self, signal: Signal, *, now: int) -> SignalOutcome:
        """Store a signal for a live run, in memory only, so that it works while the database cannot be read."""
        live = self._journal.live.get(signal.run_id)
        if live is None:
            return "ended"
        return "unowned" if _is_orphan(live, now) else self._send(signal)


def _is_orphan(live: LiveState, now: int) -> bool:
    return not live.held and live.lease_until <= now
