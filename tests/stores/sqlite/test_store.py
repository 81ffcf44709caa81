"""SQLite passes the suite; besides, what is its own: the log is compact, the journal short, commits are shared."""

import asyncio
from collections.abc import Awaitable
from pathlib import Path
from random import Random

import msgspec
import pytest

from limelight.errors import StoreCorrupt, StoreUnavailable
from limelight.events import RunFinished, RunStarted, TextDelta
from limelight.models import SessionRef
from limelight.stores.sqlite import SqliteStore, file
from tests.stores.cases_records import RecordCases
from tests.stores.operations import S1, MakeStore, begin, new_run, opened, read_all, tokens, whole_run
from tests.stores.sqlite.files import locked, query, transactions
from tests.stores.suite import StoreFixtures, StoreSuite


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "limelight.db"


@pytest.fixture
def make_store(path: Path) -> MakeStore:
    return lambda: SqliteStore(path)


class TestSqlite(StoreSuite):
    @pytest.fixture
    def make_store(self, path: Path) -> MakeStore:
        return lambda: SqliteStore(path)


class TestTinyChunks(StoreFixtures, RecordCases):
    """The log with the smallest numbers, so that tails are packed and pages dropped all the time."""

    @pytest.fixture
    def make_store(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeStore:
        journal = "limelight.stores.sqlite.journal"
        monkeypatch.setattr(f"{journal}.CHUNK_RECORDS", 3)
        monkeypatch.setattr(f"{journal}.TIDY_EVERY", 2)
        monkeypatch.setattr(f"{journal}.PINNED_PAGES", 2)
        return lambda: SqliteStore(path)


async def test_a_finished_run_takes_less_than_a_fifth_of_its_json(make_store: MakeStore, path: Path) -> None:
    random = Random(1)
    words = ["the", "light", "house", "stands", "on", "a", "rock", "and", "every", "night", "it", "shines"]
    async with opened(make_store) as store:
        run = await begin(store, "r1")
        await run.write(RunStarted(agent="echo"))
        for _ in range(1000):
            await run.write(TextDelta(message_id="m1", text=random.choice(words) + " "))
        await run.end()
        kept = query(path, "SELECT sum(length(body)) FROM chunks")
    assert kept < sum(len(msgspec.json.encode(record)) for record in run.acknowledged) / 5


async def test_the_journal_is_empty_when_no_run_is_live(make_store: MakeStore, path: Path) -> None:
    async with opened(make_store) as store:
        runs = [await begin(store, f"r{n}", SessionRef("ann", f"s{n}")) for n in range(3)]
        for run in runs * 5:
            await run.write(*tokens(2))
        assert query(path, "SELECT count(*) FROM journal") == 15
        await store.append([run.part(RunFinished(), state="finished") for run in runs])
        assert query(path, "SELECT count(*) FROM journal") == 0


async def test_a_quiet_run_does_not_keep_the_journal_alive(
    make_store: MakeStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("limelight.stores.sqlite.journal.PINNED_PAGES", 50)
    async with opened(make_store) as store:
        quiet, loud = await begin(store, "r1"), await begin(store, "r2", SessionRef("ann", "s2"))
        await quiet.write(*tokens(1))
        for _ in range(400):
            await loud.write(*tokens(1))
        assert query(path, "SELECT count(*) FROM journal") < 250
        await quiet.end()
        assert await read_all(store) == quiet.acknowledged


async def test_calls_that_come_at_once_share_a_transaction(make_store: MakeStore, path: Path) -> None:
    async with opened(make_store) as store:
        runs = [await begin(store, f"r{n}", SessionRef("ann", f"s{n}")) for n in range(10)]
        before = transactions(path)
        with locked(path):
            calls: list[Awaitable[object]] = [store.ping()]
            calls += [store.append([run.part(*tokens(1))]) for run in runs]
            calls += [store.begin(new_run(f"n{n}", SessionRef("bob", f"s{n}"))) for n in range(10)]
            answers = asyncio.gather(*calls)
            await asyncio.sleep(0)
        await answers
        assert transactions(path) - before <= 3


async def test_a_call_that_breaks_takes_nobody_with_it(make_store: MakeStore, path: Path) -> None:
    async with opened(make_store) as store:
        run = await begin(store, "r1")
        with locked(path):
            calls: list[Awaitable[object]] = [
                store.ping(),
                store.append([run.part(*tokens(2))]),
                store.begin(new_run("r1", SessionRef("bob", "s1"))),  # this run id is taken
                store.rename(S1, "new"),
                store.begin(new_run("r2", SessionRef("ann", "s2"))),
            ]
            waiting = asyncio.gather(*calls, return_exceptions=True)
            await asyncio.sleep(0)
        answers = await waiting
        assert isinstance(answers[2], StoreUnavailable)
        assert [isinstance(answer, Exception) for answer in answers] == [False, False, True, False, False]
        assert len(await read_all(store)) == 2
        assert (await store.session(SessionRef("bob", "s1")), await store.run("r2") is None) == (None, False)


async def test_closing_finishes_what_is_queued(make_store: MakeStore) -> None:
    store = make_store()
    await store.open()
    run = await begin(store, "r1")
    parts = [run.part(*tokens(3)) for _ in range(20)]
    writing = [asyncio.ensure_future(store.append([part])) for part in parts]
    await asyncio.sleep(0)
    await store.close()
    await asyncio.gather(*writing)
    with pytest.raises(StoreUnavailable):
        await store.ping()
    async with opened(make_store) as store:
        assert await read_all(store) == [record for part in parts for record in part.records]


async def test_a_caller_that_leaves_does_not_undo_its_write(make_store: MakeStore, path: Path) -> None:
    async with opened(make_store) as store:
        run = await begin(store, "r1")
        part = run.part(*tokens(2))
        with locked(path):
            leaving = asyncio.ensure_future(store.append([part]))
            await asyncio.sleep(0)
            leaving.cancel()
        await run.write(*tokens(1))
        assert leaving.cancelled()
        assert await read_all(store) == [*part.records, *run.acknowledged]


async def test_what_another_program_breaks_is_a_store_error(make_store: MakeStore, path: Path) -> None:
    async with opened(make_store) as store:
        await whole_run(store, "r1")
        query(path, "UPDATE chunks SET body = x'00'")
        with pytest.raises(StoreCorrupt):
            await store.records(S1, after=0, limit=10)
        query(path, "DROP TABLE chunks")
        with pytest.raises(StoreUnavailable):
            await store.records(S1, after=0, limit=10)
        assert await store.session(S1) is not None


async def test_ping_tells_whether_it_can_be_written(
    make_store: MakeStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file, "LOCK_SECONDS", 0.05)
    async with opened(make_store) as store:
        with locked(path), pytest.raises(StoreUnavailable):
            await store.ping()
        await store.ping()
        assert await store.sessions("ann") == []


async def test_a_run_is_held_by_the_process_that_has_the_file(make_store: MakeStore) -> None:
    """A process that was asleep for longer than its leases, and is alone with its file, does not seal its own runs."""
    async with opened(make_store) as store:
        await begin(store, "r1")
        await store.renew(2000)
        assert await store.orphans(3000) == []
        assert not await store.take_over("r1", until=5000, now=3000)


async def test_a_lease_that_cannot_be_written_is_not_taken(
    make_store: MakeStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(make_store) as store:
        await begin(store, "r1")
    monkeypatch.setattr(file, "LOCK_SECONDS", 0.05)
    async with opened(make_store) as store:
        with locked(path), pytest.raises(StoreUnavailable):
            await store.take_over("r1", until=5000, now=3000)
        assert await store.orphans(3000) == [await store.run("r1")]
        assert await store.take_over("r1", until=5000, now=3000)
