"""Opening a SQLite store: what goes wrong is said in one line that names the fix, and leaves nothing locked."""

import asyncio
import hashlib
import os
import sqlite3
from collections.abc import Generator
from pathlib import Path

import pytest

from limelight.errors import LimelightError, SetupError, StoreCorrupt, StoreLocked, StoreNewer, TryLater
from limelight.stores.sqlite import SqliteStore, file
from limelight.stores.sqlite.schema import MIGRATIONS
from tests.stores.operations import begin, opened, tokens, whole_run
from tests.stores.sqlite.files import FullFile, content, locked, overwrite, query

MIGRATION_HASHES = ("0b13cc30fd26389c", "47e78b89f14cb2c2", "ceb09daf5dc7c7d4", "c892a5c425010a86")
"""A migration that was released is never edited; a change is one more at the end."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "limelight.db"


async def refused(path: Path, why: type[LimelightError]) -> str:
    """Try to open, twice: the first refusal must not be the reason of the second."""
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
        await whole_run(store, "r1", words=words)


# The version


def test_migrations_are_never_edited() -> None:
    assert tuple(hashlib.sha256(script.encode()).hexdigest()[:16] for script in MIGRATIONS) == MIGRATION_HASHES


async def test_a_new_file_gets_the_newest_version(path: Path) -> None:
    await fill(path)
    assert query(path, "PRAGMA user_version") == len(MIGRATIONS)
    assert query(path, "PRAGMA journal_mode") == "wal"


async def test_a_database_of_version_0_is_migrated(path: Path) -> None:
    query(path, "PRAGMA application_id = 7")
    assert (query(path, "PRAGMA user_version"), content(path) != b"") == (0, True)
    await fill(path)
    assert query(path, "PRAGMA user_version") == len(MIGRATIONS)


async def test_a_migration_that_fails_leaves_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = (*MIGRATIONS, "CREATE TABLE extra (x); CREATE TABLE sessions (y);")
    with monkeypatch.context() as patch:
        patch.setattr("limelight.stores.sqlite.schema.MIGRATIONS", broken)
        await refused(path, StoreCorrupt)
    assert query(path, "PRAGMA user_version") == len(MIGRATIONS)
    assert query(path, "SELECT count(*) FROM sqlite_master WHERE name = 'extra'") == 0
    await fill(path)


async def test_a_newer_database_is_refused_and_left_alone(path: Path) -> None:
    await fill(path)
    query(path, f"PRAGMA user_version = {len(MIGRATIONS) + 98}")
    before = content(path)
    detail = await refused(path, StoreNewer)
    assert f"version {len(MIGRATIONS) + 98}" in detail and f"up to {len(MIGRATIONS)}" in detail
    assert content(path) == before


# Damage


@pytest.mark.parametrize("garbage", [b"not a database at all" * 500, b"SQLite format 3\0" + b"\xff" * 5000])
async def test_garbage_is_corrupt(path: Path, garbage: bytes) -> None:
    overwrite(path, garbage)
    assert path.name in await refused(path, StoreCorrupt)
    assert content(path) == garbage


async def test_a_truncated_file_is_corrupt(path: Path) -> None:
    await fill(path)
    overwrite(path, content(path)[: len(content(path)) // 2])
    await refused(path, StoreCorrupt)


async def test_another_programs_database_is_refused(path: Path) -> None:
    query(path, "CREATE TABLE sessions (mine)")
    await refused(path, StoreCorrupt)
    assert query(path, "SELECT count(*) FROM sqlite_master") == 1


async def test_a_damaged_journal_is_corrupt(path: Path) -> None:
    async with opened(lambda: SqliteStore(path)) as store:
        run = await begin(store, "r1")
        await run.write(*tokens(3))
    query(path, "UPDATE journal SET body = '[[\"r1\", [[1, 2'")
    await refused(path, StoreCorrupt)


# Somebody else has it


async def test_a_second_server_is_refused_until_the_first_is_gone(path: Path) -> None:
    async with opened(lambda: SqliteStore(path)) as store:
        assert "another server uses" in await refused(path, StoreLocked)
        await whole_run(store, "r1")
    await fill(path.with_name("other.db"))
    async with opened(lambda: SqliteStore(path)) as store:
        assert await store.run("r1") is not None


async def test_databases_side_by_side_do_not_lock_each_other(path: Path) -> None:
    async with opened(lambda: SqliteStore(path)), opened(lambda: SqliteStore(path.with_suffix(".other"))) as other:
        await whole_run(other, "r1")
        assert await other.run("r1") is not None


@pytest.mark.parametrize("fresh", [True, False])
async def test_another_program_that_holds_the_file(path: Path, monkeypatch: pytest.MonkeyPatch, fresh: bool) -> None:
    if not fresh:
        await fill(path)
    monkeypatch.setattr(file, "LOCK_SECONDS", 0.05)
    with locked(path, "EXCLUSIVE"):
        assert "end the program that uses it" in await refused(path, StoreLocked)
    await fill(path.with_name("other.db"))
    async with opened(lambda: SqliteStore(path)) as store:
        await store.ping()


# The folder


async def test_a_folder_that_cannot_be(path: Path) -> None:
    overwrite(path, b"a file")
    assert "--data" in await refused(path / "limelight.db", SetupError)
    assert "--data" in await refused(path / "deeper" / "limelight.db", SetupError)


async def test_a_folder_in_the_place_of_the_file(path: Path) -> None:
    await asyncio.to_thread(path.mkdir)
    assert "--data" in await refused(path, SetupError)


@pytest.fixture
def unwritable(path: Path) -> Generator[Path]:
    """For root everything is writable, so root is somebody else for a while."""
    user = os.geteuid()
    path.parent.chmod(0o555)
    if user == 0:
        os.seteuid(65534)
    yield path
    os.seteuid(user)
    path.parent.chmod(0o755)


async def test_a_folder_without_permission(unwritable: Path) -> None:
    detail = await refused(unwritable, SetupError)
    assert "Permission denied" in detail and "--data" in detail


async def test_a_file_without_permission(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As root has every permission, the connection is made one that may only read."""
    await fill(path)

    def connect(address: str, **options: float) -> sqlite3.Connection:
        readable = address.replace("mode=rwc", "mode=ro")
        return real_connect(readable, uri=True, isolation_level=None, check_same_thread=False)

    real_connect = sqlite3.connect
    monkeypatch.setattr("limelight.stores.sqlite.file.sqlite3.connect", connect)
    assert "can only be read" in await refused(path, TryLater)


