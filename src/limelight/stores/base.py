"""What a store must do, so that the rest of Limelight need not know which one it has.

A store keeps sessions, the runs in them, their Records in order, whole tool results, and artifacts. It hands out
leases on runs and carries signals to whichever process holds one, so that a store for many machines is one more file.
It must not know grammar, dialects or HTTP, and it never reads a clock: every time is given to it in milliseconds.
`runs/` calls it.
"""

from collections.abc import AsyncIterator, Collection, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, Self

import msgspec

from limelight.events import Decision, Record, RunFailed

RunState = Literal["queued", "running", "waiting", "finished", "failed", "cancelled"]
ENDED_STATES: frozenset[RunState] = frozenset({"finished", "failed", "cancelled"})
LIVE_STATES: frozenset[RunState] = frozenset({"running", "waiting"})


LOCAL_OWNER = "local"
"""Who owns what is done without a key, or with a key and no name."""


class SessionRef(NamedTuple):
    """Names a session: ids are unique per owner."""

    owner: str
    session_id: str


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation as the store knows it. `run_state` is that of its newest run, None before the first."""

    ref: SessionRef
    agent: str
    title: str
    created_at: int
    active_at: int
    turns: int
    last_seq: int
    run_id: str | None
    run_state: RunState | None
    max_steps: int | None = None
    """What its maker asked for, in place of the agent's own."""


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who has sessions: how many, and when one of them was active last."""

    owner: str
    sessions: int
    active_at: int


class NewSession(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation that nobody has said anything in yet."""

    ref: SessionRef
    agent: str
    at: int
    max_steps: int | None = None
    sessions_max: int = 0
    """The most sessions that its owner may have; 0 if nobody minds."""


class RunFault(msgspec.Struct, frozen=True):
    """Why a run failed, as its terminal event says."""

    code: str
    message: str
    error_id: str = ""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One turn. Its Records are `first_seq` … `last_seq` of its session."""

    run_id: str
    ref: SessionRef
    agent: str
    turn: int
    state: RunState
    started_at: int
    ended_at: int | None
    first_seq: int
    last_seq: int
    request_id: str = ""
    error: RunFault | None = None
    messages: int | None = None
    """How many whole messages it has, once it has ended and somebody has counted them."""

    @property
    def live(self) -> bool:
        return self.state in LIVE_STATES


class NewRun(msgspec.Struct, frozen=True, kw_only=True):
    """What `begin` needs. A session that does not exist yet is made; the title is for one that has none."""

    run_id: str
    ref: SessionRef
    agent: str
    title: str
    at: int
    lease_until: int
    request_id: str = ""
    makes_session: bool = True
    """False: the session has to be there."""
    session_max: int = 0
    """The most bytes that its session may have already; 0 if nobody minds."""
    sessions_max: int = 0
    """The most sessions that its owner may have; 0 if nobody minds."""


class Begun(msgspec.Struct, frozen=True):
    """The answer of `begin`: `created` is false if the same request_id has a run already, which is then this one."""

    run: Run
    created: bool
    session_bytes: int = 0
    """How much is kept of the session, as the store measures it."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """A value that is too large for the log, kept whole: `key` is a call id with what it is of that call."""

    key: str
    media_type: str
    body: bytes


class Append(msgspec.Struct, kw_only=True):
    """One run's part of a commit. `state` is set when the run's state changes with these Records."""

    run_id: str
    records: Sequence[Record]
    results: Sequence[Result] = ()
    state: RunState | None = None


class Artifact(msgspec.Struct, frozen=True, kw_only=True):
    """A file that an agent made or a user sent."""

    artifact_id: str
    ref: SessionRef
    name: str
    media_type: str
    body: bytes


class Swept(msgspec.Struct, frozen=True):
    """What a sweep has removed: how many runs, and which sessions."""

    runs: int
    sessions: list[SessionRef]


class RetentionCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How many sessions and runs there are, and how many of them a sweep would remove."""

    sessions: int
    runs: int
    sessions_to_delete: int
    runs_to_delete: int


class MemoryTurn(msgspec.Struct, frozen=True):
    """One turn that an agent's memory has seen: what was asked, as a hash, and the run."""

    asked: str
    run_id: str


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent keeps of a session, under a key of the framework's own storage, and which turns are in it."""

    key: str
    agent: str
    turns: tuple[MemoryTurn, ...] = ()


class Cancel(msgspec.Struct, frozen=True, tag="cancel"):
    """Stop this run."""

    run_id: str
    reason: str
    by: str = ""


class Decide(msgspec.Struct, frozen=True, tag="decide"):
    """A person's word on an approval."""

    run_id: str
    approval_id: str
    decision: Decision
    args: dict[str, Any] | None = None
    reason: str = ""
    by: str = ""


Signal = Cancel | Decide


