"""Inspection describes a database that may be in use, says what to do about faults, and changes nothing."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from limelight.errors import SetupError, StoreCorrupt, StoreLocked, StoreNewer, StoreUnavailable
from limelight.stores.sqlite import SqliteStore, read_only_inspection
from limelight.stores.sqlite.schema import MIGRATIONS
from tests.stores.operations import begin, complete_run, opened, read_all, tokens
from tests.stores.sqlite.files import content, copy_live_files, locked, move, overwrite, query, remove

NOW = f"whole, schema version {len(MIGRATIONS)}, "


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "limelight.db"


async def examine(path: Path) -> str:
    return await SqliteStore(path).examine()


async def test_examine_describes_a_database_with_and_without_a_server(path: Path) -> None:
    assert await examine(path) == "made at the first start"
    assert content(path) == b""
    async with opened(lambda: SqliteStore(path)) as store:
        await begin(store, "r1")
        beside = await examine(path)
        assert beside.startswith(NOW) and beside.endswith("a running server uses it")
        await store.ping()
    alone = await examine(path)
    assert alone.startswith(NOW) and "server" not in alone


async def test_examine_does_not_open_a_file_that_replaced_the_servers(path: Path, tmp_path: Path) -> None:
    """SQLite would take the server's -wal for that of the other file, and write it there."""
    async with opened(lambda: SqliteStore(tmp_path / "other.db")) as other:
        await complete_run(other, "r0")
    before = content(tmp_path / "other.db")
    async with opened(lambda: SqliteStore(path)) as store:
        run = await begin(store, "r1")
        await run.write(*tokens(300))
        move(path, tmp_path / "aside.db")
        overwrite(path, before)
        with pytest.raises(StoreUnavailable, match="another file is in the place of the database"):
            await examine(path)
        assert content(path) == before
        move(tmp_path / "aside.db", path)
        assert (await examine(path)).startswith(NOW)
    async with opened(lambda: SqliteStore(path)) as store:
        assert await read_all(store) == run.acknowledged


@pytest.mark.requirement("damaged-database")
async def test_examine_finds_an_index_that_lacks_a_row(path: Path) -> None:
    """A session that is missing in the index is not found by its id. Only the complete check finds this damage."""
    async with opened(lambda: SqliteStore(path)) as store:
        await complete_run(store, "r1")
    with closing(sqlite3.connect(path)) as db:
        sql = "SELECT sql FROM sqlite_master WHERE name = 'sessions_by_age'"
        (made,) = db.execute(sql).fetchone()
        for definition in (made + " WHERE active_at < 0", made):  # SQLite keeps the rows of the partial index
            db.execute("PRAGMA writable_schema = ON")
            if definition == made:
                db.execute("REINDEX sessions_by_age")
            db.execute("UPDATE sqlite_master SET sql = ? WHERE name = 'sessions_by_age'", (definition,))
            version = db.execute("PRAGMA schema_version").fetchone()[0]
            db.execute(f"PRAGMA schema_version = {version + 1}")
            db.commit()
    with pytest.raises(StoreCorrupt, match="missing from index sessions_by_age"):
        await examine(path)


async def test_examine_reports_a_missing_wal(path: Path) -> None:
    async with opened(lambda: SqliteStore(path)) as store:
        await begin(store, "r1")
        remove(path.with_name("limelight.db-wal"))
        with pytest.raises(StoreUnavailable, match="its file -wal"):
            await examine(path)


async def test_examine_does_not_migrate(path: Path) -> None:
    async with opened(lambda: SqliteStore(path)) as store:
        await complete_run(store, "r1")
    query(path, "PRAGMA user_version = 3")
    assert f"the next start brings it to version {len(MIGRATIONS)}" in await examine(path)
    assert query(path, "PRAGMA user_version") == 3
    query(path, "PRAGMA user_version = 99")
    with pytest.raises(StoreNewer, match="upgrade"):
        await examine(path)