async def test_a_disk_without_a_byte(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await fill(path)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", FullFile.instead)
        assert "No space left on device): make room" in await refused(path, TryLater)
    async with opened(lambda: SqliteStore(path)) as store:  # and nothing is locked
        assert await store.run("r1") is not None


async def test_folders_are_made(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "limelight.db"
    await fill(path)
    assert content(path) != b""


async def test_a_store_that_never_opened_can_be_closed(path: Path) -> None:
    await SqliteStore(path).close()
    assert content(path) == b""


# The address


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
async def test_urls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, expected: str) -> None:
    monkeypatch.chdir(tmp_path)
    async with opened(lambda: SqliteStore.from_url(url.format(tmp=tmp_path), Path("data"))) as store:
        await store.ping()
        assert content(tmp_path / expected) != b""


@pytest.mark.parametrize(
    "url",
    ["sqlite?FULL", "sqlite?synchronous=OFF", "sqlite?timeout=5", "sqlite:mine.db", "sqlite:///:memory:", "sqlite3"],
)
def test_wrong_urls(tmp_path: Path, url: str) -> None:
    with pytest.raises(SetupError, match=r"synchronous=FULL|sqlite:///relative\.db"):
        SqliteStore.from_url(url, tmp_path)


async def test_a_new_data_folder_is_for_its_owner_only(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "data" / "limelight.db")
    await store.open()
    await store.close()
    assert _mode_of(tmp_path / "data") == 0o700


def _mode_of(folder: Path) -> int:
    return folder.stat().st_mode & 0o777
