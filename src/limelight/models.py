"""Data types that several layers share: users, cursors, sessions, runs, commits, artifacts, memories and signals.

They are values, without I/O and without a clock. Times are milliseconds since the epoch. Events and records are in
`events.py`, messages in `messages.py`; `stores/base.py` defines the store for these types.
"""

import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Self

import msgspec

from limelight.errors import BadCursor
from limelight.events import Decision, Record, RunCancelled, RunFailed, RunFinished, Terminal
from limelight.messages import Message

LOCAL_OWNER = "local"
"""Owner of sessions whose requests come without an API key, or with a key that names no user."""

RunState = Literal["queued", "running", "waiting", "finished", "failed", "cancelled"]
LIVE_STATES: frozenset[RunState] = frozenset({"running", "waiting"})
ENDED_STATES: frozenset[RunState] = frozenset({"finished", "failed", "cancelled"})


class User(msgspec.Struct, frozen=True):
    """The user for whom an agent works. `user_id` identifies the owner of the session."""

    user_id: str
    name: str = ""


class Cursor(NamedTuple):
    """A viewer's position in a stream: after Record `seq` or, if `k` > 0, after the first k frames of that Record."""

    seq: int
    k: int = 0

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a cursor sent by a client, such as `57` or `57.1`. Raises BadCursor."""
        seq, dot, k = text.partition(".")
        if not (seq.isascii() and seq.isdecimal()) or (dot and not (k.isascii() and k.isdecimal())) or len(text) > 32:
            raise BadCursor(f"a cursor is a number like 57 or 57.1, not {text[:40]!r}")
        return cls(int(seq), int(k or 0))

    def encode(self) -> bytes:
        """Return the cursor in the form that clients get and send."""
        return b"%d.%d" % self if self.k else b"%d" % self.seq

    @property
    def sort_key(self) -> tuple[int, float]:
        """A key by which positions are sorted; the end of a Record comes after all of its frames."""
        return self.seq, self.k or math.inf


# Sessions


class SessionRef(NamedTuple):
    """The identity of a session: its id and its owner. Session ids are unique per owner."""

    owner: str
    session_id: str


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation with an agent. `run_id` and `run_state` are those of the newest run; None before the first."""

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
    """Step limit for agents in this session; None means the agent's own limit."""


class NewSession(msgspec.Struct, frozen=True, kw_only=True):
    """A request to the store to create a session without a run."""

    ref: SessionRef
    agent: str
    at: int
    max_steps: int | None = None
    max_sessions: int = 0
    """Limit of sessions per owner; 0 means unlimited."""


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """A user who owns sessions, with their number and the time of the latest activity."""

    owner: str
    sessions: int
    active_at: int


# Runs


class RunFault(msgspec.Struct, frozen=True):
    """Why a run failed, from its terminal event."""

    code: str
    message: str
    error_id: str = ""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One turn of a session, from request to end. Its records are `first_seq` … `last_seq` of the session's log."""

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
    """Number of complete messages in an ended run; None if they were not counted."""

    @property
    def live(self) -> bool:
        return self.state in LIVE_STATES


class NewRun(msgspec.Struct, frozen=True, kw_only=True):
    """A request to the store to begin a run. `title` becomes the session's title if it has none."""

    run_id: str
    ref: SessionRef
    agent: str
    title: str
    at: int
    lease_until: int
    request_id: str = ""
    create_session: bool = True
    """Whether to create the session if it does not exist yet."""
    max_session_bytes: int = 0
    """The run is refused if the session's stored size exceeds this; 0 means unlimited."""
    max_sessions: int = 0
    """Limit of sessions per owner; 0 means unlimited."""

    def to_session(self) -> NewSession:
        """Return the request that creates the session of this run."""
        return NewSession(ref=self.ref, agent=self.agent, at=self.at, max_sessions=self.max_sessions)

    def to_run(self, *, turns: int, last_seq: int) -> Run:
        """Return the Run that this request begins, in a session with `turns` turns and a log up to `last_seq`."""
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
    """The store's answer to a NewRun. `created` is False if an earlier request with the same id began `run`."""

    run: Run
    created: bool
    session_bytes: int = 0
    """The session's stored size, as measured by the store."""


