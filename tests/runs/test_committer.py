"""Append before deliver: nothing is shown before the log has it, in that order, whatever the store does meanwhile."""

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


class Story(list[tuple[str, str, list[int]]]):
    """What happened, in order: (what, run, seqs)."""

    def of(self, what: str, run_id: str = "") -> list[list[int]]:
        return [seqs for w, r, seqs in self if w == what and run_id in ("", r)]


class PacedStore:
    """A store that answers when it is told to, in the way that it is told to."""

    def __init__(self, story: Story) -> None:
        self.answers: list[Exception | None] = []
        self.lost: set[str] = set()
        self.open = asyncio.Event()
        self.open.set()
        self.slow: set[str] = set()
        """Runs that wait until it is `fast`."""
        self.fast = asyncio.Event()
        self._story = story

    async def append(self, batch: Sequence[Append]) -> None:
        for part in batch:
            self._story.append(("asked", part.run_id, [record.seq for record in part.records]))
        await self.open.wait()
        if self.slow.intersection(part.run_id for part in batch):
            await self.fast.wait()
        answer = self.answers.pop(0) if self.answers else None
        if answer is not None:
            raise answer
        if lost := self.lost.intersection(part.run_id for part in batch):
            raise LeaseLost(f"{lost} is lost")
        for part in batch:
            self._story.append(("kept", part.run_id, [record.seq for record in part.records]))


class Run:
    """A run as the committer sees it."""

    def __init__(self, run_id: str, committer: Committer, story: Story) -> None:
        self.run_id = run_id
        self.ref = SessionRef("ann", run_id)
        self._committer = committer
        self._story = story
        self._pending: list[Record] = []
        self.results: list[Result] = []
        self._seq = 0

    def say(self, *, can_wait: bool = False) -> None:
        self._seq += 1
        self._pending.append(Record(self._seq, self.run_id, 0, Status(text=f"{self.run_id} {self._seq}")))
        self._committer.schedule(self, can_wait=can_wait)

    def take(self) -> Append:
        taken, self._pending = self._pending, []
        results, self.results = self.results, []
        return Append(run_id=self.run_id, records=taken, results=results)

    def committed(self, append: Append) -> None:
        self._story.append(("committed", self.run_id, [record.seq for record in append.records]))

    def lease_lost(self) -> None:
        self._story.append(("lost", self.run_id, []))


@pytest.fixture
def story() -> Story:
    return Story()


@pytest.fixture
async def store(story: Story) -> PacedStore:
    return PacedStore(story)


@pytest.fixture
async def committer(store: PacedStore, story: Story) -> AsyncGenerator[Committer]:
    def publish(ref: SessionRef, records: Sequence[Record]) -> None:
        story.append(("shown", ref.session_id, [record.seq for record in records]))

    committer = Committer(cast(Store, store), publish)
    committer.start()
    yield committer
    await committer.stop()


@pytest.fixture
def new_run(committer: Committer, story: Story) -> Callable[[str], Run]:
    return lambda run_id: Run(run_id, committer, story)


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("limelight.runs.retry.RETRY_SECONDS", (0.0,))


NewRun = Callable[[str], Run]


async def test_nothing_is_shown_before_it_is_kept(store: PacedStore, story: Story, new_run: NewRun) -> None:
    run = new_run("r1")
    store.open.clear()
    run.say()
    await eventually(lambda: story.of("asked"))
    assert [what for what, _, _ in story] == ["asked"]
    store.open.set()
    await eventually(lambda: story.of("committed"))
    assert story == [(what, "r1", [1]) for what in ("asked", "kept", "shown", "committed")]


async def test_what_comes_during_a_commit_is_the_next_one(store: PacedStore, story: Story, new_run: NewRun) -> None:
    a, b = new_run("a"), new_run("b")
    store.open.clear()
    a.say()
    await eventually(lambda: story.of("asked"))
    for _ in range(3):
        a.say()
        b.say()
    store.open.set()
    await eventually(lambda: len(story.of("committed")) == 3)
    assert story.of("shown", "a") == [[1], [2, 3, 4]]
    assert story.of("shown", "b") == [[1, 2, 3]]


