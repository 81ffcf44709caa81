"""The in-memory store, `memory://`: for tests and for trying things out. Everything is lost when the process exits.

It implements the complete contract of `stores/base.py`: leases, limits, busy sessions, retention and signals behave as
in the SQLite store. Several store objects can share one `MemoryDatabase`; each of them then represents one process.
"""

import asyncio
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from msgspec.structs import replace

from limelight.errors import LeaseLost, SessionNotFound, SetupError
from limelight.events import Record
from limelight.models import (
    ENDED_STATES,
    Append,
    Artifact,
    Begun,
    Memory,
    NewRun,
    NewSession,
    Owner,
    Result,
    ResultInfo,
    Run,
    Session,
    SessionRef,
    Signal,
    SignalOutcome,
    Swept,
    fault_of,
)
from limelight.stores.base import Store, check_not_busy, check_session_count, check_session_size
from limelight.stores.record_packing import pack


@dataclass(slots=True, eq=False)
class StoredRun:
    """A stored run with all its data. `holder` is the store object that owns the run; None if no process owns it."""

    run: Run
    holder: "MemoryStore | None"
    lease_until: int
    log_bytes: int = 0
    """Compressed size of the run's log, as the SQLite store counts it; 0 while the run is live."""
    records: list[Record] = field(default_factory=list[Record])
    results: dict[str, Result] = field(default_factory=dict[str, Result])
    result_versions: Counter[str] = field(default_factory=Counter[str])
    """For each key of a result, how often a result was stored under it. Readers of parts notice a replacement by it."""
    artifacts: list[Artifact] = field(default_factory=list[Artifact])
    signals: dict[str, Signal] = field(default_factory=dict[str, Signal])

    @property
    def size(self) -> int:
        bodies = [result.body for result in self.results.values()] + [artifact.body for artifact in self.artifacts]
        return self.log_bytes + sum(len(body) for body in bodies)

    def is_orphan_for(self, store: "MemoryStore", now: int) -> bool:
        return self.run.live and self.holder is not store and self.lease_until <= now


@dataclass(slots=True, eq=False)
class StoredSession:
    """A stored session with its runs, oldest first."""

    session: Session
    runs: list[StoredRun] = field(default_factory=list[StoredRun])


@dataclass(slots=True, eq=False)
class StoredMemory:
    """A stored agent memory. It is stale if it was replaced or its session was deleted."""

    ref: SessionRef
    memory: Memory
    is_stale: bool = False


class MemoryDatabase:
    """The data of one MemoryStore, or of several that share it."""

    def __init__(self) -> None:
        self.sessions: dict[SessionRef, StoredSession] = {}
        self.runs: dict[str, StoredRun] = {}
        self.memories: dict[str, StoredMemory] = {}

    def sessions_of(self, owner: str) -> list[StoredSession]:
        return [stored for ref, stored in self.sessions.items() if ref.owner == owner]

    def delete_session(self, ref: SessionRef) -> None:
        for stored in self.sessions.pop(ref).runs:
            del self.runs[stored.run.run_id]
        for memory in self.memories.values():
            memory.is_stale |= memory.ref == ref


