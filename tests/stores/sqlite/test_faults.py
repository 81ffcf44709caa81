"""Faults of an open database: it is moved, deleted, replaced, locked or damaged, and nothing acknowledged is lost."""

import asyncio
import errno
import logging
import os
import sqlite3
from collections.abc import AsyncGenerator, Callable
from contextlib import closing
from pathlib import Path

import pytest

from limelight.errors import StoreLocked, StoreUnavailable
from limelight.models import SessionRef
from limelight.stores.base import Store
from limelight.stores.sqlite import SqliteStore, database_file
from limelight.stores.sqlite import store as store_module
from tests.stores.operations import RunWriter, begin, new_run, opened, read_all, tokens
from tests.stores.sqlite.files import FullFile, content, locked, move, overwrite, query, remove

DAMAGED = "the database is damaged; end the server and restore a backup: limelight restore BACKUP"
LOGGER = "limelight.stores.sqlite.faults"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "limelight.db"


@pytest.fixture
async def store(path: Path) -> AsyncGenerator[Store]:
    async with opened(lambda: SqliteStore(path)) as store:
        yield store


async def refused(store: Store, words: str) -> None:
    """Assert that writes fail with these words, and that the error contains no path."""
    with pytest.raises(StoreUnavailable) as error:
        await store.ping()
    assert error.value.words == words
    assert words.partition(";")[0] in error.value.detail and "/" not in error.value.detail
    assert error.value.retry_after > 0


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the log lines about faults."""
    return [record.getMessage() for record in caplog.records if record.name == LOGGER]


async def assert_works(store: Store, run: RunWriter) -> None:
    await store.ping()
    await run.write(*tokens(2))
    await run.end()
    assert await read_all(store) == run.acknowledged


def rename_file(path: Path) -> Callable[[], object]:
    aside = path.with_name("aside.db")
    path.rename(aside)
    return lambda: aside.rename(path)


def rename_folder(path: Path) -> Callable[[], object]:
    aside = path.parent.with_name("aside")
    path.parent.rename(aside)
    return lambda: aside.rename(path.parent)


@pytest.mark.parametrize("rename", [rename_file, rename_folder])
async def test_moved_database_is_not_written_until_it_is_back(
    store: Store, path: Path, rename: Callable[[Path], Callable[[], object]], caplog: pytest.LogCaptureFixture
) -> None:
    run = await begin(store, "r1")
    await run.write(*tokens(3))
    move_back = rename(path)
    for _ in range(3):
        await refused(store, "the database file is gone")
    with pytest.raises(StoreUnavailable):
        await store.begin(new_run("r2"))
    assert await read_all(store) == run.acknowledged  # committed records can still be read
    assert content(path) == b""
    move_back()
    await assert_works(store, run)
    began, ended = lines(caplog)
    assert str(path) in began and "move it back" in began
    assert "can be written again" in ended


async def test_file_that_replaced_the_database_is_not_written(store: Store, path: Path) -> None:
    run = await begin(store, "r1")
    await run.write(*tokens(3))
    aside = path.with_name("aside.db")
    move(path, aside)
    overwrite(path, b"another file")
    await refused(store, "another file is in the place of the database")
    assert await asyncio.gather(*(read_all(store) for _ in range(4))) == [run.acknowledged] * 4
    assert content(path) == b"another file"
    move(aside, path)
    await assert_works(store, run)


async def test_database_that_replaced_ours_and_deleted_its_wal_loses_nothing(path: Path) -> None:
    """A program that opens the new file uses the -wal of the old one as its own, and deletes it at its end."""
    aside = path.with_name("aside.db")
    async with opened(lambda: SqliteStore(path)) as store:
        run = await begin(store, "r1")
        await run.write(*tokens(300))
        move(path, aside)
        query(path, "CREATE TABLE mine (x)")
        await refused(store, "another file is in the place of the database")
        move(aside, path)
        await refused(store, "a part of the database is gone, its file -wal")
    async with opened(lambda: SqliteStore(path)) as store:
        assert await read_all(store) == run.acknowledged


async def test_close_does_not_write_to_a_file_that_replaced_the_database(path: Path) -> None:
    async with opened(lambda: SqliteStore(path)) as store:
        await begin(store, "r1")
        move(path, path.with_name("aside.db"))
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("PRAGMA journal_mode = WAL")
            other.execute("CREATE TABLE mine (x)")
            await refused(store, "another file is in the place of the database")
            await store.close()
            other.execute("INSERT INTO mine VALUES (1)")
        assert query(path, "SELECT count(*) FROM mine") == 1


async def test_close_rescues_a_deleted_database(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with opened(lambda: SqliteStore(path)) as store:
        run = await begin(store, "r1")
        await run.write(*tokens(300))
        remove(path.parent)
        await refused(store, "the database file was deleted")
        with pytest.raises(StoreUnavailable):
            await store.append([run.part(*tokens(1))])
    assert "end the server" in lines(caplog)[0]
    rescued = path.with_name("limelight.db.rescued")
    assert str(rescued) in caplog.text
    move(rescued, path)
    async with opened(lambda: SqliteStore(path)) as store:
        assert await read_all(store) == run.acknowledged


async def test_rescue_does_not_overwrite_an_earlier_one(path: Path) -> None:
    path.parent.mkdir()
    overwrite(path.with_name("limelight.db.rescued"), b"an earlier one")
    async with opened(lambda: SqliteStore(path)) as store:
        await begin(store, "r1")
        remove(path)
    assert content(path.with_name("limelight.db.rescued")) == b"an earlier one"
    assert query(path.with_name("limelight.db.rescued-2"), "SELECT count(*) FROM runs") == 1


async def test_database_without_its_wal_is_not_written_and_loses_nothing(path: Path) -> None:
    async with opened(lambda: SqliteStore(path)) as store:
        run = await begin(store, "r1")
        await run.write(*tokens(300))
        remove(path.with_name("limelight.db-wal"))
        await refused(store, "a part of the database is gone, its file -wal")
    async with opened(lambda: SqliteStore(path)) as store:
        assert await read_all(store) == run.acknowledged


# The lock file


async def test_deleted_lock_file_is_created_again(store: Store, path: Path) -> None:
    remove(path.with_name("limelight.db.lock"))
    await store.ping()
    second = SqliteStore(path)
    with pytest.raises(Exception, match="another server uses"):
        await second.open()
    await second.close()


async def test_server_that_lost_its_lock_writes_no_more(store: Store, path: Path) -> None:
    run = await begin(store, "r1")
    await run.write(*tokens(3))
    remove(path.with_name("limelight.db.lock"))
    async with opened(lambda: SqliteStore(path)) as second:
        await refused(store, "another server has taken the data folder")
        assert [orphan.run_id for orphan in await second.orphans(10**15)] == ["r1"]
        await second.ping()


async def test_lock_file_that_cannot_be_filled_still_locks(
    store: Store, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = path.with_name("limelight.db.lock")
    noted = content(lock)
    assert noted
    remove(lock)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", FullFile.open)
        await store.ping()  # the lock is acquired again, which is sufficient
        assert content(lock) == b""
    with pytest.raises(StoreLocked):
        await SqliteStore(path).open()
    remove(lock)
    await store.ping()
    assert content(lock) == noted


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EROFS, "the database can only be read"),
        (errno.EIO, "the disk does not take what is written"),
    ],
)
async def test_lock_file_that_cannot_be_created_is_reported_as_a_disk_fault(
    store: Store, path: Path, monkeypatch: pytest.MonkeyPatch, number: int, words: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    remove(path.with_name("limelight.db.lock"))
    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", fail)
        await refused(store, words)
    await store.ping()


@pytest.mark.parametrize("left", ["", "1", "999999", "not a number"])
async def test_lock_file_left_by_a_crash_does_not_lock(path: Path, left: str) -> None:
    """Whatever its content is, also the id of a running process."""
    path.parent.mkdir()
    overwrite(path.with_name("limelight.db.lock"), left.encode())
    async with opened(lambda: SqliteStore(path)) as store:
        await store.ping()


# Locked, full and damaged databases


async def test_locked_database_is_logged_once_and_recovers(
    store: Store, path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_file, "LOCK_SECONDS", 0.02)
    async with opened(lambda: SqliteStore(path.with_name("b.db"))) as impatient:
        run = await begin(impatient, "r1")
        await run.write(*tokens(3))
        with locked(path.with_name("b.db"), "EXCLUSIVE"):
            for _ in range(3):
                await refused(impatient, "another program has locked the database")
            assert await read_all(impatient) == run.acknowledged
        await assert_works(impatient, run)
    assert len(lines(caplog)) == 2


async def test_ping_times_out(store: Store, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "PING_SECONDS", 0.02)
    with locked(path):
        await refused(store, "the database does not answer")


async def test_full_disk_is_reported_until_all_refused_writes_are_done(
    store: Store, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """SQLite's page limit raises the same error as a full disk."""
    run = await begin(store, "r1")
    await run.write(*tokens(3))
    pages: list[int] = []

    def limit(db: sqlite3.Connection, most: int) -> None:
        pages.extend(db.execute(f"PRAGMA max_page_count = {most}").fetchone())

    assert isinstance(store, SqliteStore)
    writer = store._writer  # pyright: ignore[reportPrivateUsage]
    await writer.do(lambda db: limit(db, 1))
    part = run.part(*tokens(4000))
    for _ in range(3):
        with pytest.raises(StoreUnavailable) as error:
            await store.append([part])
        assert error.value.words == "the disk is full"
    assert await read_all(store) == run.acknowledged
    await store.renew(10**15)  # an empty transaction still succeeds, which does not end the fault
    await refused(store, "the disk is full")
    with pytest.raises(StoreUnavailable):
        await store.begin(new_run("r2"))
    await writer.do(lambda db: limit(db, 2**30))
    await store.append([part])
    assert await read_all(store) == [*run.acknowledged, *part.records]
    began, ended = lines(caplog)
    assert "the disk is full" in began and "make room" in began
    assert "can be written again" in ended
    await store.begin(new_run("r3", SessionRef("ann", "s2")))