async def test_examine_reports_damage(path: Path) -> None:
    async with opened(lambda: SqliteStore(path)) as store:
        await complete_run(store, "r1", words=2000)
    whole = content(path)
    page = query(path, "SELECT rootpage FROM sqlite_master WHERE name = 'chunks'") - 1
    overwrite(path, whole[: page * 4096] + b"\xff" * 4096 + whole[(page + 1) * 4096 :])
    with pytest.raises(StoreCorrupt, match="restore a backup"):
        await examine(path)
    overwrite(path, b"no database at all" * 300)
    with pytest.raises(StoreCorrupt, match="restore a backup"):
        await examine(path)


async def test_examine_reports_a_database_that_was_moved_from_its_server(path: Path) -> None:
    async with opened(lambda: SqliteStore(path)):
        move(path, path.with_name("aside.db"))
        with pytest.raises(StoreUnavailable, match="move the file back"):
            await examine(path)
        move(path.with_name("aside.db"), path)


async def test_examine_reports_a_locked_database(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def assert_reported() -> None:
        with locked(path), pytest.raises(StoreLocked, match="another program has locked"):
            await examine(path)
        assert (await examine(path)).startswith(NOW)

    monkeypatch.setattr(read_only_inspection, "LOCK_SECONDS", 0.02)
    async with opened(lambda: SqliteStore(path)) as store:
        await begin(store, "r1")
        await assert_reported()
    await assert_reported()


async def test_missing_database_with_a_wal_is_not_created_again(path: Path, tmp_path: Path) -> None:
    """What a crash left only in the -wal would be lost."""
    async with opened(lambda: SqliteStore(path)) as store:
        run = await begin(store, "r1")
        await run.write(*tokens(300))
        crashed = copy_live_files(path, tmp_path / "crashed")
    move(crashed, tmp_path / "aside.db")
    with pytest.raises(StoreUnavailable, match="move it back"):
        await examine(crashed)
    with pytest.raises(SetupError, match="move the database back"):
        await SqliteStore(crashed).open()
    move(tmp_path / "aside.db", crashed)
    async with opened(lambda: SqliteStore(crashed)) as store:
        assert await read_all(store) == run.acknowledged


def may_only_read(name: Path, mode: int) -> bool:
    return mode == os.R_OK


async def test_examine_reports_a_read_only_database(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may write every file, so `os.access` is replaced."""
    async with opened(lambda: SqliteStore(path)) as store:
        await complete_run(store, "r1")
    monkeypatch.setattr(os, "access", may_only_read)
    with pytest.raises(StoreUnavailable, match="can only be read"):
        await examine(path)


async def test_examine_reads_a_database_in_a_read_only_folder(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite cannot create its files in that folder, so the connection declares the database immutable."""
    async with opened(lambda: SqliteStore(path)) as store:
        await complete_run(store, "r1")
    real, addresses = sqlite3.connect, list[str]()

    def connect(address: str, **options: Any) -> sqlite3.Connection:
        addresses.append(address.rpartition("?")[2])
        if address.endswith("mode=ro"):
            address = address.replace("limelight.db", "nowhere.db")
        return real(address, **options)

    monkeypatch.setattr("limelight.stores.sqlite.snapshots.sqlite3.connect", connect)
    monkeypatch.setattr(os, "access", may_only_read)
    with pytest.raises(StoreUnavailable, match="can only be read"):
        await examine(path)
    assert addresses == ["mode=ro", "immutable=1"]


async def test_query_of_an_unopened_database_changes_nothing_and_reports_faults(path: Path, tmp_path: Path) -> None:
    assert await SqliteStore(path).newest_at() is None
    assert content(path) == b""
    async with opened(lambda: SqliteStore(path)) as store:
        await complete_run(store, "r1")
        move(path, tmp_path / "aside.db")
        overwrite(path, b"another file")
        with pytest.raises(StoreUnavailable, match="another file is in the place of the database"):
            await SqliteStore(path).newest_at()
        move(tmp_path / "aside.db", path)
    before = content(path)
    assert await SqliteStore(path).newest_at() is not None
    assert content(path) == before
    query(path, "PRAGMA user_version = 99")
    with pytest.raises(StoreNewer, match="upgrade"):
        await SqliteStore(path).newest_at()
    overwrite(path, b"no database at all" * 300)
    with pytest.raises(StoreCorrupt, match="restore a backup"):
        await SqliteStore(path).retention_counts(0)
    overwrite(path, b"")
    assert await SqliteStore(path).newest_at() is None
