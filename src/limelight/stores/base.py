"""The store contract: `Store`, the base class of all stores of sessions, runs and records.

`runs/` and `server/` call it; `stores/sqlite/` and `stores/memory.py` implement it. A store knows no grammar, dialect
or HTTP, and it never reads a clock: every time is an argument in milliseconds. The types in its signatures are those of
`limelight.models`, exported here again for authors of stores.
"""

import asyncio
import hashlib
import threading
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Collection, Sequence
from pathlib import Path
from typing import Self

from limelight.errors import SessionBusy, SessionFull, TooManySessions
from limelight.events import Record
from limelight.models import (
    ENDED_STATES,
    LIVE_STATES,
    LOCAL_OWNER,
    Append,
    Artifact,
    ArtifactInfo,
    Begun,
    Cancel,
    Decide,
    Memory,
    MemoryTurn,
    NewRun,
    NewSession,
    Owner,
    Result,
    ResultInfo,
    RetentionCounts,
    Run,
    RunFault,
    RunState,
    Session,
    SessionRef,
    Signal,
    SignalOutcome,
    Swept,
    fault_of,
    refers_to,
)

__all__ = [
    "ENDED_STATES",
    "EXIT_LOCK",
    "LIVE_STATES",
    "LOCAL_OWNER",
    "Append",
    "Artifact",
    "ArtifactInfo",
    "Begun",
    "Cancel",
    "Decide",
    "Memory",
    "MemoryTurn",
    "NewRun",
    "NewSession",
    "Owner",
    "Result",
    "ResultInfo",
    "RetentionCounts",
    "Run",
    "RunFault",
    "RunState",
    "Session",
    "SessionRef",
    "Signal",
    "SignalOutcome",
    "Store",
    "Swept",
    "check_not_busy",
    "check_session_count",
    "check_session_size",
    "fault_of",
    "refers_to",
]

EXIT_LOCK = threading.RLock()
"""A lock that a forced exit of the process waits for. A store holds it while it writes data that would be lost with the
process."""

_PAGE = 500
"""Number of rows that one read of a default implementation returns."""


