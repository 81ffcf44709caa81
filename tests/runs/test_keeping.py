"""Housekeeping: leases are renewed, orphans sealed, old runs removed, and a store that fails does not end it."""

from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path

import pytest

from limelight.errors import StoreUnavailable
from limelight.runs.ids import now_ms
from limelight.runs.keeping import DAY_MS, Keeping
from limelight.runs.sealing import LEASE_MS
from limelight.runs.workspace import Workspaces
from limelight.stores.base import SessionRef, Swept
from limelight.stores.sqlite import SqliteStore
from tests.runs.recovering import recover
from tests.stores.steps import S1, begin, tokens, whole_run
from tests.waiting import eventually

S2 = SessionRef("ann", "s2")


class WatchedStore(SqliteStore):
    """Remembers what housekeeping asks of it; refuses a renewal for each of `refusals`."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.renewed: list[int] = []
        self.swept: list[int] = []
        self.refusals = 0

    async def renew(self, until: int) -> None:
        if self.refusals:
            self.refusals -= 1
            raise StoreUnavailable("disk full")
        await super().renew(until)
        self.renewed.append(until)

    async def sweep(self, before: int, limit: int = 500) -> Swept:
        removed = await super().sweep(before, limit)
        self.swept.append(before)
        return removed


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "limelight.db"


@pytest.fixture
async def store(path: Path) -> AsyncGenerator[WatchedStore]:
    store = WatchedStore(path)
    await store.open()
    yield store
    await store.close()


async def nothing() -> None: ...


async def none_left() -> int:
    return 0


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds of 5 ms instead of 10 s."""
    monkeypatch.setattr("limelight.runs.keeping.LEASE_MS", 15)


async def test_the_first_round_is_at_once(store: WatchedStore) -> None:
    before = now_ms()
    keeping = Keeping(store, Workspaces(Path()).remove, nothing, none_left, retention_days=30)
    keeping.start()
    await eventually(lambda: store.swept)
    await keeping.stop()
    assert before + LEASE_MS <= store.renewed[0] <= now_ms() + LEASE_MS
    assert before - 30 * DAY_MS <= store.swept[0] <= now_ms() - 30 * DAY_MS


@pytest.mark.usefixtures("often")
async def test_leases_are_renewed_often_and_sweeps_are_rare(store: WatchedStore) -> None:
    keeping = Keeping(store, Workspaces(Path()).remove, nothing, none_left, retention_days=30)
    keeping.start()
    await eventually(lambda: len(store.renewed) >= 5)
    await keeping.stop()
    rounds = len(store.renewed)
    assert store.renewed == sorted(store.renewed)
    assert len(store.swept) == 1
    await store.ping()
    assert len(store.renewed) == rounds


async def test_what_is_past_its_retention_goes(store: WatchedStore, tmp_path: Path) -> None:
    now = now_ms()
    await whole_run(store, "old", S1, at=now - 2 * DAY_MS)
    await whole_run(store, "new", S2, at=now)
    workspaces = Workspaces(tmp_path / "workspaces")
    for ref in (S1, S2):
        workspaces.folder(ref).mkdir(parents=True)
    await Keeping(store, workspaces.remove, nothing, none_left, retention_days=1.5).sweep()
    assert (workspaces.folder(S1).exists(), workspaces.folder(S2).exists()) == (False, True)
    assert (await store.run("old"), await store.session(S1)) == (None, None)
    assert await store.run("new") is not None


@pytest.mark.usefixtures("often")
async def test_orphans_are_sealed_and_live_runs_are_not(store: WatchedStore, path: Path) -> None:
    orphan = await begin(store, "orphan")
    await orphan.write(*tokens(3))
    await store.close()
    again = WatchedStore(path)
    await again.open()
    live = await begin(again, "live", S2)
    keeping = Keeping(again, Workspaces(Path()).remove, nothing, partial(recover, again), retention_days=30)
    keeping.start()
    await eventually(lambda: len(again.renewed) >= 3)
    await keeping.stop()
    run, other = await again.run("orphan"), await again.run("live")
    assert run is not None and other is not None
    assert (run.state, other.state) == ("failed", "running")
    await live.end()
    await again.close()


@pytest.mark.usefixtures("often")
async def test_a_store_that_fails_is_tried_again(store: WatchedStore, caplog: pytest.LogCaptureFixture) -> None:
    store.refusals = 3
    keeping = Keeping(store, Workspaces(Path()).remove, nothing, none_left, retention_days=30)
    keeping.start()
    await eventually(lambda: len(store.renewed) >= 2)
    await keeping.stop()
    assert store.refusals == 0
    assert "disk full" in caplog.text


@pytest.mark.usefixtures("often")
async def test_an_agent_that_cannot_let_go_does_not_end_it(
    store: WatchedStore, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken() -> None:
        raise ValueError("no rest")

    keeping = Keeping(store, Workspaces(Path()).remove, broken, none_left, retention_days=30)
    keeping.start()
    await eventually(lambda: len(store.renewed) >= 3)
    await keeping.stop()
    assert "Traceback" in caplog.text and "ValueError: no rest" in caplog.text


async def test_it_can_be_stopped_without_a_start(store: WatchedStore) -> None:
    await Keeping(store, Workspaces(Path()).remove, nothing, none_left, retention_days=30).stop()
    assert store.renewed == []
