"""The committer publishes Records after the store has committed them, in order, also when the store fails."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from typing import cast

import pytest

from limelight.errors import LeaseLost, StoreUnavailable
from limelight.events import Record, Status
from limelight.models import Append, Result, SessionRef
from limelight.runs.committer import LARGE, Committer
from limelight.stores.base import Store
from limelight.stores.sqlite import SqliteStore
from tests.stores.operations import begin, opened
from tests.stores.sqlite.files import query
from tests.support.wait import eventually


class Calls(list[tuple[str, str, list[int]]]):
    """Calls in order: (what, run, seqs)."""

    def of(self, what: str, run_id: str = "") -> list[list[int]]:
        return [seqs for w, r, seqs in self if w == what and run_id in ("", r)]


class PacedStore:
    """A store whose `append` waits and fails as the test says."""

    def __init__(self, calls: Calls) -> None:
        self.answers: list[Exception | None] = []
        self.lost: set[str] = set()
        self.open = asyncio.Event()
        self.open.set()
        self.slow: set[str] = set()
        """Runs that wait until it is `fast`."""
        self.fast = asyncio.Event()
        self._calls = calls

    async def append(self, batch: Sequence[Append]) -> None:
        for part in batch:
            self._calls.append(("append", part.run_id, [record.seq for record in part.records]))
        await self.open.wait()
        if self.slow.intersection(part.run_id for part in batch):
            await self.fast.wait()
        answer = self.answers.pop(0) if self.answers else None
        if answer is not None:
            raise answer
        if lost := self.lost.intersection(part.run_id for part in batch):
            raise LeaseLost(f"{lost} is lost")
        for part in batch:
            self._calls.append(("stored", part.run_id, [record.seq for record in part.records]))


class Run:
    """A run for the committer: each `say` appends one Record."""

    def __init__(self, run_id: str, committer: Committer, calls: Calls) -> None:
        self.run_id = run_id
        self.ref = SessionRef("ann", run_id)
        self._committer = committer
        self._calls = calls
        self._pending: list[Record] = []
        self.results: list[Result] = []
        self._seq = 0
        self._taken: list[list[int]] = []

    def say(self, *, can_wait: bool = False) -> None:
        self._seq += 1
        self._pending.append(Record(self._seq, self.run_id, 0, Status(text=f"{self.run_id} {self._seq}")))
        self._committer.schedule(self, can_wait=can_wait)

    def take(self) -> Append:
        taken, self._pending = self._pending, []
        self._taken.append([record.seq for record in taken])
        results, self.results = self.results, []
        return Append(run_id=self.run_id, records=taken, results=results)

    def committed(self) -> None:
        self._calls.append(("committed", self.run_id, self._taken.pop(0)))

    def lease_lost(self) -> None:
        self._calls.append(("lost", self.run_id, []))


@pytest.fixture
def calls() -> Calls:
    return Calls()


@pytest.fixture
async def store(calls: Calls) -> PacedStore:
    return PacedStore(calls)


@pytest.fixture
async def committer(store: PacedStore, calls: Calls) -> AsyncGenerator[Committer]:
    def publish(ref: SessionRef, records: Sequence[Record]) -> None:
        calls.append(("published", ref.session_id, [record.seq for record in records]))

    committer = Committer(cast(Store, store), publish, lambda ref: calls.append(("woken", ref.session_id, [])))
    committer.start()
    yield committer
    await committer.stop()


@pytest.fixture
def new_run(committer: Committer, calls: Calls) -> Callable[[str], Run]:
    return lambda run_id: Run(run_id, committer, calls)


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("limelight.runs.store_retry.RETRY_SECONDS", (0.0,))


NewRun = Callable[[str], Run]


@pytest.mark.requirement("log-before-viewers")
async def test_records_are_published_after_they_are_committed(store: PacedStore, calls: Calls, new_run: NewRun) -> None:
    run = new_run("r1")
    store.open.clear()
    run.say()
    await eventually(lambda: calls.of("append"))
    assert [what for what, _, _ in calls] == ["append"]
    store.open.set()
    await eventually(lambda: calls.of("committed"))
    assert [what for what, _, _ in calls] == ["append", "stored", "published", "woken", "committed"]


async def test_records_that_come_during_a_commit_are_the_next_commit(
    store: PacedStore, calls: Calls, new_run: NewRun
) -> None:
    a, b = new_run("a"), new_run("b")
    store.open.clear()
    a.say()
    await eventually(lambda: calls.of("append"))
    for _ in range(3):
        a.say()
        b.say()
    store.open.set()
    await eventually(lambda: len(calls.of("committed")) == 3)
    assert calls.of("published", "a") == [[1], [2, 3, 4]]
    assert calls.of("published", "b") == [[1, 2, 3]]


async def test_failed_commit_is_retried_with_the_same_records(store: PacedStore, calls: Calls, new_run: NewRun) -> None:
    run, other = new_run("r1"), new_run("r2")
    store.answers = [StoreUnavailable("full"), StoreUnavailable("full"), StoreUnavailable("full")]
    store.open.clear()
    run.say()
    await eventually(lambda: calls.of("append"))
    run.say()
    other.say()
    store.open.set()
    await eventually(lambda: len(calls.of("committed")) == 3)
    assert calls.of("append", "r1") == [[1], [1], [1], [1], [2]]
    assert calls.of("published", "r1") == calls.of("stored", "r1") == [[1], [2]]
    assert calls.of("published", "r2") == [[1]]
    first_kept = calls.index(("stored", "r1", [1]))
    assert all(what == "append" for what, _, _ in calls[:first_kept])


async def test_unexpected_error_is_logged_with_traceback_and_retried(
    store: PacedStore, calls: Calls, new_run: NewRun, caplog: pytest.LogCaptureFixture
) -> None:
    run = new_run("r1")
    store.answers = [ValueError("odd"), None]
    for number in (1, 2):
        run.say()
        await eventually(lambda number=number: len(calls.of("committed")) == number)
    assert calls.of("append") == [[1], [1], [2]]
    assert calls.of("published") == calls.of("stored") == [[1], [2]]
    assert "Traceback" in caplog.text and "ValueError: odd" in caplog.text


@pytest.mark.parametrize("breaks_at", ["take", "committed", "lease_lost"])
async def test_error_in_one_run_does_not_affect_other_runs(
    breaks_at: str, store: PacedStore, calls: Calls, new_run: NewRun, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> Append:
        raise ValueError("broken run")

    bad, good = new_run("bad"), new_run("good")
    setattr(bad, breaks_at, broken)
    store.lost = {"bad"} if breaks_at == "lease_lost" else set()
    for number in (1, 2):
        bad.say()
        good.say()
        await eventually(lambda number=number: len(calls.of("committed", "good")) == number)
    assert calls.of("published", "good") == [[1], [2]]
    assert "ValueError: broken run" in caplog.text


async def test_lost_lease_affects_its_run_only(store: PacedStore, calls: Calls, new_run: NewRun) -> None:
    runs = [new_run(name) for name in ("a", "b", "c")]
    store.lost = {"b"}
    store.answers = [None, LeaseLost("b"), None, StoreUnavailable("full")]
    for run in runs[:1]:
        run.say()
    await eventually(lambda: calls.of("committed"))
    for run in runs:
        run.say()
    await eventually(lambda: calls.of("committed", "c") and len(calls.of("committed", "a")) == 2)
    assert calls.of("lost") == calls.of("lost", "b") == [[]]
    assert (calls.of("published", "a"), calls.of("published", "b"), calls.of("published", "c")) == (
        [[1], [2]],
        [],
        [[1]],
    )
    assert calls.of("committed", "b") == []


async def test_other_runs_are_committed_after_a_lost_lease(store: PacedStore, calls: Calls, new_run: NewRun) -> None:
    lost, good = new_run("lost"), new_run("good")
    store.lost = {"lost"}
    for number in range(1, 4):
        lost.say()
        good.say()
        await eventually(lambda number=number: len(calls.of("committed", "good")) == number)
    assert calls.of("published", "good") == [[1], [2], [3]]
    assert (calls.of("published", "lost"), len(calls.of("lost", "lost"))) == ([], 3)


async def test_error_of_publish_does_not_affect_the_run(store: PacedStore, calls: Calls) -> None:
    def publish(ref: SessionRef, records: Sequence[Record]) -> None:
        raise ValueError("no such frame")

    committer = Committer(cast(Store, store), publish, lambda ref: None)
    committer.start()
    run = Run("r1", committer, calls)
    for number in range(1, 3):
        run.say()
        await eventually(lambda number=number: len(calls.of("committed")) == number)
    await committer.stop()
    assert calls.of("committed") == [[1], [2]]


async def test_stop_during_a_commit_publishes_nothing(
    store: PacedStore, calls: Calls, new_run: NewRun, committer: Committer
) -> None:
    store.open.clear()
    new_run("r1").say()
    await eventually(lambda: calls.of("append"))
    await committer.stop()
    assert (calls.of("published"), calls.of("committed")) == ([], [])


async def test_published_record_is_in_the_database_file(tmp_path: Path, calls: Calls) -> None:
    """With the real store: when a Record is published, another connection finds it on disk."""
    path = tmp_path / "limelight.db"
    on_disk: list[bool] = []

    def publish(ref: SessionRef, records: Sequence[Record]) -> None:
        text = cast(Status, records[-1].event).text
        on_disk.append(query(path, "SELECT count(*) FROM journal WHERE instr(body, cast(? AS BLOB))", text) == 1)

    async with opened(lambda: SqliteStore(path)) as real:
        await begin(real, "r1")
        committer = Committer(real, publish, lambda ref: None)
        committer.start()
        run = Run("r1", committer, calls)
        for number in range(1, 30):
            run.say()
            await eventually(lambda number=number: len(calls.of("committed")) == number)
        await committer.stop()
    assert on_disk == [True] * 29


async def test_run_with_a_large_result_is_committed_separately_and_in_order(
    store: PacedStore, calls: Calls, new_run: NewRun
) -> None:
    large, other = new_run("large"), new_run("other")
    store.slow = {"large"}
    large.results = [Result(key="k", media_type="text/plain", body=b"x" * (LARGE + 1))]
    large.say()
    await eventually(lambda: calls.of("append", "large"))
    for number in range(1, 4):
        other.say()
        large.say()
        await eventually(lambda number=number: len(calls.of("committed", "other")) == number)
    assert calls.of("append", "large") == [[1]]
    assert calls.of("published", "large") == []
    store.fast.set()
    await eventually(lambda: len(calls.of("committed", "large")) == 2)
    assert calls.of("published", "large") == [[1], [2, 3, 4]]
    large.say()
    await eventually(lambda: calls.of("published", "large") == [[1], [2, 3, 4], [5]])


async def test_stop_ends_separate_commits(
    store: PacedStore, calls: Calls, new_run: NewRun, committer: Committer
) -> None:
    large = new_run("large")
    store.slow = {"large"}
    large.results = [Result(key="k", media_type="text/plain", body=b"x" * (LARGE + 1))]
    large.say()
    await eventually(lambda: calls.of("append", "large"))
    await committer.stop()
    store.fast.set()
    assert (calls.of("published"), calls.of("committed")) == ([], [])
