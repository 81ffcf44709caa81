"""Housetask: leases are renewed, orphans sealed, old runs removed, and a store that fails does not end it."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest

from limelight.errors import StoreUnavailable
from limelight.ids import now_ms
from limelight.models import RetentionCounts, SessionRef, Swept
from limelight.runs.maintenance import DAY_MS, Maintenance
from limelight.runs.recovery import LEASE_MS
from limelight.runs.retention_clock import Pause
from limelight.runs.retention_guard import Confirmation, RetentionFiles, RetentionGuard
from limelight.runs.workspace import Workspaces
from limelight.stores.base import Store
from limelight.stores.sqlite import SqliteStore
from tests.runs.recover import recover
from tests.stores.operations import S1, begin, complete_run, tokens
from tests.support.wait import eventually

S2 = SessionRef("ann", "s2")


class WatchedStore(SqliteStore):
    """Remembers what housetask asks of it; refuses a renewal for each of `refusals`."""

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


@pytest.fixture
async def guard(store: WatchedStore, tmp_path: Path) -> RetentionGuard:
    guard = RetentionGuard(tmp_path, 7)
    await guard.open(store)
    return guard


async def nothing(*_: object) -> None: ...


async def no_orphans() -> int:
    return 0


def maintenance(
    store: Store,
    guard: RetentionGuard,
    *,
    forget: Callable[[SessionRef], Awaitable[None]] = nothing,
    tidy: Callable[[], Awaitable[None]] = nothing,
    recover: Callable[[], Awaitable[int]] = no_orphans,
    retention_days: float = 30,
) -> Maintenance:
    return Maintenance(store, forget, tidy, recover, retention_days=retention_days, guard=guard)


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds of 5 ms instead of 10 s."""
    monkeypatch.setattr("limelight.runs.maintenance.LEASE_MS", 15)


async def test_first_round_is_at_once(store: WatchedStore, guard: RetentionGuard) -> None:
    before = now_ms()
    task = maintenance(store, guard)
    task.start()
    await eventually(lambda: store.swept)
    await task.stop()
    assert before + LEASE_MS <= store.renewed[0] <= now_ms() + LEASE_MS
    assert before - 30 * DAY_MS <= store.swept[0] <= now_ms() - 30 * DAY_MS


@pytest.mark.usefixtures("often")
async def test_every_round_renews_leases_and_few_sweep(store: WatchedStore, guard: RetentionGuard) -> None:
    task = maintenance(store, guard)
    task.start()
    await eventually(lambda: len(store.renewed) >= 5)
    await task.stop()
    rounds = len(store.renewed)
    assert store.renewed == sorted(store.renewed)
    assert len(store.swept) == 1
    await store.ping()
    assert len(store.renewed) == rounds


@pytest.mark.requirement("retention")
async def test_sweep_deletes_runs_sessions_and_workspaces_past_their_retention(
    store: WatchedStore, guard: RetentionGuard, tmp_path: Path
) -> None:
    now = now_ms()
    await complete_run(store, "old", S1, at=now - 2 * DAY_MS)
    await complete_run(store, "new", S2, at=now)
    workspaces = Workspaces(tmp_path / "workspaces")
    for ref in (S1, S2):
        workspaces.folder(ref).mkdir(parents=True)
    await maintenance(store, guard, forget=workspaces.remove, retention_days=1.5).sweep()
    assert (workspaces.folder(S1).exists(), workspaces.folder(S2).exists()) == (False, True)
    assert (await store.run("old"), await store.session(S1)) == (None, None)
    assert await store.run("new") is not None


