"""Opening a SQLite store: an error is one line that names the fix, and it leaves nothing locked."""

import asyncio
import hashlib
import os
import sqlite3
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import pytest

from limelight.errors import LimelightError, SetupError, StoreCorrupt, StoreLocked, StoreNewer, TryLater
from limelight.stores.sqlite import SqliteStore, database_file
from limelight.stores.sqlite.schema import MIGRATIONS, TABLES
from tests.stores.operations import begin, complete_run, opened, tokens
from tests.stores.sqlite.files import FullFile, content, copy_live_files, locked, overwrite, query, remove

MIGRATION_HASHES = (
    "0b13cc30fd26389c",
    "47e78b89f14cb2c2",
    "ceb09daf5dc7c7d4",
    "c892a5c425010a86",
    "98537f7c0dcc996f",
)
"""Released migrations are never edited; a change is a new one at the end."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "limelight.db"


async def refused(path: Path, why: type[LimelightError]) -> str:
    """Assert that opening fails, twice: the first failure must not cause the second. Return the detail."""
    details: list[str] = []
    for _ in range(2):
        store = SqliteStore(path)
        with pytest.raises(why) as error:
            await store.open()
        assert type(error.value) is why
        await store.close()
        details.append(error.value.detail)
    assert details[0] == details[1]
    return details[0]


async def fill(path: Path, words: int = 2000) -> None:
    async with opened(lambda: SqliteStore(path)) as store:
        await complete_run(store, "r1", words=words)


# The version


def test_released_migrations_are_unchanged() -> None:
    assert tuple(hashlib.sha256(script.encode()).hexdigest()[:16] for script in MIGRATIONS) == MIGRATION_HASHES


async def test_new_database_has_the_newest_version(path: Path) -> None:
    await fill(path)
    assert query(path, "PRAGMA user_version") == len(MIGRATIONS)
    assert query(path, "PRAGMA journal_mode") == "wal"


async def test_database_of_version_0_is_migrated(path: Path) -> None:
    query(path, "PRAGMA application_id = 7")
    assert (query(path, "PRAGMA user_version"), content(path) != b"") == (0, True)
    await fill(path)
    assert query(path, "PRAGMA user_version") == len(MIGRATIONS)


async def test_failed_migration_leaves_no_trace(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = (*MIGRATIONS, "CREATE TABLE extra (x); CREATE TABLE sessions (y);")
    with monkeypatch.context() as patch:
        patch.setattr("limelight.stores.sqlite.schema.MIGRATIONS", broken)
        await refused(path, StoreCorrupt)
    assert query(path, "PRAGMA user_version") == len(MIGRATIONS)
    assert query(path, "SELECT count(*) FROM sqlite_master WHERE name = 'extra'") == 0
    await fill(path)


async def test_newer_database_is_refused_and_unchanged(path: Path) -> None:
    await fill(path)
    query(path, f"PRAGMA user_version = {len(MIGRATIONS) + 98}")
    before = content(path)
    detail = await refused(path, StoreNewer)
    assert f"version {len(MIGRATIONS) + 98}" in detail and f"up to {len(MIGRATIONS)}" in detail
    assert content(path) == before


# Damage


@pytest.mark.parametrize("garbage", [b"not a database at all" * 500, b"SQLite format 3\0" + b"\xff" * 5000])
async def test_open_of_garbage_raises_store_corrupt(path: Path, garbage: bytes) -> None:
    overwrite(path, garbage)
    assert path.name in await refused(path, StoreCorrupt)
    assert content(path) == garbage


async def test_open_of_a_truncated_file_raises_store_corrupt(path: Path) -> None:
    await fill(path)
    overwrite(path, content(path)[: len(content(path)) // 2])
    await refused(path, StoreCorrupt)


async def test_open_of_another_programs_database_is_refused(path: Path) -> None:
    query(path, "CREATE TABLE sessions (mine)")
    await refused(path, StoreCorrupt)
    assert query(path, "SELECT count(*) FROM sqlite_master") == 1


async def test_open_with_a_damaged_journal_raises_store_corrupt(path: Path) -> None:
    async with opened(lambda: SqliteStore(path)) as store:
        run = await begin(store, "r1")
        await run.write(*tokens(3))
    query(path, "UPDATE journal SET body = '[[\"r1\", [[1, 2'")
    await refused(path, StoreCorrupt)


@pytest.mark.parametrize("table", TABLES)
async def test_open_without_a_table_raises_store_corrupt(path: Path, table: str) -> None:
    await fill(path)
    query(path, f"DROP TABLE {table}")
    assert table in await refused(path, StoreCorrupt)


def test_tables_of_the_check_are_those_of_the_schema() -> None:
    with closing(sqlite3.connect(":memory:")) as db:
        for script in MIGRATIONS:
            db.executescript(script)
        names = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert names - {"sqlite_sequence"} == set(TABLES)


@pytest.mark.requirement("emptied-database")
@pytest.mark.parametrize("trace", ["limelight.db-wal", "limelight.db.lock", "workspaces", "langgraph.db"])
async def test_open_of_an_emptied_database_is_refused_and_names_the_fix(path: Path, trace: str) -> None:
    """SQLite would take a file of zero bytes for a new database, and delete its write-ahead log."""
    await fill(path)
    if trace != "limelight.db.lock":
        overwrite(path.with_name("limelight.db.lock"), b"")
        overwrite(path.with_name(trace), b"content")
    overwrite(path, b"")
    detail = await refused(path, StoreCorrupt)
    assert f"is empty, but {trace} beside it" in detail and "limelight restore BACKUP" in detail
    with pytest.raises(StoreCorrupt, match="is empty, but"):
        await SqliteStore(path).examine()
    assert content(path) == b""
    remove(path, *([path.with_name(trace)] if trace.endswith("-wal") else []))
    await fill(path)  # begins anew


async def test_open_of_an_empty_file_in_a_new_folder_begins_a_database(path: Path) -> None:
    overwrite(path, b"")
    await fill(path)
    assert content(path) != b""


# Locks


async def test_second_server_is_refused_until_the_first_closes(path: Path) -> None:
    async with opened(lambda: SqliteStore(path)) as store:
        assert "another server uses" in await refused(path, StoreLocked)
        await complete_run(store, "r1")
    await fill(path.with_name("other.db"))
    async with opened(lambda: SqliteStore(path)) as store:
        assert await store.run("r1") is not None


async def test_databases_in_one_folder_do_not_lock_each_other(path: Path) -> None:
    async with opened(lambda: SqliteStore(path)), opened(lambda: SqliteStore(path.with_suffix(".other"))) as other:
        await complete_run(other, "r1")
        assert await other.run("r1") is not None


@pytest.mark.parametrize("fresh", [True, False])
async def test_open_of_a_file_locked_by_another_program_raises_store_locked(
    path: Path, monkeypatch: pytest.MonkeyPatch, fresh: bool
) -> None:
    if not fresh:
        await fill(path)
    monkeypatch.setattr(database_file, "LOCK_SECONDS", 0.05)
    with locked(path, "EXCLUSIVE"):
        assert "end the program that uses it" in await refused(path, StoreLocked)
    await fill(path.with_name("other.db"))
    async with opened(lambda: SqliteStore(path)) as store:
        await store.ping()


# The folder


async def test_open_below_a_file_names_the_data_option(path: Path) -> None:
    overwrite(path, b"a file")
    assert "--data" in await refused(path / "limelight.db", SetupError)
    assert "--data" in await refused(path / "deeper" / "limelight.db", SetupError)


async def test_open_of_a_folder_names_the_data_option(path: Path) -> None:
    await asyncio.to_thread(path.mkdir)
    assert "--data" in await refused(path, SetupError)


@pytest.fixture
def unwritable(path: Path) -> Generator[Path]:
    """A path in a folder without write permission. Root may write everywhere, so it becomes another user."""
    user = os.geteuid()
    path.parent.chmod(0o555)
    if user == 0:
        os.seteuid(65534)
    yield path
    os.seteuid(user)
    path.parent.chmod(0o755)


async def test_open_in_a_folder_without_permission_names_the_data_option(unwritable: Path) -> None:
    detail = await refused(unwritable, SetupError)
    assert "Permission denied" in detail and "--data" in detail


async def test_open_of_a_read_only_file_raises_try_later(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may write every file, so the connection is opened read-only instead."""
    await fill(path)

    def connect(address: str, **options: float) -> sqlite3.Connection:
        readable = address.replace("mode=rwc", "mode=ro")
        return real_connect(readable, uri=True, isolation_level=None, check_same_thread=False)

    real_connect = sqlite3.connect
    monkeypatch.setattr("limelight.stores.sqlite.database_file.sqlite3.connect", connect)
    assert "can only be read" in await refused(path, TryLater)