class MemoryStore(Store):
    """A store in the memory of the process.

    Reads and `append` yield to the event loop first, as a store with I/O does. The rest of each method runs without an
    interruption, so writes are atomic.
    """

    def __init__(self, database: MemoryDatabase | None = None) -> None:
        super().__init__()
        self._database = database or MemoryDatabase()

    @classmethod
    def from_url(cls, url: str, data: Path) -> Self:
        if url.removesuffix("://") != "memory":
            raise SetupError(f"store {url!r}: the in-memory store has no options, its address is memory://")
        return cls()

    async def close(self) -> None:
        """Release the leases of this store object, so that its live runs become orphans."""
        for stored in self._database.runs.values():
            if stored.holder is self:
                stored.holder, stored.lease_until = None, 0

    async def examine(self) -> str:
        return "in memory: everything is lost when the server exits"

    # Sessions

    async def session(self, ref: SessionRef) -> Session | None:
        await asyncio.sleep(0)
        stored = self._database.sessions.get(ref)
        return None if stored is None else stored.session

    async def sessions(
        self, owner: str, *, q: str = "", before: tuple[int, str] | None = None, limit: int = 50
    ) -> list[Session]:
        await asyncio.sleep(0)
        found = [stored.session for stored in self._database.sessions_of(owner)]
        found = sorted((s for s in found if q.lower() in s.title.lower()), key=_list_order)
        if before is not None:
            found = [session for session in found if _list_order(session) > (-before[0], before[1])]
        return found[:limit]

    async def owners(self, *, after: str = "", limit: int = 50) -> list[Owner]:
        await asyncio.sleep(0)
        found: list[Owner] = []
        for name in sorted({ref.owner for ref in self._database.sessions if ref.owner > after})[:limit]:
            times = [stored.session.active_at for stored in self._database.sessions_of(name)]
            found.append(Owner(owner=name, sessions=len(times), active_at=max(times)))
        return found

    async def create(self, new: NewSession) -> bool:
        if new.ref in self._database.sessions:
            return False
        self._create(new)
        return True

    def _create(self, new: NewSession) -> StoredSession:
        check_session_count(len(self._database.sessions_of(new.ref.owner)), new.max_sessions)
        session = Session(
            ref=new.ref,
            agent=new.agent,
            title="",
            created_at=new.at,
            active_at=new.at,
            turns=0,
            last_seq=0,
            run_id=None,
            run_state=None,
            max_steps=new.max_steps,
        )
        stored = self._database.sessions[new.ref] = StoredSession(session)
        return stored

    async def rename(self, ref: SessionRef, title: str) -> bool:
        stored = self._database.sessions.get(ref)
        if stored is None:
            return False
        stored.session = replace(stored.session, title=title)
        return True

    async def delete(self, ref: SessionRef) -> bool:
        stored = self._database.sessions.get(ref)
        if stored is None:
            return False
        check_not_busy(stored.session.run_id, stored.session.run_state)
        self._database.delete_session(ref)
        return True

    # Runs

    async def begin(self, new: NewRun) -> Begun:
        stored = self._database.sessions.get(new.ref)
        size = 0
        if stored is not None:
            earlier = [s.run for s in stored.runs if s.run.request_id == new.request_id != ""]
            if earlier:
                return Begun(earlier[0], created=False)
            check_not_busy(stored.session.run_id, stored.session.run_state)
            size = sum(stored_run.size for stored_run in stored.runs)
            check_session_size(size, new.max_session_bytes)
        elif not new.create_session:
            raise SessionNotFound(f"there is no session {new.ref.session_id!r}")
        else:
            stored = self._create(new.to_session())
        session = stored.session
        run = new.to_run(turns=session.turns, last_seq=session.last_seq)
        stored.session = replace(
            session,
            agent=new.agent,
            title=session.title or new.title,
            turns=run.turn,
            active_at=new.at,
            run_id=new.run_id,
            run_state=run.state,
        )
        self._database.runs[new.run_id] = stored_run = StoredRun(run, self, new.lease_until)
        stored.runs.append(stored_run)
        return Begun(run, created=True, session_bytes=size)

    async def run(self, run_id: str) -> Run | None:
        await asyncio.sleep(0)
        stored = self._database.runs.get(run_id)
        return None if stored is None else stored.run

    async def runs(self, ref: SessionRef) -> list[Run]:
        await asyncio.sleep(0)
        stored = self._database.sessions.get(ref)
        return [] if stored is None else [stored_run.run for stored_run in stored.runs]

    async def note_messages(self, run_id: str, messages: int) -> None:
        stored = self._database.runs.get(run_id)
        if stored is not None and not stored.run.live:
            stored.run = replace(stored.run, messages=messages)

    # Records, results and artifacts

    async def append(self, batch: Sequence[Append]) -> None:
        stored_runs = [self._held(append.run_id) for append in batch]
        for append, stored in zip(batch, stored_runs, strict=True):
            self._apply(stored, append)
        await asyncio.sleep(0)

    def _held(self, run_id: str) -> StoredRun:
        stored = self._database.runs.get(run_id)
        if stored is None or stored.holder is not self:
            raise LeaseLost(f"run {run_id} is not held by this process")
        return stored

    def _apply(self, stored: StoredRun, append: Append) -> None:
        stored.records += append.records
        stored.results |= {result.key: result for result in append.results}
        stored.result_versions.update(result.key for result in append.results)
        stored_session = self._database.sessions[stored.run.ref]
        state = append.state or stored.run.state
        last_seq = append.records[-1].seq if append.records else stored.run.last_seq
        stored.run = replace(stored.run, state=state, last_seq=last_seq)
        stored_session.session = replace(stored_session.session, run_state=state, last_seq=last_seq)
        if state in ENDED_STATES:
            last = stored.records[-1]
            stored.run = replace(stored.run, ended_at=last.at, error=fault_of(last))
            stored_session.session = replace(stored_session.session, active_at=last.at)
            stored.holder, stored.log_bytes = None, len(pack(stored.records))
            stored.signals.clear()

    async def records(self, ref: SessionRef, *, after: int, limit: int) -> list[Record]:
        await asyncio.sleep(0)
        stored = self._database.sessions.get(ref)
        found: list[Record] = []
        for stored_run in stored.runs if stored is not None else ():
            start = max(0, after + 1 - stored_run.run.first_seq)
            found += stored_run.records[start : start + limit - len(found)]
        return found

    async def result(self, run_id: str, key: str) -> Result | None:
        await asyncio.sleep(0)
        stored = self._database.runs.get(run_id)
        return None if stored is None else stored.results.get(key)

    async def result_info(self, run: Run, key: str) -> ResultInfo | None:
        await asyncio.sleep(0)
        return self._result_info(run, key)

    def _result_info(self, run: Run, key: str) -> ResultInfo | None:
        stored = self._database.runs.get(run.run_id)
        result = None if stored is None else stored.results.get(key)
        if stored is None or result is None:
            return None
        version = str(stored.result_versions[key])
        return ResultInfo(key=key, media_type=result.media_type, size=len(result.body), version=version)

    async def result_part(self, run: Run, info: ResultInfo, offset: int, size: int) -> bytes | None:
        result = await self.result(run.run_id, info.key)
        if result is None or self._result_info(run, info.key) != info:
            return None
        return result.body[offset : offset + size]

    async def put_artifact(self, artifact: Artifact, run_id: str) -> None:
        stored = self._database.runs.get(run_id)
        if stored is not None:
            stored.artifacts.append(artifact)

    async def artifact(self, artifact_id: str) -> Artifact | None:
        await asyncio.sleep(0)
        artifacts = (artifact for stored in self._database.runs.values() for artifact in stored.artifacts)
        return next((artifact for artifact in artifacts if artifact.artifact_id == artifact_id), None)

    # Agent memories

    async def memory(self, ref: SessionRef, agent: str) -> Memory | None:
        await asyncio.sleep(0)
        known = (stored for stored in self._database.memories.values() if stored.ref == ref and not stored.is_stale)
        return next((stored.memory for stored in known if stored.memory.agent == agent), None)

    async def remember(self, ref: SessionRef, memory: Memory) -> None:
        for stored in self._database.memories.values():
            stored.is_stale |= stored.ref == ref and stored.memory.agent == memory.agent
        self._database.memories[memory.key] = StoredMemory(ref, replace(memory, ref=ref))

    async def stale_memories(self, agents: Collection[str], limit: int = 100) -> list[Memory]:
        await asyncio.sleep(0)
        stale = [stored.memory for stored in self._database.memories.values() if stored.is_stale]
        return [memory for memory in stale if memory.agent in agents][:limit]

    async def drop_memory(self, key: str) -> None:
        self._database.memories.pop(key, None)

    # Leases and signals

    async def renew(self, until: int) -> None:
        for stored in self._database.runs.values():
            if stored.holder is self:
                stored.lease_until = until

    async def orphans(self, now: int) -> list[Run]:
        await asyncio.sleep(0)
        return [stored.run for stored in self._database.runs.values() if stored.is_orphan_for(self, now)]

    async def take_over(self, run_id: str, *, until: int, now: int) -> bool:
        stored = self._database.runs.get(run_id)
        if stored is None or not stored.is_orphan_for(self, now):
            return False
        stored.holder, stored.lease_until = self, until
        return True

    async def signal(self, signal: Signal, *, now: int) -> SignalOutcome:
        await asyncio.sleep(0)
        stored = self._database.runs.get(signal.run_id)
        if stored is None or not stored.run.live:
            return "ended"
        if stored.holder is None or stored.is_orphan_for(self, now):
            return "unowned"
        if signal.key in stored.signals:
            return "duplicate"
        stored.signals[signal.key] = signal
        stored.holder._wakes.put_nowait(signal.run_id)
        return "sent"

    async def signals(self, run_id: str) -> list[Signal]:
        await asyncio.sleep(0)
        stored = self._database.runs.get(run_id)
        return [] if stored is None else list(stored.signals.values())

    # Retention

    async def sweep(self, before: int, limit: int = 500) -> Swept:
        ends = [(stored.run.ended_at, stored) for stored in self._database.runs.values()]
        old = [stored for ended_at, stored in ends if ended_at is not None and ended_at < before][:limit]
        for stored in old:
            self._database.sessions[stored.run.ref].runs.remove(stored)
            del self._database.runs[stored.run.run_id]
        sessions = self._database.sessions.items()
        empty = [ref for ref, stored in sessions if not stored.runs and stored.session.active_at < before]
        for ref in empty:
            self._database.delete_session(ref)
        return Swept(len(old), empty)


def _list_order(session: Session) -> tuple[int, str]:
    """Return the sort key of a session in lists: last active first; equally old sessions are ordered by id."""
    return -session.active_at, session.ref.session_id
