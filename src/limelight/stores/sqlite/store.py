"""The embedded store's face: the contract of `stores/base.py` over one SQLite file in the data folder.

Writes go through the writer thread, reads through two reader threads with connections of their own. The newest
Records of a live run are served from memory. One server per file: a lock file says so to a second one.
"""

import asyncio
import fcntl
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any, Self, TypeVar

from limelight.errors import SetupError, StoreCorrupt, StoreError, StoreLocked, StoreUnavailable
from limelight.events import Record
from limelight.stores.base import (
    Append,
    Artifact,
    Begun,
    NewRun,
    Result,
    Run,
    Session,
    SessionRef,
    Signal,
)
from limelight.stores.packing import unpack
from limelight.stores.sqlite import rows
from limelight.stores.sqlite.journal import Journal, LiveRun
from limelight.stores.sqlite.schema import migrate
from limelight.stores.sqlite.writer import Writer

T = TypeVar("T")
LOCK_SECONDS = 5


class SqliteStore:
    """Keeps everything in one file."""

    def __init__(self, path: Path, *, synchronous: str = "NORMAL") -> None:
        self._path = path
        self._synchronous = synchronous
        self._journal = Journal()
        self._readers = ThreadPoolExecutor(2, thread_name_prefix="limelight-sqlite-reader")
        self._local = threading.local()
        self._connections: list[sqlite3.Connection] = []
        self._signals: asyncio.Queue[Signal] = asyncio.Queue()
        self._lock: IO[str] | None = None

    @classmethod
    def from_url(cls, url: str, data: Path) -> Self:
        """`sqlite` or `sqlite:///relative.db` or `sqlite:////absolute.db`, with `?synchronous=FULL` for power loss."""
        location, _, query = url.partition("?")
        synchronous = query.removeprefix("synchronous=").upper() if query else "NORMAL"
        if synchronous not in ("NORMAL", "FULL"):
            raise SetupError(f"store {url!r}: the only option is synchronous=NORMAL or synchronous=FULL")
        name = location.removeprefix("sqlite").removeprefix("://").removeprefix("/")
        return cls(Path(name) if name else data / "limelight.db", synchronous=synchronous)

    async def open(self) -> None:
        await asyncio.to_thread(self._open)
        self._writer = Writer(self._connect)
        self._writer.start()

    def _open(self) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._take_lock()
            db = self._connect()
        except OSError as error:
            raise SetupError(
                f"the data folder {self._path.parent} cannot be written ({error.strerror}): choose another with --data"
            ) from error
        try:
            migrate(db, self._path)
            self._journal.recover(db)
        except sqlite3.OperationalError as error:
            self._release_lock()
            raise StoreLocked(f"{self._path} cannot be opened ({error}): end the program that uses it") from error
        except sqlite3.DatabaseError as error:
            self._release_lock()
            raise StoreCorrupt(
                f"{self._path} is not a readable database ({error}): restore a copy, or move it away to start afresh"
            ) from error
        except StoreError:
            self._release_lock()
            raise
        finally:
            db.close()

    def _take_lock(self) -> None:
        self._lock = self._path.with_suffix(".lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._release_lock()
            raise StoreLocked(
                f"another server uses {self._path}: end it, or choose another folder with --data"
            ) from None

    def _release_lock(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _connect(self) -> sqlite3.Connection:
        try:
            db = sqlite3.connect(self._path, timeout=LOCK_SECONDS, isolation_level=None, check_same_thread=False)
            db.execute("PRAGMA journal_mode = WAL")
            db.execute(f"PRAGMA synchronous = {self._synchronous}")
        except sqlite3.OperationalError as error:
            raise StoreLocked(f"{self._path} cannot be opened ({error}): end the program that uses it") from error
        except sqlite3.DatabaseError as error:
            raise StoreCorrupt(
                f"{self._path} is not a readable database ({error}): restore a copy, or move it away to start afresh"
            ) from error
        return db

    async def close(self) -> None:
        await self._writer.stop()
        self._readers.shutdown()
        for db in self._connections:
            db.close()
        self._release_lock()

    async def _read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._query, query)

    def _query(self, query: Callable[[sqlite3.Connection], T]) -> T:
        db: sqlite3.Connection | None = getattr(self._local, "db", None)
        try:
            if db is None:
                db = self._local.db = self._connect()
                self._connections.append(db)
            return query(db)
        except sqlite3.DatabaseError as error:
            raise StoreUnavailable(f"the database cannot be read: {error}") from error

    async def ping(self) -> None:
        await self._writer.do(lambda db: db.execute("SELECT 1").fetchone())

    # sessions

    async def session(self, ref: SessionRef) -> Session | None:
        return await self._read(lambda db: rows.session(db, ref, self._journal.live))

    async def sessions(
        self, owner: str, *, q: str = "", before: tuple[int, str] | None = None, limit: int = 50
    ) -> list[Session]:
        return await self._read(lambda db: rows.sessions(db, owner, q, before, limit, self._journal.live))

    async def rename(self, ref: SessionRef, title: str) -> bool:
        return await self._writer.do(lambda db: rows.rename(db, ref, title))

    async def delete(self, ref: SessionRef) -> bool:
        return await self._writer.do(lambda db: rows.delete(db, ref))

    async def sweep(self, before: int) -> int:
        return await self._writer.do(lambda db: rows.sweep(db, before))

    # runs and their Records

    async def begin(self, new: NewRun) -> Begun:
        def remember() -> None:
            if begun.created:
                live = LiveRun(new.run_id, session, begun.run.first_seq - 1, "running", new.lease_until, held=True)
                self._journal.live[new.run_id] = live

        def work(db: sqlite3.Connection) -> Begun:
            nonlocal begun, session
            begun, session = rows.begin(db, new, self._journal.live)
            return begun

        begun: Any = None
        session = 0
        return await self._writer.do(work, remember)

    async def run(self, run_id: str) -> Run | None:
        return await self._read(lambda db: rows.run(db, run_id, self._journal.live))

    async def run_covering(self, ref: SessionRef, seq: int) -> Run | None:
        return await self._read(lambda db: rows.run_covering(db, ref, seq, self._journal.live))

    async def append(self, batch: Sequence[Append]) -> None:
        apply: Callable[[], None] = _nothing

        def work(db: sqlite3.Connection) -> None:
            nonlocal apply
            apply = self._journal.write(db, batch)

        await self._writer.do(work, lambda: apply())

    async def records(self, ref: SessionRef, *, after: int, limit: int) -> list[Record]:
        def read(db: sqlite3.Connection) -> list[Record]:
            # The tail first: what leaves it afterwards is then found in a chunk, so nothing falls between the two.
            session, tail = rows.tail(db, ref, self._journal.live)
            found: list[Record] = []
            for (body,) in db.execute(
                "SELECT body FROM chunks WHERE session = ? AND last_seq > ? ORDER BY first_seq",
                (session, after),
            ):
                found += [record for record in unpack(body) if record.seq > after]
                if len(found) >= limit:
                    return found[:limit]
            done = found[-1].seq if found else after
            return (found + [record for record in tail if record.seq > done])[:limit]

        return await self._read(read)

    async def result(self, run_id: str, key: str) -> Result | None:
        return await self._read(lambda db: rows.result(db, run_id, key))

    async def put_artifact(self, artifact: Artifact, run_id: str) -> None:
        await self._writer.do(lambda db: rows.put_artifact(db, artifact, run_id))

    async def artifact(self, artifact_id: str) -> Artifact | None:
        return await self._read(lambda db: rows.artifact(db, artifact_id))

    # leases and signals

    async def renew(self, until: int) -> None:
        def work(_: sqlite3.Connection) -> None:
            for live in self._journal.live.values():
                if live.held:
                    live.lease_until = until

        await self._writer.do(work)

    async def orphans(self, now: int) -> list[Run]:
        ids = [r.run_id for r in list(self._journal.live.values()) if r.lease_until <= now]
        found = [await self.run(run_id) for run_id in ids]
        return [run for run in found if run is not None]

    async def take_over(self, run_id: str, *, until: int, now: int) -> bool:
        def work(_: sqlite3.Connection) -> bool:
            live = self._journal.live.get(run_id)
            if live is None or live.lease_until > now:
                return False
            live.held, live.lease_until = True, until
            return True

        return await self._writer.do(work)

    async def signal(self, signal: Signal) -> None:
        self._signals.put_nowait(signal)

    async def signals(self) -> AsyncIterator[Signal]:
        while True:
            yield await self._signals.get()


def _nothing() -> None: ...