async def test_open_on_a_full_disk_raises_try_later(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await fill(path)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", FullFile.open)
        assert "No space left on device): make room" in await refused(path, TryLater)
    async with opened(lambda: SqliteStore(path)) as store:  # nothing is locked
        assert await store.run("r1") is not None


@pytest.mark.requirement("data-private")
async def test_open_creates_missing_folders_that_are_private(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "limelight.db"
    await fill(path)
    assert content(path) != b""
    assert _mode_of(path.parent) == 0o700


@pytest.mark.requirement("data-private")
@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
async def test_files_are_private_in_a_folder_that_others_can_read(path: Path, mask: int) -> None:
    path.parent.chmod(0o755)
    before = os.umask(mask)
    try:
        async with opened(lambda: SqliteStore(path)) as store:
            await begin(store, "r1")
            assert _modes(path) == dict.fromkeys((path.name + s for s in ("", "-shm", "-wal", ".lock")), 0o600)
    finally:
        os.umask(before)
    assert _mode_of(path.parent) == 0o755


@pytest.mark.requirement("data-private")
async def test_start_removes_the_permissions_of_others_from_existing_files(path: Path) -> None:
    async with opened(lambda: SqliteStore(path)) as store:
        await begin(store, "r1")
        copy_live_files(path, path.parent / "crashed")
    path = path.parent / "crashed" / path.name
    for name in (f"{path.name}.lock", f"{path.name}.v1.bak", f"{path.name}.rescued"):
        overwrite(path.with_name(name), b"")
    for name in _modes(path):
        path.with_name(name).chmod(0o644)
    async with opened(lambda: SqliteStore(path)) as store:
        assert await store.run("r1") is not None
        assert set(_modes(path).values()) == {0o600}
        assert len(_modes(path)) == 6


@pytest.mark.requirement("data-private")
async def test_lock_file_that_was_deleted_is_made_again_and_private(path: Path) -> None:
    async with opened(lambda: SqliteStore(path)) as store:
        remove(path.with_name(f"{path.name}.lock"))
        await store.ping()
        assert _modes(path)[f"{path.name}.lock"] == 0o600


async def test_store_that_was_never_open_can_be_closed(path: Path) -> None:
    await SqliteStore(path).close()
    assert content(path) == b""


# URLs


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("sqlite", "data/limelight.db"),
        ("sqlite?synchronous=FULL", "data/limelight.db"),
        ("sqlite://", "data/limelight.db"),
        ("sqlite:///mine.db", "mine.db"),
        ("sqlite:///deep/mine.db?synchronous=normal", "deep/mine.db"),
        ("sqlite:///{tmp}/abs.db", "abs.db"),
    ],
)
async def test_from_url_resolves_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    async with opened(lambda: SqliteStore.from_url(url.format(tmp=tmp_path), Path("data"))) as store:
        await store.ping()
        assert content(tmp_path / expected) != b""


@pytest.mark.parametrize(
    "url",
    ["sqlite?FULL", "sqlite?synchronous=OFF", "sqlite?timeout=5", "sqlite:mine.db", "sqlite:///:memory:", "sqlite3"],
)
def test_from_url_rejects_invalid_urls(tmp_path: Path, url: str) -> None:
    with pytest.raises(SetupError, match=r"synchronous=FULL|sqlite:///relative\.db"):
        SqliteStore.from_url(url, tmp_path)


def _mode_of(folder: Path) -> int:
    return folder.stat().st_mode & 0o777


def _modes(path: Path) -> dict[str, int]:
    """Return the modes of all files in the folder of a database."""
    return {file.name: _mode_of(file) for file in path.parent.iterdir() if file.is_file()}