class Store(Protocol):
    """The contract; its test-suite is `tests/stores/suite.py`, which every store runs.

    A store object stands for one process: the runs that it began or took over are the ones that it holds. While it
    fails it raises StoreUnavailable; if that has `words`, the store says in the log when it begins and when it ends.
    """

    @classmethod
    def from_url(cls, url: str, data: Path) -> Self:
        """Make a store from `scheme://…`; `data` is the data folder for stores that live in it."""
        ...

    @property
    def file(self) -> Path | None:
        """The file that everything is in, for backups; None if there is no such file."""
        ...

    def check_place(self) -> None:
        """Raises StoreUnavailable if a running server has another file open than the one in its place: to open that
        here would mix the two."""
        ...

    async def examine(self) -> str:
        """Look at a store that is not open, or that another process has open, and change nothing: how it is, in words.
        Raises StoreError with what to do."""
        ...

    async def open(self) -> None:
        """Get ready, mend what a crash left behind. Raises StoreNewer, StoreCorrupt or StoreLocked."""
        ...

    async def close(self) -> None:
        """Flush and let go. Nothing may be called afterwards."""
        ...

    @property
    def is_failing(self) -> bool:
        """Whether the store knows that it cannot be written or read now. For numbers: it looks at nothing."""
        ...

    async def ping(self) -> None:
        """Return if the store can be written to, raise StoreError if not."""
        ...

    async def session(self, ref: SessionRef) -> Session | None: ...

    async def sessions(
        self, owner: str, *, q: str = "", before: tuple[int, str] | None = None, limit: int = 50
    ) -> list[Session]:
        """The owner's sessions whose title contains `q`, last active first, after the (active_at, id) `before`."""
        ...

    async def owners(self, *, after: str = "", limit: int = 50) -> list[Owner]:
        """Everybody who has sessions, by name, after the one of this name."""
        ...

    async def create(self, new: NewSession) -> bool:
        """Make a session without a run. False if it is there already, and then it stays as it is. Raises
        TooManySessions if it would be one too many: however many are made at once, none gets past the limit."""
        ...

    async def active_sessions(self, since: int) -> int:
        """How many sessions, of all owners, have a live run or were active since then."""
        ...

    async def rename(self, ref: SessionRef, title: str) -> bool: ...

    async def delete(self, ref: SessionRef) -> bool:
        """Remove a session with all that belongs to it. Raises SessionBusy while a run is live."""
        ...

    async def begin(self, new: NewRun) -> Begun:
        """Make a run the live one of its session, with a lease. Raises SessionBusy if there is one already,
        SessionNotFound if there is no session and the run may not make one, TooManySessions if it would be one too
        many, and SessionFull if too much is kept."""
        ...

    async def run(self, run_id: str) -> Run | None: ...

    async def requested(self, ref: SessionRef, request_id: str) -> Run | None:
        """The run that this request has begun, if it has."""
        ...

    async def run_covering(self, ref: SessionRef, seq: int) -> Run | None:
        """The first run of the session that is kept and does not end before `seq`."""
        ...

    async def runs(self, ref: SessionRef) -> list[Run]:
        """All runs of the session that are kept, oldest first."""
        ...

    async def note_messages(self, run_id: str, messages: int) -> None:
        """Keep the count of an ended run's messages, so that it need not be counted again."""
        ...

    async def append(self, batch: Sequence[Append]) -> None:
        """Commit all of it, or none; a run is in it once. A terminal `state` comes with the terminal Record and frees
        the session. Raises LeaseLost for a run not held. Who gets StoreUnavailable tries again."""
        ...

    async def records(self, ref: SessionRef, *, after: int, limit: int) -> list[Record]:
        """Up to `limit` committed Records with `seq > after`, in order. A gap at the front means retention."""
        ...

    async def records_naming(self, run: Run, id_: str) -> list[Record]:
        """The committed Records of a run that have this `call_id` or `approval_id`, in order."""
        ...

    async def result(self, run_id: str, key: str) -> Result | None: ...

    async def put_artifact(self, artifact: Artifact, run_id: str) -> None:
        """Keep a file of a run. Who gets StoreUnavailable tries again."""
        ...

    async def artifact(self, artifact_id: str) -> Artifact | None: ...

    async def memory(self, ref: SessionRef, agent: str) -> Memory | None:
        """What this agent remembers of the session: the memory that was written last."""
        ...

    async def remember(self, ref: SessionRef, memory: Memory) -> None:
        """Write a memory of this session. Another key than before makes the one before it stale."""
        ...

    async def stale_memories(self, agents: Collection[str], limit: int = 100) -> list[Memory]:
        """Memories of these agents that no turn will use again: others took their place, or their session is gone."""
        ...

    async def drop_memory(self, key: str) -> None: ...

    async def renew(self, until: int) -> None:
        """Extend the leases of all runs that this store object holds."""
        ...

    async def orphans(self, now: int) -> list[Run]:
        """Live runs whose lease has run out: their process is gone."""
        ...

    async def take_over(self, run_id: str, *, until: int, now: int) -> bool:
        """Lease an orphan. False if somebody else was faster."""
        ...

    async def signal(self, signal: Signal) -> None:
        """Carry a signal to the process that holds the run."""
        ...

    def signals(self) -> AsyncIterator[Signal]:
        """The signals to the runs that this store object holds, for ever."""
        ...

    async def sweep(self, before: int, limit: int = 500) -> Swept:
        """Retention: remove up to `limit` runs that ended before this time, and the sessions that are then empty."""
        ...

    async def newest_at(self) -> int | None:
        """When a session was active or a run ended last; None if the store is empty. Also of a store that is not open,
        or that another process has open."""
        ...

    async def retention_counts(self, before: int) -> RetentionCounts:
        """Count what a sweep with this time would remove in all. Also of a store that is not open, or that another
        process has open."""
        ...


def fault_of(record: Record) -> RunFault | None:
    """What a run's row says about its failure, read off its terminal Record."""
    event = record.event
    return RunFault(event.code, event.message, event.error_id) if isinstance(event, RunFailed) else None
