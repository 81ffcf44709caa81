"""Operations that tests of stores share: open a store, begin a run, append to it, read the log."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager

from limelight.events import AnyEvent, Record, RunFinished, RunStarted, TextDelta
from limelight.models import Append, NewRun, Result, Run, RunState, SessionRef
from limelight.stores.base import Store

MakeStore = Callable[[], Store]
"""Makes a store object that is not open yet. All objects of one MakeStore share their data."""

FAR = 10**15
"""A time after all others: a lease until then does not expire."""
S1 = SessionRef("ann", "s1")


@asynccontextmanager
async def opened(make_store: MakeStore) -> AsyncGenerator[Store]:
    store = make_store()
    await store.open()
    try:
        yield store
    finally:
        await store.close()


class RunWriter:
    """Appends to one run: numbers its records and keeps those that the store has acknowledged."""

    def __init__(self, store: Store, run: Run) -> None:
        self.run = run
        self.acknowledged: list[Record] = []
        self._store = store
        self._seq = run.last_seq
        self._at = run.started_at

    @property
    def run_id(self) -> str:
        return self.run.run_id

    def part(self, *events: AnyEvent, state: RunState | None = None, results: Sequence[Result] = ()) -> Append:
        """Make the next part of a batch. The caller has to append it, or the numbers have a gap."""
        records: list[Record] = []
        for event in events:
            self._seq += 1
            self._at += 7
            records.append(Record(self._seq, self.run_id, self._at, event))
        return Append(run_id=self.run_id, records=records, results=results, state=state)

    async def write(self, *events: AnyEvent, state: RunState | None = None, results: Sequence[Result] = ()) -> None:
        part = self.part(*events, state=state, results=results)
        await self._store.append([part])
        self.acknowledged += part.records

    async def end(self, event: AnyEvent | None = None, state: RunState = "finished") -> None:
        await self.write(event or RunFinished(), state=state)


def new_run(
    run_id: str,
    ref: SessionRef = S1,
    *,
    at: int = 1000,
    title: str = "a title",
    request_id: str = "",
    max_session_bytes: int = 0,
    max_sessions: int = 0,
) -> NewRun:
    return NewRun(
        run_id=run_id,
        ref=ref,
        agent="echo",
        title=title,
        at=at,
        lease_until=FAR,
        request_id=request_id,
        max_session_bytes=max_session_bytes,
        max_sessions=max_sessions,
    )


async def begin(
    store: Store, run_id: str, ref: SessionRef = S1, *, at: int = 1000, title: str = "a title"
) -> RunWriter:
    """Begin a run without records."""
    begun = await store.begin(new_run(run_id, ref, at=at, title=title))
    assert begun.created
    return RunWriter(store, begun.run)


async def complete_run(
    store: Store, run_id: str, ref: SessionRef = S1, *, at: int = 1000, words: int = 3, title: str = "a title"
) -> RunWriter:
    """Begin a run, append to it and end it."""
    writing = await begin(store, run_id, ref, at=at, title=title)
    await writing.write(RunStarted(agent="echo", input="hello"), *tokens(words))
    await writing.end()
    return writing


def tokens(count: int, message_id: str = "m1") -> list[TextDelta]:
    return [TextDelta(message_id=message_id, text=f"word {n} ") for n in range(count)]


async def read_all(store: Store, ref: SessionRef = S1, *, after: int = 0, page: int = 500) -> list[Record]:
    """Read the log after `after`, in pages."""
    found: list[Record] = []
    while records := await store.records(ref, after=after, limit=page):
        assert len(records) <= page
        found += records
        after = records[-1].seq
    return found