async def test_pieces_of_texts_wait_while_the_last_commit_is_fresh_and_nothing_else_does(
    story: Story, new_run: NewRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("limelight.runs.committer.INTERVAL", 60)
    run, other = new_run("r1"), new_run("r2")
    run.say(can_wait=True)
    await eventually(lambda: story.of("committed"))
    for _ in range(3):
        run.say(can_wait=True)
        await asyncio.sleep(0)
    assert story.of("asked") == [[1]]
    other.say()
    await eventually(lambda: story.of("committed", "r2"))
    assert story.of("shown") == [[1], [2, 3, 4], [1]]


async def test_a_piece_of_a_text_does_not_wait_for_ever(story: Story, new_run: NewRun) -> None:
    run = new_run("r1")
    for number in range(1, 4):
        run.say(can_wait=True)
        await eventually(lambda number=number: len(story.of("committed")) == number)
    assert story.of("shown") == [[1], [2], [3]]


async def test_a_store_that_fails_is_asked_again_for_the_same(store: PacedStore, story: Story, new_run: NewRun) -> None:
    run, other = new_run("r1"), new_run("r2")
    store.answers = [StoreUnavailable("full"), StoreUnavailable("full"), StoreUnavailable("full")]
    store.open.clear()
    run.say()
    await eventually(lambda: story.of("asked"))
    run.say()
    other.say()
    store.open.set()
    await eventually(lambda: len(story.of("committed")) == 3)
    assert story.of("asked", "r1") == [[1], [1], [1], [1], [2]]
    assert story.of("shown", "r1") == story.of("kept", "r1") == [[1], [2]]
    assert story.of("shown", "r2") == [[1]]
    first_kept = story.index(("kept", "r1", [1]))
    assert all(what == "asked" for what, _, _ in story[:first_kept])


async def test_any_other_mistake_is_told_whole_and_tried_again(
    store: PacedStore, story: Story, new_run: NewRun, caplog: pytest.LogCaptureFixture
) -> None:
    run = new_run("r1")
    store.answers = [ValueError("odd"), None]
    for number in (1, 2):
        run.say()
        await eventually(lambda number=number: len(story.of("committed")) == number)
    assert story.of("asked") == [[1], [1], [2]]
    assert story.of("shown") == story.of("kept") == [[1], [2]]
    assert "Traceback" in caplog.text and "ValueError: odd" in caplog.text


@pytest.mark.parametrize("breaks_at", ["take", "committed", "lease_lost"])
async def test_a_run_that_breaks_costs_the_others_nothing(
    breaks_at: str, store: PacedStore, story: Story, new_run: NewRun, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> Append:
        raise ValueError("broken run")

    bad, good = new_run("bad"), new_run("good")
    setattr(bad, breaks_at, broken)
    store.lost = {"bad"} if breaks_at == "lease_lost" else set()
    for number in (1, 2):
        bad.say()
        good.say()
        await eventually(lambda number=number: len(story.of("committed", "good")) == number)
    assert story.of("shown", "good") == [[1], [2]]
    assert "ValueError: broken run" in caplog.text


async def test_a_lost_lease_hits_its_run_only(store: PacedStore, story: Story, new_run: NewRun) -> None:
    runs = [new_run(name) for name in ("a", "b", "c")]
    store.lost = {"b"}
    store.answers = [None, LeaseLost("b"), None, StoreUnavailable("full")]
    for run in runs[:1]:
        run.say()
    await eventually(lambda: story.of("committed"))
    for run in runs:
        run.say()
    await eventually(lambda: story.of("committed", "c"))
    assert story.of("lost") == story.of("lost", "b") == [[]]
    assert (story.of("shown", "a"), story.of("shown", "b"), story.of("shown", "c")) == ([[1], [2]], [], [[1]])
    assert story.of("committed", "b") == []


async def test_after_a_lost_lease_the_others_go_on(store: PacedStore, story: Story, new_run: NewRun) -> None:
    lost, good = new_run("lost"), new_run("good")
    store.lost = {"lost"}
    for number in range(1, 4):
        lost.say()
        good.say()
        await eventually(lambda number=number: len(story.of("committed", "good")) == number)
    assert story.of("shown", "good") == [[1], [2], [3]]
    assert (story.of("shown", "lost"), len(story.of("lost", "lost"))) == ([], 3)


async def test_a_dialect_that_breaks_costs_the_run_nothing(store: PacedStore, story: Story) -> None:
    def publish(ref: SessionRef, records: Sequence[Record]) -> None:
        raise ValueError("no such frame")

    committer = Committer(cast(Store, store), publish)
    committer.start()
    run = Run("r1", committer, story)
    for number in range(1, 3):
        run.say()
        await eventually(lambda number=number: len(story.of("committed")) == number)
    await committer.stop()
    assert story.of("committed") == [[1], [2]]


async def test_stop_leaves_nothing_half_shown(
    store: PacedStore, story: Story, new_run: NewRun, committer: Committer
) -> None:
    store.open.clear()
    new_run("r1").say()
    await eventually(lambda: story.of("asked"))
    await committer.stop()
    assert (story.of("shown"), story.of("committed")) == ([], [])


async def test_what_is_shown_is_in_the_file(tmp_path: Path, story: Story) -> None:
    """With the real store: at the moment of delivery another program finds the Record on disk."""
    path = tmp_path / "limelight.db"
    on_disk: list[bool] = []

    def publish(ref: SessionRef, records: Sequence[Record]) -> None:
        text = cast(Status, records[-1].event).text
        on_disk.append(query(path, "SELECT count(*) FROM journal WHERE instr(body, cast(? AS BLOB))", text) == 1)

    async with opened(lambda: SqliteStore(path)) as real:
        await begin(real, "r1")
        committer = Committer(real, publish)
        committer.start()
        run = Run("r1", committer, story)
        for number in range(1, 30):
            run.say()
            await eventually(lambda number=number: len(story.of("committed")) == number)
        await committer.stop()
    assert on_disk == [True] * 29


async def test_a_run_with_a_large_result_keeps_nobody_waiting_and_its_own_records_in_order(
    store: PacedStore, story: Story, new_run: NewRun
) -> None:
    large, other = new_run("large"), new_run("other")
    store.slow = {"large"}
    large.results = [Result(key="k", media_type="text/plain", body=b"x" * (LARGE + 1))]
    large.say()
    await eventually(lambda: story.of("asked", "large"))
    for number in range(1, 4):
        other.say()
        large.say()
        await eventually(lambda number=number: len(story.of("committed", "other")) == number)
    assert story.of("asked", "large") == [[1]]
    assert story.of("shown", "large") == []
    store.fast.set()
    await eventually(lambda: len(story.of("committed", "large")) == 2)
    assert story.of("shown", "large") == [[1], [2, 3, 4]]
    large.say()
    await eventually(lambda: story.of("shown", "large") == [[1], [2, 3, 4], [5]])


async def test_stop_ends_what_is_committed_apart(
    store: PacedStore, story: Story, new_run: NewRun, committer: Committer
) -> None:
    large = new_run("large")
    store.slow = {"large"}
    large.results = [Result(key="k", media_type="text/plain", body=b"x" * (LARGE + 1))]
    large.say()
    await eventually(lambda: story.of("asked", "large"))
    await committer.stop()
    store.fast.set()
    assert (story.of("shown"), story.of("committed")) == ([], [])
