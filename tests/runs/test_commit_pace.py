"""The pace of commits and wake-ups, with a clock that the test moves."""

from collections.abc import AsyncGenerator, Sequence

import pytest

from limelight.events import AnyEvent, Record, RunFinished, Status
from limelight.models import Append, RunState, SessionRef
from limelight.runs.committer import INTERVAL, Committer
from limelight.stores.memory import MemoryDatabase, MemoryStore
from tests.stores.operations import begin
from tests.support.clock import Clock

HALF = INTERVAL / 2


class Run:
    """A run that appends events when the test says so, and notes what was published and when viewers were woken."""

    def __init__(self, run_id: str, committer: Committer) -> None:
        self.ref = SessionRef("ann", run_id)
        self._run_id = run_id
        self._committer = committer
        self._records: list[Record] = []
        self._state: RunState | None = None
        self._seq = 0
        self._taken = 0
        self.commits: list[int] = []
        """The number of Records of each commit."""

    def emit(self, *, can_wait: bool = False, must_not_wait: bool = False, event: AnyEvent | None = None) -> None:
        self._seq += 1
        self._records.append(Record(self._seq, self._run_id, 0, event or Status(text=str(self._seq))))
        self._committer.schedule(self, can_wait=can_wait, must_not_wait=must_not_wait)

    def delta(self) -> None:
        self.emit(can_wait=True)

    def end(self) -> None:
        self._state = "finished"
        self.emit(must_not_wait=True, event=RunFinished())

    def take(self) -> Append:
        records, self._records = self._records, []
        self._taken = len(records)
        return Append(run_id=self._run_id, records=records, state=self._state)

    def committed(self) -> None:
        self.commits.append(self._taken)

    def lease_lost(self) -> None:
        raise AssertionError("no other process takes runs over here")


class Stage:
    """A committer over an in-memory store, with the number of wake-ups of each session."""

    def __init__(self) -> None:
        self.store = MemoryStore(MemoryDatabase())
        self.wakes: list[str] = []
        self.published: list[str] = []
        self.committer = Committer(self.store, self._publish, lambda ref: self.wakes.append(ref.session_id))

    def _publish(self, ref: SessionRef, records: Sequence[Record]) -> None:
        self.published.append(ref.session_id)

    async def run(self, run_id: str) -> Run:
        await begin(self.store, run_id, SessionRef("ann", run_id))
        return Run(run_id, self.committer)


@pytest.fixture
async def stage(loop_clock: Clock) -> AsyncGenerator[Stage]:
    stage = Stage()
    stage.committer.start()
    await loop_clock.settle()
    yield stage
    await stage.committer.stop()


async def test_first_event_after_a_pause_is_committed_and_delivered_at_once(stage: Stage, loop_clock: Clock) -> None:
    run = await stage.run("r1")
    run.delta()
    await loop_clock.settle()
    assert (run.commits, stage.wakes) == ([1], ["r1"])


async def test_deltas_that_follow_are_committed_once_per_interval(stage: Stage, loop_clock: Clock) -> None:
    run = await stage.run("r1")
    run.delta()
    await loop_clock.settle()
    for _ in range(4):
        run.delta()
        await loop_clock.advance(INTERVAL / 5)
    assert run.commits == [1]
    await loop_clock.advance(INTERVAL / 5)
    assert (run.commits, stage.wakes) == ([1, 4], ["r1", "r1"])


async def test_event_waits_if_its_run_was_committed_in_this_interval(stage: Stage, loop_clock: Clock) -> None:
    run = await stage.run("r1")
    run.emit()
    await loop_clock.settle()
    run.emit()
    await loop_clock.advance(HALF)
    assert run.commits == [1]
    await loop_clock.advance(HALF)
    assert (run.commits, stage.wakes) == ([1, 1], ["r1", "r1"])


async def test_event_of_another_run_does_not_wait_for_the_interval(stage: Stage, loop_clock: Clock) -> None:
    run, other = await stage.run("r1"), await stage.run("r2")
    run.delta()
    await loop_clock.settle()
    run.delta()
    other.emit()
    await loop_clock.settle()
    assert (run.commits, other.commits, stage.wakes) == ([1], [1], ["r1", "r2"])


async def test_delta_of_another_run_waits_for_the_interval(stage: Stage, loop_clock: Clock) -> None:
    run, other = await stage.run("r1"), await stage.run("r2")
    run.delta()
    await loop_clock.settle()
    other.delta()
    await loop_clock.settle()
    assert other.commits == []
    await loop_clock.advance(INTERVAL)
    assert other.commits == [1]


async def test_commit_for_a_source_that_is_ahead_does_not_wake_viewers_again(stage: Stage, loop_clock: Clock) -> None:
    run = await stage.run("r1")
    run.delta()
    await loop_clock.settle()
    for _ in range(3):
        run.emit(must_not_wait=True)
        await loop_clock.settle()
    assert (run.commits, stage.published, stage.wakes) == ([1, 1, 1, 1], ["r1"] * 4, ["r1"])
    await loop_clock.advance(INTERVAL)
    assert stage.wakes == ["r1", "r1"]


async def test_end_of_a_run_is_delivered_at_once(stage: Stage, loop_clock: Clock) -> None:
    run = await stage.run("r1")
    run.emit()
    await loop_clock.settle()
    run.delta()
    run.end()
    await loop_clock.settle()
    assert (run.commits, stage.wakes) == ([1, 2], ["r1", "r1"])


async def test_idle_committer_wakes_no_viewer(stage: Stage, loop_clock: Clock) -> None:
    run = await stage.run("r1")
    run.emit()
    for _ in range(5):
        await loop_clock.advance(INTERVAL)
    assert (run.commits, stage.wakes) == ([1], ["r1"])


async def test_published_records_are_delivered_while_the_store_fails(
    stage: Stage, loop_clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await stage.run("r1")
    run.emit()
    await loop_clock.settle()
    run.emit(must_not_wait=True)
    await loop_clock.settle()
    assert stage.wakes == ["r1"]

    async def fail(batch: Sequence[Append]) -> None:
        raise ValueError("no disk")

    monkeypatch.setattr(stage.store, "append", fail)
    run.delta()
    await loop_clock.advance(INTERVAL)
    assert (stage.wakes, stage.committer.failing) == (["r1", "r1"], True)
