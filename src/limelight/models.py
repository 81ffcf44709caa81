"""Domain types that several layers share: sessions, runs, commits, artifacts, agent memories and signals.

They are values, without I/O and without a clock. Times are milliseconds since the epoch. Events and records are in
`events.py`, messages in `messages.py`; `stores/base.py` defines the store for these types.
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from limelight.events import Decision, Record, RunCancelled, RunFailed, RunFinished, Terminal
from limelight.messages import Message

LOCAL_OWNER = "local"
"""Owner of the sessions of requests without an API key, or with a key that has no user name."""

RunState = Literal["queued", "running", "waiting", "finished", "failed", "cancelled"]
LIVE_STATES: frozenset[RunState] = frozenset({"running", "waiting"})
ENDED_STATES: frozenset[RunState] = frozenset({"finished", "failed", "cancelled"})


# Sessions


class SessionRef(NamedTuple):
    """The identity of a session: session ids are unique per owner."""

    owner: str
    session_id: str


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation with an agent. `run_id` and `run_state` describe the newest run; None before the first run."""

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
    """Step limit of this session; None means the step limit of the agent."""


class NewSession(msgspec.Struct, frozen=True, kw_only=True):
    """A request to create a session without a run."""

    ref: SessionRef
    agent: str
    at: int
    max_steps: int | None = None
    max_sessions: int = 0
    """Per-owner session limit; 0 means unlimited."""


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """A user who has sessions, with the number of the sessions and the time of the latest activity."""

    owner: str
    sessions: int
    active_at: int


# Runs


class RunFault(msgspec.Struct, frozen=True):
    """The reason why a run failed, from its terminal event."""

    code: str
    message: str
    error_id: str = ""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One turn of a session. Its records are `first_seq` … `last_seq` of the session's log."""

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
    """Number of complete messages of an ended run; None if they have not been counted."""

    @property
    def live(self) -> bool:
        return self.state in LIVE_STATES


class NewRun(msgspec.Struct, frozen=True, kw_only=True):
    """A request to begin a run. `title` becomes the title of the session if the session has none."""

    run_id: str
    ref: SessionRef
    agent: str
    title: str
    at: int
    lease_until: int
    request_id: str = ""
    create_session: bool = True
    """Whether to create the session if it does not exist."""
    max_session_bytes: int = 0
    """Limit on the stored size of the session before the run begins; 0 means unlimited."""
    max_sessions: int = 0
    """Per-owner session limit; 0 means unlimited."""

    def to_session(self) -> NewSession:
        """Return the request to create the session of this run."""
        return NewSession(ref=self.ref, agent=self.agent, at=self.at, max_sessions=self.max_sessions)

    def to_run(self, *, turns: int, last_seq: int) -> Run:
        """Return the new run of a session that has had `turns` turns and whose log ends at `last_seq`."""
        return Run(
            run_id=self.run_id,
            ref=self.ref,
            agent=self.agent,
            turn=turns + 1,
            state="running",
            started_at=self.at,
            ended_at=None,
            first_seq=last_seq + 1,
            last_seq=last_seq,
            request_id=self.request_id,
        )


class Begun(msgspec.Struct, frozen=True):
    """The outcome of a NewRun. `created` is False if `run` began earlier, by a request with the same request id."""

    run: Run
    created: bool
    session_bytes: int = 0
    """Stored size of the session, as the store measures it."""


class RunOptions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Options of a request besides its question. They are stored outside of the log, so no viewer receives them."""

    system: tuple[str, ...] = ()
    """The texts of the client's system messages."""
    max_steps: int | None = None
    user_name: str = ""

    def with_question(self, question: Message) -> list[Message]:
        """Return the messages for the agent: the system messages, then the question."""
        return [*(Message(role="system", content=text) for text in self.system), question]


def state_after(terminal: Terminal) -> RunState:
    """Return the state of a run that ends with this event."""
    match terminal:
        case RunFinished():
            return "finished"
        case RunFailed():
            return "failed"
        case RunCancelled():
            return "cancelled"


def fault_of(record: Record) -> RunFault | None:
    """Return the fault that a terminal record reports; None if the run did not fail."""
    event = record.event
    return RunFault(event.code, event.message, event.error_id) if isinstance(event, RunFailed) else None


def refers_to(record: Record, id_: str) -> bool:
    """Whether a record has this `call_id` or `approval_id`. An empty id matches no record."""
    event = record.event
    return bool(id_) and id_ in (getattr(event, "call_id", None), getattr(event, "approval_id", None))


# Commits


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """A value in the results table, usually one that is too large for the log. `key` has the form `kind:id`."""

    key: str
    media_type: str
    body: bytes


class Append(msgspec.Struct, kw_only=True):
    """The part of a commit that concerns one run. `state` is its new state; None if the state does not change."""

    run_id: str
    records: Sequence[Record]
    results: Sequence[Result] = ()
    state: RunState | None = None


class Artifact(msgspec.Struct, frozen=True, kw_only=True):
    """A file that an agent created or a user sent."""

    artifact_id: str
    ref: SessionRef
    name: str
    media_type: str
    body: bytes


# Retention


class Swept(msgspec.Struct, frozen=True):
    """The outcome of a sweep: the number of deleted runs, and the deleted sessions."""

    runs: int
    sessions: list[SessionRef]


class RetentionCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The number of all sessions and runs, and of the sessions and runs that retention would delete."""

    sessions: int
    runs: int
    sessions_to_delete: int
    runs_to_delete: int


# Memories of agents


class MemoryTurn(msgspec.Struct, frozen=True):
    """One turn in an agent's memory: a hash of the question, and the id of the run."""

    asked: str
    run_id: str


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """A reference to a conversation that a framework stores under `key` in its own storage, with its turns."""

    key: str
    agent: str
    turns: tuple[MemoryTurn, ...] = ()


# Signals


class Cancel(msgspec.Struct, frozen=True, tag="cancel"):
    """A request to stop a run."""

    run_id: str
    reason: str
    by: str = ""

    @property
    def key(self) -> str:
        """The key of the signal within its run. A store accepts one signal per key, so a run is cancelled once."""
        return "cancel"


class Decide(msgspec.Struct, frozen=True, tag="decide"):
    """A user's decision on an approval."""

    run_id: str
    approval_id: str
    decision: Decision
    args: dict[str, Any] | None = None
    reason: str = ""
    by: str = ""

    @property
    def key(self) -> str:
        """The key of the signal within its run. A store accepts one signal per key: one decision per approval."""
        return self.approval_id


Signal = Cancel | Decide
SignalOutcome = Literal["sent", "duplicate", "unowned", "ended"]
"""The outcome of sending a signal; `Store.signal` explains the values."""
