"""Acknowledged records survive a crash at any moment, a full disk and a failed transaction."""

import asyncio
import resource
import signal
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from limelight.errors import StoreUnavailable
from limelight.events import RunFinished, RunStarted
from limelight.models import Artifact, Result, SessionRef
from limelight.stores.base import Store
from limelight.stores.sqlite import SqliteStore
from tests.stores.operations import S1, RunWriter, begin, complete_run, opened, read_all, tokens
from tests.stores.random_traffic import Traffic
from tests.stores.sqlite.files import content, copy_live_files, query

ROOT = Path(__file__).parents[3]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "limelight.db"


@pytest.fixture
async def store(path: Path) -> AsyncGenerator[Store]:
    async with opened(lambda: SqliteStore(path)) as store:
        yield store


# Crashes


@pytest.mark.parametrize("seed", range(4))
async def test_crash_at_any_moment_loses_no_acknowledged_record(
    store: Store, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """With the smallest thresholds, something is packed or deleted at every moment."""
    random = Random(seed)
    for name, number in (("CHUNK_RECORDS", 5), ("TIDY_EVERY", 3), ("PINNED_PAGES", 6)):
        monkeypatch.setattr(f"limelight.stores.sqlite.journal.{name}", number)
    traffic = Traffic(store, random)
    for _ in range(60):
        for _ in range(random.randint(1, 4)):
            await traffic.step()
        async with opened(lambda: SqliteStore(copy_live_files(path, tmp_path / "copy"))) as copy:
            await traffic.check(copy)
    await traffic.check(store)
    assert traffic.ended > 5


@pytest.mark.requirement("commit-durable")
async def test_kill_9_loses_no_acknowledged_record(path: Path) -> None:
    acknowledged: dict[str, int] = {}
    for round_, lines in enumerate((1, 40, 700, 1500)):
        acknowledged |= await crash(path, round_, lines)
    async with opened(lambda: SqliteStore(path)) as store:
        for run_id, seq in acknowledged.items():
            found = await read_all(store, SessionRef("ann", run_id))
            assert [record.seq for record in found][:seq] == list(range(1, seq + 1))
        orphans = {run.run_id for run in await store.orphans(now=0)}
        assert len(orphans) >= 4
        for run_id in orphans:
            assert await store.take_over(run_id, until=1, now=0)
            run = await store.run(run_id)
            assert run is not None
            await RunWriter(store, run).end()
        assert query(path, "SELECT count(*) FROM journal") == 0


async def crash(path: Path, round_: int, lines: int) -> dict[str, int]:
    """Kill a writing program after so many acknowledgements. Return the last acknowledged seq of each run."""
    program = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.stores.crasher", str(path), str(round_)),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    assert program.stdout is not None
    last: dict[str, int] = {}
    count = 0
    try:
        while (
            line := await program.stdout.readline()
        ):  # until its end: it may acknowledge more before the signal arrives
            run_id, seq = line.decode().split()
            last[run_id] = int(seq)
            count += 1
            if count == lines:
                program.kill()
    finally:
        if program.returncode is None and count < lines:
            program.kill()
    assert await program.wait() == -signal.SIGKILL
    assert count >= lines
    return last


# Faults


@contextmanager
def disk_full(path: Path) -> Generator[None]:
    """Limit the size of all files to a little more than the current size of the write-ahead log."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(content(path.with_name(path.name + "-wal"))) + 5000, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_full_disk_refuses_writes_and_loses_nothing(store: Store, path: Path) -> None:
    other = SessionRef("ann", "s2")
    run, ending = await begin(store, "r1"), await begin(store, "r2", other)
    await run.write(RunStarted(agent="echo"), *tokens(200))
    await ending.write(*tokens(50))
    refused = [run.part(*tokens(5), state="waiting"), ending.part(RunFinished(), state="finished")]
    large = Result(key="k", media_type="text/plain", body=b"x" * 200_000)
    refused[0].results = [large]
    file = Artifact(artifact_id="a1", ref=S1, name="f", media_type="text/plain", body=b"x" * 200_000)
    with disk_full(path):
        for _ in range(3):
            with pytest.raises(StoreUnavailable, match="cannot be written"):
                await store.append(refused)
        with pytest.raises(StoreUnavailable):
            await store.put_artifact(file, "r1")
        assert await read_all(store) == run.acknowledged
        assert await read_all(store, other) == ending.acknowledged
        found = await store.run("r1")
        assert found is not None and (found.state, found.last_seq) == ("running", 201)
    await store.append(refused)
    assert await read_all(store) == [*run.acknowledged, *refused[0].records]
    assert await read_all(store, other) == [*ending.acknowledged, *refused[1].records]
    assert await store.result("r1", "k") == large


@pytest.mark.parametrize("how", ["ABORT", "ROLLBACK", "FAIL"])
@pytest.mark.parametrize("table", ["journal", "chunks"])
async def test_failed_transaction_can_be_repeated_and_loses_nothing(
    store: Store, path: Path, how: str, table: str
) -> None:
    run = await begin(store, "r1")
    await run.write(RunStarted(agent="echo"), *tokens(150))
    query(path, f"CREATE TRIGGER fault BEFORE INSERT ON {table} BEGIN SELECT RAISE({how}, 'injected'); END")
    part = run.part(*tokens(1))
    for _ in range(70):  # enough to pass the commits at which pages are deleted
        with pytest.raises(StoreUnavailable, match="injected"):
            await store.append([part])
    assert await read_all(store) == run.acknowledged
    query(path, "DROP TRIGGER fault")
    await store.append([part])
    await run.write(*tokens(1))
    await run.end()
    log = await read_all(store)
    assert [record.seq for record in log] == list(range(1, 155))
    assert log == [*run.acknowledged[:151], *part.records, *run.acknowledged[151:]]


async def test_failed_end_of_a_run_can_be_written_later(store: Store, path: Path, tmp_path: Path) -> None:
    run, other = await begin(store, "r1"), await begin(store, "r2", SessionRef("ann", "s2"))
    await run.write(*tokens(3))
    await other.write(*tokens(3))
    query(path, "CREATE TRIGGER fault BEFORE INSERT ON chunks BEGIN SELECT RAISE(ABORT, 'injected'); END")
    end = run.part(RunFinished(), state="finished")
    with pytest.raises(StoreUnavailable):
        await store.append([end])
    query(path, "DROP TRIGGER fault")
    await other.end()
    for _ in range(70):
        await complete_run(store, f"n{_}", SessionRef("ann", "s3"))
    async with opened(lambda: SqliteStore(copy_live_files(path, tmp_path / "copy"))) as copy:
        assert await read_all(copy) == run.acknowledged
    await store.append([end])
    assert await read_all(store) == [*run.acknowledged, *end.records]
    assert (await begin(store, "r3", S1)).run.turn == 2