@pytest.mark.requirement("damaged-database")
async def test_damaged_database_stays_failing(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A damaged file may accept a write and not return it, so no later success ends this fault."""
    async with opened(lambda: SqliteStore(path)) as store:
        run = await begin(store, "r1")
        await run.write(*tokens(3000))
        await run.end()
    damaged = bytearray(content(path))
    damaged[8192:] = os.urandom(len(damaged) - 8192)
    async with opened(lambda: SqliteStore(path)) as store:
        assert not store.is_failing
        with path.open("r+b") as file:  # in place, as a disk error would do it
            file.write(damaged)
        with pytest.raises(StoreUnavailable, match="cannot be read"):
            await read_all(store)
        for _ in range(3):
            await refused(store, DAMAGED)
            with pytest.raises(StoreUnavailable, match="damaged"):
                await store.begin(new_run("r2"))
        assert store.is_failing
        assert [line for line in lines(caplog) if "restore a backup" in line] == lines(caplog)
        assert len(lines(caplog)) == 1


async def test_statement_error_is_not_a_fault_of_the_database(
    store: Store, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    query(path, "CREATE TRIGGER fault BEFORE INSERT ON sessions BEGIN SELECT RAISE(ABORT, 'injected'); END")
    with pytest.raises(StoreUnavailable) as error:
        await store.begin(new_run("r1"))
    assert error.value.words == ""
    assert lines(caplog) == []