class Store(ABC):
    """The base class of stores of sessions, runs, records, results, artifacts and agent memories.

    A store implements the abstract methods. The other methods have defaults that call them, which are correct for every
    store that serves one process. Override a default if the database has a faster way or more to report. The tests in
    `tests/stores/suite.py`, which every store has to pass, compare overrides with the defaults.

    A store object represents one process, which owns the runs that it began or took over. A store that several
    processes share also overrides `signal`, `signals` and `wakes`, whose defaults do not leave the process. A store
    that cannot work raises StoreUnavailable. If that error has `words`, the store logs when the fault begins and ends.
    """

    def __init__(self) -> None:
        self._signals: dict[str, dict[str, Signal]] = {}
        self._wakes: asyncio.Queue[str] = asyncio.Queue()

    # 1. The methods that a store implements

    @classmethod
    @abstractmethod
    def from_url(cls, url: str, data: Path) -> Self:
        """Return the store for a URL, `scheme://…`. `data` is the data folder, for stores with local files."""

    # Sessions

    @abstractmethod
    async def session(self, ref: SessionRef) -> Session | None: ...

    @abstractmethod
    async def sessions(
        self, owner: str, *, q: str = "", before: tuple[int, str] | None = None, limit: int = 50
    ) -> list[Session]:
        """Return a page of the owner's sessions with `q` in the title, ordered by `active_at` descending, then by id.

        `before` is the (active_at, session_id) of the last session of the previous page.
        """

    @abstractmethod
    async def owners(self, *, after: str = "", limit: int = 50) -> list[Owner]:
        """Return a page of the owners of sessions, ordered by name. The page starts after the name `after`."""

    @abstractmethod
    async def create(self, new: NewSession) -> bool:
        """Create a session without a run. Return False if the session already exists; it is not changed then.

        Raises TooManySessions if the owner has reached the session limit, also by concurrent calls.
        """

    @abstractmethod
    async def rename(self, ref: SessionRef, title: str) -> bool:
        """Set the title of a session. Return False if the session does not exist."""

    @abstractmethod
    async def delete(self, ref: SessionRef) -> bool:
        """Delete a session with its runs, records, results and artifacts. Return False if it does not exist.

        The agent memories of the session become stale. Raises SessionBusy if the session has a live run.
        """

    # Runs

    @abstractmethod
    async def begin(self, new: NewRun) -> Begun:
        """Create a live run that this process owns. If a run with the same request id exists, return that run instead.

        Raises SessionBusy if the session has a live run, SessionNotFound if the session does not exist and must not be
        created, TooManySessions, and SessionFull. An error means that nothing was changed.
        """

    @abstractmethod
    async def run(self, run_id: str) -> Run | None: ...

    @abstractmethod
    async def runs(self, ref: SessionRef) -> list[Run]:
        """Return the runs of a session, oldest first. Runs that retention has deleted are missing."""

    # Records, results and artifacts

    @abstractmethod
    async def append(self, batch: Sequence[Append]) -> None:
        """Commit the records, results and state changes of several runs in one transaction.

        `batch` has at most one entry for each run. A state in ENDED_STATES comes with the terminal record; it ends the
        run and frees the session. Raises LeaseLost if this process does not own one of the runs. After
        StoreUnavailable, the caller sends the same batch again.
        """

    @abstractmethod
    async def records(self, ref: SessionRef, *, after: int, limit: int) -> list[Record]:
        """Return up to `limit` committed records of a session with `seq > after`, in order; without deleted records."""

    @abstractmethod
    async def result(self, run_id: str, key: str) -> Result | None: ...

    @abstractmethod
    async def put_artifact(self, artifact: Artifact, run_id: str) -> None:
        """Store a file of a run. After StoreUnavailable, the caller sends the same file again."""

    @abstractmethod
    async def artifact(self, artifact_id: str) -> Artifact | None: ...

    # Agent memories

    @abstractmethod
    async def memory(self, ref: SessionRef, agent: str) -> Memory | None:
        """Return the newest memory of an agent in a session; None if there is none."""

    @abstractmethod
    async def remember(self, ref: SessionRef, memory: Memory) -> None:
        """Store which conversation an agent continues in a session. Its memories with other keys become stale."""

    @abstractmethod
    async def stale_memories(self, agents: Collection[str], limit: int = 100) -> list[Memory]:
        """Return the stale memories of these agents: those that were replaced, and those of deleted sessions.

        The `ref` of each is its session, even if that was deleted.
        """

    @abstractmethod
    async def drop_memory(self, key: str) -> None: ...

    # Leases

    @abstractmethod
    async def renew(self, until: int) -> None:
        """Extend the leases of all runs that this process owns to this time."""

    @abstractmethod
    async def orphans(self, now: int) -> list[Run]:
        """Return the orphans: the live runs whose lease has expired, because the process that owned them has ended."""

    @abstractmethod
    async def take_over(self, run_id: str, *, until: int, now: int) -> bool:
        """Make this process the owner of an orphan. Return False if the run has ended or its lease is not expired."""

    # Retention

    @abstractmethod
    async def sweep(self, before: int, limit: int = 500) -> Swept:
        """Apply the retention: delete up to `limit` runs that ended before a time, and old sessions without runs."""

    # 2. Members with defaults: opening and closing

    async def open(self) -> None:  # noqa: B027
        """Open the store: connect, migrate the data, and repair it after a crash.

        Raises StoreNewer, StoreCorrupt or StoreLocked.
        """

    async def close(self) -> None:  # noqa: B027
        """Close the store: finish queued writes, and release connections and locks. It is not used afterwards."""

    async def ping(self) -> None:
        """Raise StoreError if the store cannot be written. The default only tests that it can be read."""
        await self.session(SessionRef("", ""))

    @property
    def is_failing(self) -> bool:
        """Whether reads or writes of the store are failing now, for metrics. Does no I/O."""
        return False

    # Signals. A store that several processes share overrides `signal`, `signals` and `wakes`.

    async def signal(self, signal: Signal, *, now: int) -> SignalOutcome:
        """Store a signal for a live run, and wake the process that owns the run. Return the outcome.

        - `sent`: the signal is stored.
        - `duplicate`: the run already has a signal with the same key. This is a compare-and-set.
        - `unowned`: the lease of the run has expired, so no process would receive the signal.
        - `ended`: the run is not live.
        """
        run = await self.run(signal.run_id)
        if run is None or not run.live:
            return "ended"
        if any(orphan.run_id == run.run_id for orphan in await self.orphans(now)):
            return "unowned"
        return self._send(signal)

    async def signals(self, run_id: str) -> list[Signal]:
        """Return the signals that are stored for a live run, oldest first."""
        return list(self._signals.get(run_id, {}).values())

    async def wakes(self) -> AsyncIterator[str]:
        """Yield the run id of each signal to a run of this process, as it arrives. Never ends."""
        while True:
            yield await self._wakes.get()

    def _send(self, signal: Signal) -> SignalOutcome:
        """Store a signal in memory, unless its run has one with the same key, and wake the run. Return the outcome.

        Stores that serve one process use this for `signal`.
        """
        signals = self._signals.setdefault(signal.run_id, {})
        if signal.key in signals:
            return "duplicate"
        signals[signal.key] = signal
        self._wakes.put_nowait(signal.run_id)
        return "sent"

    def _drop_signals(self, run_id: str) -> None:
        """Delete the signals in memory of a run that has ended. For stores that serve one process."""
        self._signals.pop(run_id, None)

    # Queries

    async def requested(self, ref: SessionRef, request_id: str) -> Run | None:
        """Return the run of a session that was begun by the request with this request id; None if there is none."""
        return next((run for run in await self.runs(ref) if run.request_id == request_id != ""), None)

    async def run_covering(self, ref: SessionRef, seq: int) -> Run | None:
        """Return the first run of a session that is live or ends at Record `seq` or later; None if there is none."""
        return next((run for run in await self.runs(ref) if run.live or run.last_seq >= seq), None)

    async def records_naming(self, run: Run, id_: str) -> list[Record]:
        """Return the committed records of a run that have this id as their `call_id` or `approval_id`, in order."""
        found: list[Record] = []
        after = run.first_seq - 1
        while page := await self.records(run.ref, after=after, limit=_PAGE):
            found += [record for record in page if record.run_id == run.run_id and refers_to(record, id_)]
            if page[-1].run_id != run.run_id:
                break
            after = page[-1].seq
        return found

    # Parts of large values. The defaults read the complete value for each part.

    async def result_info(self, run: Run, key: str) -> ResultInfo | None:
        """Return the media type and the size of a result; None if there is none."""
        result = await self.result(run.run_id, key)
        return None if result is None else _result_info(result)

    async def result_part(self, run: Run, info: ResultInfo, offset: int, size: int) -> bytes | None:
        """Return up to `size` bytes of a result from `offset` on; None if it was deleted or replaced since `info`.

        Reads of one user must not delay those of others. The store keeps no lock or transaction between two calls.
        """
        result = await self.result(run.run_id, info.key)
        return None if result is None or _result_info(result) != info else result.body[offset : offset + size]

    async def artifact_info(self, artifact_id: str) -> ArtifactInfo | None:
        """Return the name, the media type and the size of a file; None if there is none."""
        artifact = await self.artifact(artifact_id)
        if artifact is None:
            return None
        return ArtifactInfo(
            artifact_id=artifact.artifact_id,
            ref=artifact.ref,
            name=artifact.name,
            media_type=artifact.media_type,
            size=len(artifact.body),
        )

    async def artifact_part(self, info: ArtifactInfo, offset: int, size: int) -> bytes | None:
        """Return up to `size` bytes of a file from `offset` on; None if the file was deleted."""
        artifact = await self.artifact(info.artifact_id)
        return None if artifact is None else artifact.body[offset : offset + size]

    async def note_messages(self, run_id: str, messages: int) -> None:  # noqa: B027
        """Store the message count of an ended run as `Run.messages`. The default does nothing."""

    async def active_sessions(self, since: int) -> int:
        """Return the number of sessions, of all owners, that have a live run or were active at or after this time."""
        return sum([s.active_at >= since or s.run_state in LIVE_STATES async for s in self._all_sessions()])

    # Inspection. Command-line tools use these members while the store is not open, or is open in another process. A
    # store whose other methods work only after `open` overrides `newest_at` and `retention_counts`.

    @property
    def file(self) -> Path | None:
        """The file that contains all data of the store, for backups; None if there is no such file."""
        return None

    def check_place(self) -> None:  # noqa: B027
        """Raise StoreUnavailable if a running server has opened another file than the one at the path of this store.

        Tools call this before they open the file.
        """

    async def examine(self) -> str:
        """Return a description of the store's condition, without changing the store. Another process may have it open.

        Raises StoreError, with advice, if the store cannot be used.
        """
        return "not checked"

    async def newest_at(self) -> int | None:
        """Return the latest time at which a session was active or a run ended; None if the store is empty."""
        times: list[int] = []
        async for session in self._all_sessions():
            times.append(session.active_at)
            times += [run.ended_at for run in await self.runs(session.ref) if run.ended_at is not None]
        return max(times, default=None)

    async def retention_counts(self, before: int) -> RetentionCounts:
        """Count all sessions and runs, and those that the retention would delete: older than the time `before`."""
        sessions = runs = sessions_to_delete = runs_to_delete = 0
        async for session in self._all_sessions():
            kept = await self.runs(session.ref)
            ended = [run for run in kept if run.ended_at is not None and run.ended_at < before]
            sessions += 1
            runs += len(kept)
            runs_to_delete += len(ended)
            sessions_to_delete += session.active_at < before and len(ended) == len(kept)
        return RetentionCounts(
            sessions=sessions, runs=runs, sessions_to_delete=sessions_to_delete, runs_to_delete=runs_to_delete
        )

    async def _all_sessions(self) -> AsyncIterator[Session]:
        """Yield the sessions of all owners, read in pages."""
        after = ""
        while owners := await self.owners(after=after, limit=_PAGE):
            for owner in owners:
                before: tuple[int, str] | None = None
                while page := await self.sessions(owner.owner, before=before, limit=_PAGE):
                    for session in page:
                        yield session
                    before = (page[-1].active_at, page[-1].ref.session_id)
            after = owners[-1].owner


def _result_info(result: Result) -> ResultInfo:
    version = hashlib.sha256(result.body).hexdigest()
    return ResultInfo(key=result.key, media_type=result.media_type, size=len(result.body), version=version)


# Checks that every store makes before it changes anything, with the error texts that users get


def check_not_busy(run_id: str | None, run_state: RunState | None) -> None:
    """Raise SessionBusy if the newest run of a session, which has this id and state, is live."""
    if run_id is not None and run_state in LIVE_STATES:
        raise SessionBusy(f"run {run_id} is live in this session: stop it first, or wait for its end", run_id=run_id)


def check_session_count(sessions: int, limit: int) -> None:
    """Raise TooManySessions if an owner with this number of sessions has reached the limit; 0 means unlimited."""
    if limit and sessions >= limit:
        raise TooManySessions(f"you have {limit} sessions, which is the limit: delete some")


def check_session_size(size: int, limit: int) -> None:
    """Raise SessionFull if a session of `size` bytes has reached the size limit; 0 means unlimited."""
    if limit and size >= limit:
        raise SessionFull(f"this session has {size:,} bytes and its limit is {limit:,}: begin a new session")