class RunOptions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a request contains besides the question. It is stored outside of the log, so no viewer receives it."""

    system: tuple[str, ...] = ()
    """The texts of the client's system messages."""
    max_steps: int | None = None
    user_name: str = ""
    context: dict[str, Any] = {}
    """The context values of the request."""

    def with_question(self, question: Message) -> list[Message]:
        """Return the messages for the agent: the system messages, then the question."""
        return [*(Message(role="system", content=text) for text in self.system), question]


def state_after(terminal: Terminal) -> RunState:
    """Return the state of a run that ends with this terminal event."""
    match terminal:
        case RunFinished():
            return "finished"
        case RunFailed():
            return "failed"
        case RunCancelled():
            return "cancelled"


def fault_of(record: Record) -> RunFault | None:
    """Return why a run failed, from its terminal record; None if it did not fail."""
    event = record.event
    return RunFault(event.code, event.message, event.error_id) if isinstance(event, RunFailed) else None


def refers_to(record: Record, id_: str) -> bool:
    """Whether a record's event has this `call_id` or `approval_id`. An empty id matches no record."""
    event = record.event
    return bool(id_) and id_ in (getattr(event, "call_id", None), getattr(event, "approval_id", None))


# Commits


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """A value stored outside of the log, usually because it is too large for it. `key` has the form `kind:id`."""

    key: str
    media_type: str
    body: bytes


class ResultInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Type, size and version of a Result, without its body; `version` changes when the Result is replaced."""

    key: str
    media_type: str
    size: int
    version: str


class Append(msgspec.Struct, kw_only=True):
    """The part of a commit that concerns one run. `state` is the run's new state; None if it does not change."""

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


class ArtifactInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about an Artifact without its body. Artifacts never change."""

    artifact_id: str
    ref: SessionRef
    name: str
    media_type: str
    size: int


# Retention


class Swept(msgspec.Struct, frozen=True):
    """The outcome of deleting old runs and sessions: the number of deleted runs, and the deleted sessions."""

    runs: int
    sessions: list[SessionRef]


class RetentionCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of all sessions and runs, and of those that the retention settings would delete."""

    sessions: int
    runs: int
    sessions_to_delete: int
    runs_to_delete: int


# Memories of agents


class MemoryTurn(msgspec.Struct, frozen=True):
    """One turn in an agent's memory: a hash of the question, and the run's id."""

    asked: str
    run_id: str


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation that a framework stores in its own storage under `key`, and the turns that it contains."""

    key: str
    agent: str
    turns: tuple[MemoryTurn, ...] = ()
    ref: SessionRef | None = None
    """The session of the memory. The store sets it when reading, and ignores it in `remember`."""


# Signals


class Cancel(msgspec.Struct, frozen=True, tag="cancel"):
    """Signal to a run: stop."""

    run_id: str
    reason: str
    by: str = ""

    @property
    def key(self) -> str:
        """The key of the signal within its run. A store accepts one signal per key, so a run is cancelled once."""
        return "cancel"


class Decide(msgspec.Struct, frozen=True, tag="decide"):
    """Signal to a run: a user's decision on an approval. An answer is an `edit` with the args `{"value": answer}`."""

    run_id: str
    approval_id: str
    decision: Decision
    args: dict[str, Any] | None = None
    reason: str = ""
    by: str = ""
    answered: bool = False

    @property
    def key(self) -> str:
        """The key of the signal within its run. A store accepts one signal per key: one decision per approval."""
        return self.approval_id


Signal = Cancel | Decide
SignalOutcome = Literal["sent", "duplicate", "unowned", "ended"]
"""What became of a signal that was sent to a run; `Store.signal` explains the values."""