async def test_paused_retention_deletes_nothing_until_it_is_confirmed(
    store: WatchedStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    real = now_ms()
    clock = real
    guard = RetentionGuard(tmp_path, 7, clock=lambda: clock, monotonic=lambda: 0.0)
    await complete_run(store, "old", S1, at=real - 2 * DAY_MS)
    await complete_run(store, "new", S2, at=real)
    await guard.open(store)
    workspaces = Workspaces(tmp_path / "workspaces")
    workspaces.folder(S1).mkdir(parents=True)
    task = maintenance(store, guard, forget=workspaces.remove)
    clock = real + 400 * DAY_MS
    for _ in range(3):
        await task.sweep()
    assert store.swept == []
    assert workspaces.folder(S1).exists()
    (line,) = [line for line in caplog.messages if "retention is paused" in line]
    assert "400.0 days ahead" in line and "2 of 2 sessions (2 runs)" in line and "limelight retention confirm" in line
    pause = guard.pause
    assert pause is not None
    RetentionFiles(tmp_path).confirm(Confirmation(clock, pause))
    await task.sweep(is_due=False)
    assert set(store.swept) == {clock - 30 * DAY_MS}, "it does not wait for the next hour"
    assert await store.sessions("ann") == []
    assert not workspaces.folder(S1).exists()
    assert "retention is no longer paused" in caplog.text


async def test_second_jump_while_retention_is_paused_is_logged(
    store: WatchedStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    now = now_ms()
    clock = now
    guard = RetentionGuard(tmp_path, 7, clock=lambda: clock, monotonic=lambda: 0.0)
    await complete_run(store, "new", S1, at=now)
    await guard.open(store)
    task = maintenance(store, guard)
    for days in (400, 400, 800, 800):
        clock = now + days * DAY_MS
        await task.sweep()
    lines = [line for line in caplog.messages if "retention is paused" in line]
    assert ["400.0 days" in line for line in lines] == [True, False]


async def test_pause_that_a_failing_store_cannot_count_is_reported_later(
    store: WatchedStore, guard: RetentionGuard, monkeypatch: pytest.MonkeyPatch
) -> None:
    pause = Pause(expected_at=0, clock_at=400 * DAY_MS, behind=False)
    monkeypatch.setattr(RetentionGuard, "pause", pause)
    task = maintenance(store, guard)
    count = store.retention_counts

    async def broken(_: int) -> None:
        raise StoreUnavailable("disk full")

    monkeypatch.setattr(store, "retention_counts", broken)
    with pytest.raises(StoreUnavailable):
        await task.sweep()
    asked: list[int] = []

    async def counted(before: int) -> RetentionCounts:
        asked.append(before)
        return await count(before)

    monkeypatch.setattr(store, "retention_counts", counted)
    await task.sweep()
    await task.sweep()
    assert len(asked) == 1


@pytest.mark.usefixtures("often")
async def test_round_seals_orphans_and_no_live_runs(store: WatchedStore, guard: RetentionGuard, path: Path) -> None:
    orphan = await begin(store, "orphan")
    await orphan.write(*tokens(3))
    await store.close()
    again = WatchedStore(path)
    await again.open()
    await guard.open(again)
    live = await begin(again, "live", S2)
    task = maintenance(again, guard, recover=partial(recover, again))
    task.start()
    await eventually(lambda: len(again.renewed) >= 3)
    await task.stop()
    run, other = await again.run("orphan"), await again.run("live")
    assert run is not None and other is not None
    assert (run.state, other.state) == ("failed", "running")
    await live.end()
    await again.close()


@pytest.mark.usefixtures("often")
async def test_maintenance_continues_after_a_store_error(
    store: WatchedStore, guard: RetentionGuard, caplog: pytest.LogCaptureFixture
) -> None:
    store.refusals = 3
    task = maintenance(store, guard)
    task.start()
    await eventually(lambda: len(store.renewed) >= 2)
    await task.stop()
    assert store.refusals == 0
    assert "disk full" in caplog.text


@pytest.mark.usefixtures("often")
async def test_maintenance_continues_after_an_unexpected_error(
    store: WatchedStore, guard: RetentionGuard, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken() -> None:
        raise ValueError("no rest")

    task = maintenance(store, guard, tidy=broken)
    task.start()
    await eventually(lambda: len(store.renewed) >= 3)
    await task.stop()
    assert "Traceback" in caplog.text and "ValueError: no rest" in caplog.text


async def test_stop_without_start_does_nothing(store: WatchedStore, guard: RetentionGuard) -> None:
    await maintenance(store, guard).stop()
    assert store.renewed == []
