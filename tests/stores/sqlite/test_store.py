"""The SQLite store passes the suite of stores. Its log is compact, its journal short, and commits are shared."""

import asyncio
import sqlite3
from collections.abc import Awaitable
from pathlib import Path
from random import Random

import msgspec
import pytest

from limelight.errors import StoreCorrupt, StoreUnavailable
from limelight.events import RunFinished, RunStarted, TextDelta
from limelight.models import Result, SessionRef
from limelight.stores.sqlite import SqliteStore, database_file
from limelight.stores.sqlite.journal import Journal
from tests.stores.cases_records import RecordCases
from tests.stores.operations import S1, MakeStore, begin, complete_run, new_run, opened, read_all, tokens
from tests.stores.sqlite.files import locked, query, transactions
from tests.stores.suite import StoreFixtures, StoreSuite


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "limelight.db"


@pytest.fixture
def make_store(path: Path) -> MakeStore:
    return lambda: SqliteStore(path)


class TestSqliteStore(StoreSuite):
    @pytest.fixture
    def make_store(self, path: Path) -> MakeStore:
        return lambda: SqliteStore(path)


class TestTinyChunks(StoreFixtures, RecordCases):
    """The cases of records with the smallest thresholds, so that tails are packed and pages deleted all the time."""

    @pytest.fixture
    def make_store(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeStore:
        journal = "limelight.stores.sqlite.journal"
        monkeypatch.setattr(f"{journal}.CHUNK_RECORDS", 3)
        monkeypatch.setattr(f"{journal}.TIDY_EVERY", 2)
        monkeypatch.setattr(f"{journal}.PINNED_PAGES", 2)
        return lambda: SqliteStore(path)


async def test_chunks_of_a_finished_run_are_smaller_than_a_fifth_of_its_json(make_store: MakeStore, path: Path) -> None:
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


async def test_journal_is_empty_when_no_run_is_live(make_store: MakeStore, path: Path) -> None:
    async with opened(make_store) as store:
        runs = [await begin(store, f"r{n}", SessionRef("ann", f"s{n}")) for n in range(3)]
        for run in runs * 5:
            await run.write(*tokens(2))
        assert query(path, "SELECT count(*) FROM journal") == 15
        await store.append([run.part(RunFinished(), state="finished") for run in runs])
        assert query(path, "SELECT count(*) FROM journal") == 0


async def test_quiet_run_does_not_keep_old_journal_pages(
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


async def test_concurrent_calls_share_a_transaction(make_store: MakeStore, path: Path) -> None:
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


async def test_failing_call_does_not_affect_others_in_its_transaction(make_store: MakeStore, path: Path) -> None:
    async with opened(make_store) as store:
        run = await begin(store, "r1")
        with locked(path):
            calls: list[Awaitable[object]] = [
                store.ping(),
                store.append([run.part(*tokens(2))]),
                store.begin(new_run("r1", SessionRef("bob", "s1"))),  # this run id exists
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


async def test_large_result_does_not_delay_commits_of_other_runs(make_store: MakeStore) -> None:
    async with opened(make_store) as store:
        one, other = await begin(store, "r1"), await begin(store, "r2", SessionRef("ann", "s2"))
        large = Result(key="k", media_type="text/plain", body=b"x" * 20 * 2**20)
        writing = asyncio.create_task(one.write(*tokens(1), results=[large]))
        await asyncio.sleep(0)
        for _ in range(3):
            await other.write(*tokens(1))
        assert not writing.done()
        assert await store.result("r1", "k") is None
        await writing
        assert await store.result("r1", "k") == large


@pytest.mark.parametrize("old_size", [10, 2 * 2**20, 30 * 2**20])
async def test_reader_gets_the_old_result_until_all_parts_of_a_new_one_are_written(
    make_store: MakeStore, old_size: int
) -> None:
    async with opened(make_store) as store:
        run = await begin(store, "r1")
        old, new = (
            Result(key="k", media_type="text/plain", body=letter * size)
            for letter, size in ((b"o", old_size), (b"n", 20 * 2**20))
        )
        await run.write(*tokens(1), results=[old])
        writing = asyncio.create_task(run.write(*tokens(1), results=[new]))
        seen: set[bytes] = set()
        while not writing.done():
            read = await store.result("r1", "k")
            seen.add(b"" if read is None else bytes(set(read.body)))
        assert seen <= {b"o", b"n"} and b"o" in seen
        await writing
        assert await store.result("r1", "k") == new


async def test_parts_of_an_interrupted_write_do_not_appear_in_a_later_result(
    make_store: MakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(make_store) as store:
        run = await begin(store, "r1")
        old, lost, new = (
            Result(key="k", media_type="text/plain", body=letter * size * 2**20)
            for letter, size in ((b"o", 1), (b"l", 3), (b"n", 2))
        )
        await run.write(*tokens(1), results=[old])
        with monkeypatch.context() as patch:
            patch.setattr(Journal, "write", _fail)
            with pytest.raises(StoreUnavailable):
                await store.append([run.part(results=[lost])])
        assert await store.result("r1", "k") == old
        await run.write(*tokens(1), results=[new])
        assert await store.result("r1", "k") == new


def _fail(*_: object) -> None:
    raise sqlite3.OperationalError("the disk is full")


async def test_close_commits_queued_writes(make_store: MakeStore) -> None:
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


async def test_write_of_a_cancelled_caller_is_committed(make_store: MakeStore, path: Path) -> None:
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


async def test_read_of_damaged_data_raises_a_store_error(make_store: MakeStore, path: Path) -> None:
    async with opened(make_store) as store:
        await complete_run(store, "r1")
        query(path, "UPDATE chunks SET body = x'00'")
        with pytest.raises(StoreCorrupt):
            await store.records(S1, after=0, limit=10)
        query(path, "DROP TABLE chunks")
        with pytest.raises(StoreUnavailable):
            await store.records(S1, after=0, limit=10)
        assert await store.session(S1) is not None


async def test_held_run_with_an_expired_lease_is_not_an_orphan(make_store: MakeStore) -> None:
    """A process that was suspended for longer than its leases does not seal its own runs."""
    async with opened(make_store) as store:
        await begin(store, "r1")
        await store.renew(2000)
        assert await store.orphans(3000) == []
        assert not await store.take_over("r1", until=5000, now=3000)


async def test_take_over_that_cannot_be_written_is_refused(
    make_store: MakeStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(make_store) as store:
        await begin(store, "r1")
    monkeypatch.setattr(database_file, "LOCK_SECONDS", 0.05)
    async with opened(make_store) as store:
        with locked(path), pytest.raises(StoreUnavailable):
            await store.take_over("r1", until=5000, now=3000)
        assert await store.orphans(3000) == [await store.run("r1")]
        assert await store.take_over("r1", until=5000, now=3000)


async def test_note_messages_is_read_back(make_store: MakeStore) -> None:
    async with opened(make_store) as store:
        await complete_run(store, "r1")
        await store.note_messages("r1", 5)
        run = await store.run("r1")
        assert run is not None and run.messages == 5
