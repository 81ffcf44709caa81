"""The store contract: `Store`, the base class of everything that keeps sessions, runs and records.

`runs/` and `server/` call it; `stores/sqlite/` and `stores/memory.py` implement it. A store knows no grammar, dialect
or HTTP, and it never reads a clock: every time is an argument in milliseconds. The types in its signatures are those of
`limelight.models`, exported here again for authors of stores.
"""

import asyncio
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
    Begun,
    Cancel,
    Decide,
    Memory,
    MemoryTurn,
    NewRun,
    NewSession,
    Owner,
    Result,
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
    "Begun",
    "Cancel",
    "Decide",
    "Memory",
    "MemoryTurn",
    "NewRun",
    "NewSession",
    "Owner",
    "Result",
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
"""A forced exit of the process waits for this lock. A store holds it, in the thread that does the work, only while it
writes data that would be lost with the process."""

_PAGE = 500
"""Rows that a default implementation reads at a time."""


class Store(ABC):
    """Keeps sessions, the runs in them, their records in order, complete results, artifacts and agent memories.

    It has two parts. The first has the abstract methods: what only the store can do. The second has members with
    defaults that are written in terms of the first and are correct for every store. Override a default where the
    database has a faster way or has more to report; the suite in `tests/stores/suite.py`, which every store runs,
    compares overrides with the defaults.

    A store object stands for one process: it owns the runs that it began or took over. A store that several processes
    share also overrides `signal`, `signals` and `wakes`, whose defaults stay within the process. While a store cannot
    work, it raises StoreUnavailable; if that error has `words`, the store itself logs when the problem begins and when
    it ends.
    """

    def __init__(self) -> None:
        self._signals: dict[str, dict[str, Signal]] = {}
        self._wakes: asyncio.Queue[str] = asyncio.Queue()

    # 1. The methods that a store implements

    @classmethod
    @abstractmethod
    def from_url(cls, url: str, data: Path) -> Self:
        """Make a store from `scheme://…`. `data` is the data folder, for stores that keep their files in it."""

    # Sessions

    @abstractmethod
    async def session(self, ref: SessionRef) -> Session | None: ...

    @abstractmethod
    async def sessions(
        self, owner: str, *, q: str = "", before: tuple[int, str] | None = None, limit: int = 50
    ) -> list[Session]:
        """Return sessions of an owner whose title contains `q`, ordered by `active_at` descending, then by id.

        `before` is the (active_at, session_id) of the last session of the previous page.
        """

    @abstractmethod
    async def owners(self, *, after: str = "", limit: int = 50) -> list[Owner]:
        """Return the owners of sessions in order of name, after the name `after`."""

    @abstractmethod
    async def create(self, new: NewSession) -> bool:
        """Create a session without a run. Return False, and change nothing, if it exists.

        Raises TooManySessions. Concurrent calls do not exceed the limit.
        """

    @abstractmethod
    async def rename(self, ref: SessionRef, title: str) -> bool:
        """Set the title. Return False if the session does not exist."""

    @abstractmethod
    async def delete(self, ref: SessionRef) -> bool:
        """Delete a session with everything that belongs to it. Return False if it does not exist.

        Its agent memories become stale. Raises SessionBusy while it has a live run.
        """

    # Runs

    @abstractmethod
    async def begin(self, new: NewRun) -> Begun:
        """Make a run the live run of its session, with a lease of this process. A known request id begins no run.

        Raises SessionBusy if the session has a live run, SessionNotFound if the session does not exist and must not be
        created, TooManySessions, and SessionFull. A refused run leaves no trace.
        """

    @abstractmethod
    async def run(self, run_id: str) -> Run | None: ...

    @abstractmethod
    async def runs(self, ref: SessionRef) -> list[Run]:
        """Return the runs of a session that retention has kept, oldest first."""

    # Records, results and artifacts

    @abstractmethod
    async def append(self, batch: Sequence[Append]) -> None:
        """Commit the whole batch or nothing. A run occurs in it once.

        A state in ENDED_STATES comes with the terminal record; it ends the run and frees the session. Raises LeaseLost
        for a run that this process does not own. The caller of a batch that got StoreUnavailable sends it again.
        """

    @abstractmethod
    async def records(self, ref: SessionRef, *, after: int, limit: int) -> list[Record]:
        """Return up to `limit` committed records with `seq > after`, in order. Retention leaves a gap at the front."""

    @abstractmethod
    async def result(self, run_id: str, key: str) -> Result | None: ...

    @abstractmethod
    async def put_artifact(self, artifact: Artifact, run_id: str) -> None:
        """Store a file of a run. The caller that got StoreUnavailable sends it again."""

    @abstractmethod
    async def artifact(self, artifact_id: str) -> Artifact | None: ...

    # Agent memories

    @abstractmethod
    async def memory(self, ref: SessionRef, agent: str) -> Memory | None:
        """Return the memory that was written last for this session and agent."""

    @abstractmethod
    async def remember(self, ref: SessionRef, memory: Memory) -> None:
        """Write a memory of a session. A previous one with another key becomes stale."""

    @abstractmethod
    async def stale_memories(self, agents: Collection[str], limit: int = 100) -> list[Memory]:
        """Return memories of these agents that no turn will use again: replaced, or of a deleted session."""

    @abstractmethod
    async def drop_memory(self, key: str) -> None: ...

    # Leases

    @abstractmethod
    async def renew(self, until: int) -> None:
        """Extend the leases of all runs that this process owns."""

    @abstractmethod
    async def orphans(self, now: int) -> list[Run]:
        """Return live runs whose lease has expired because their process is gone."""

    @abstractmethod
    async def take_over(self, run_id: str, *, until: int, now: int) -> bool:
        """Lease an orphan. Return False if it is not one, for example because another process took it."""

    # Retention

    @abstractmethod
    async def sweep(self, before: int, limit: int = 500) -> Swept:
        """Delete up to `limit` runs that ended before this time, and the sessions that are then empty and idle."""

    # 2. Members with defaults: opening and closing

    async def open(self) -> None:  # noqa: B027
        """Connect, migrate and repair after a crash. Raises StoreNewer, StoreCorrupt or StoreLocked."""

    async def close(self) -> None:  # noqa: B027
        """Finish queued writes and release everything. No other method is called afterwards."""

    async def ping(self) -> None:
        """Return if the store can be written, raise StoreError if not. The default only reads."""
        await self.session(SessionRef("", ""))

    @property
    def is_failing(self) -> bool:
        """Whether the store knows that it cannot be read or written now. For metrics: it does no I/O."""
        return False

    # Signals. A store that several processes share overrides the first three.

    async def signal(self, signal: Signal, *, now: int) -> SignalOutcome:
        """Store a signal for a live run, and wake the process that owns the run.

        This is a compare-and-set: a run takes one Cancel, and an approval one Decide. The outcome is `sent`;
        `duplicate` if there is such a signal already; `unowned` if the lease of the run has expired, so that no process
        would receive it; or `ended`. Nothing is stored except for `sent`.
        """
        run = await self.run(signal.run_id)
        if run is None or not run.live:
            return "ended"
        if any(orphan.run_id == run.run_id for orphan in await self.orphans(now)):
            return "unowned"
        return self._send(signal)

    async def signals(self, run_id: str) -> list[Signal]:
        """Return the signals of a live run, oldest first."""
        return list(self._signals.get(run_id, {}).values())

    async def wakes(self) -> AsyncIterator[str]:
        """Yield the ids of runs that this process owns and that have a new signal, without end."""
        while True:
            yield await self._wakes.get()

    def _send(self, signal: Signal) -> SignalOutcome:
        """Store a signal for a run that this process owns. For stores of one process."""
        signals = self._signals.setdefault(signal.run_id, {})
        if signal.key in signals:
            return "duplicate"
        signals[signal.key] = signal
        self._wakes.put_nowait(signal.run_id)
        return "sent"

    def _drop_signals(self, run_id: str) -> None:
        """Delete the signals of a run that has ended. For stores of one process."""
        self._signals.pop(run_id, None)

    # Queries

    async def requested(self, ref: SessionRef, request_id: str) -> Run | None:
        """Return the run that this request began."""
        return next((run for run in await self.runs(ref) if run.request_id == request_id != ""), None)

    async def run_covering(self, ref: SessionRef, seq: int) -> Run | None:
        """Return the first kept run of a session that is live or ends at `seq` or later."""
        return next((run for run in await self.runs(ref) if run.live or run.last_seq >= seq), None)

    async def records_naming(self, run: Run, id_: str) -> list[Record]:
        """Return the committed records of a run that have this `call_id` or `approval_id`, in order."""
        found: list[Record] = []
        after = run.first_seq - 1
        while page := await self.records(run.ref, after=after, limit=_PAGE):
            found += [record for record in page if record.run_id == run.run_id and refers_to(record, id_)]
            if page[-1].run_id != run.run_id:
                break
            after = page[-1].seq
        return found

    async def note_messages(self, run_id: str, messages: int) -> None:  # noqa: B027
        """Store the message count of an ended run as `Run.messages`. The default discards it: it is a cache."""

    async def active_sessions(self, since: int) -> int:
        """Count the sessions of all owners that have a live run or were active at or after this time."""
        return sum([s.active_at >= since or s.run_state in LIVE_STATES async for s in self._all_sessions()])

    # Tools call these on a store that is not open, or that another process has open. A store that cannot read in that
    # condition overrides `newest_at` and `retention_counts`.

    @property
    def file(self) -> Path | None:
        """The file that holds everything, for backups; None if there is no such file."""
        return None

    def check_place(self) -> None:  # noqa: B027
        """Raise StoreUnavailable if a running server has another file open than the one at `file`."""

    async def examine(self) -> str:
        """Describe the condition of a store without changing it, whether or not another process has it open.

        Raises StoreError, which says what to do.
        """
        return "not checked"

    async def newest_at(self) -> int | None:
        """Return the time of the latest activity of a session or end of a run; None if the store is empty."""
        times: list[int] = []
        async for session in self._all_sessions():
            times.append(session.active_at)
            times += [run.ended_at for run in await self.runs(session.ref) if run.ended_at is not None]
        return max(times, default=None)

    async def retention_counts(self, before: int) -> RetentionCounts:
        """Count what sweeps with this time would delete in total."""
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
        """Yield the sessions of all owners."""
        after = ""
        while owners := await self.owners(after=after, limit=_PAGE):
            for owner in owners:
                before: tuple[int, str] | None = None
                while page := await self.sessions(owner.owner, before=before, limit=_PAGE):
                    for session in page:
                        yield session
                    before = (page[-1].active_at, page[-1].ref.session_id)
            after = owners[-1].owner


# Checks that every store makes before it changes anything, with the error texts that users get


def check_not_busy(run_id: str | None, run_state: RunState | None) -> None:
    """Raise SessionBusy if the newest run of a session is live: `run_id` and `run_state` are those of that run."""
    if run_id is not None and run_state in LIVE_STATES:
        raise SessionBusy(f"run {run_id} is live in this session: stop it first, or wait for its end", run_id=run_id)


def check_session_count(sessions: int, limit: int) -> None:
    """Raise TooManySessions if an owner with so many sessions must not get another one; 0 means unlimited."""
    if limit and sessions >= limit:
        raise TooManySessions(f"you have {limit} sessions, which is the limit: delete some")


def check_session_size(size: int, limit: int) -> None:
    """Raise SessionFull if a session of this size must not get another run; 0 means unlimited."""
    if limit and size >= limit:
        raise SessionFull(f"this session has {size:,} bytes and its limit is {limit:,}: begin a new session")
