"""Migration of a database of an older version: it is copied first, and an interrupted migration is completed."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from limelight.errors import SetupError
from limelight.stores.sqlite import SqliteStore
from limelight.stores.sqlite.schema import MIGRATIONS
from tests.stores.operations import opened
from tests.stores.sqlite.files import content, overwrite, query

OLD = 3
CRASH = f"""
import os, sqlite3, sys
from pathlib import Path
from limelight.stores.sqlite import schema

db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.create_function("crash", 0, lambda: os._exit(9))
schema.MIGRATIONS = (*schema.MIGRATIONS[:{OLD}], "CREATE TABLE half (x); SELECT crash();")
schema.migrate(db, Path(sys.argv[1]))
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database of version 3 as a killed server leaves it: a part is only in its write-ahead log."""
    path = tmp_path / "data" / "limelight.db"
    path.parent.mkdir()
    program = (
        "import os, sqlite3, sys; from limelight.stores.sqlite.schema import MIGRATIONS\n"
        "db = sqlite3.connect(sys.argv[1], isolation_level=None); db.execute('PRAGMA journal_mode = WAL')\n"
        f"db.executescript(''.join(MIGRATIONS[:{OLD}]) + 'PRAGMA user_version = {OLD};')\n"
        "db.execute('INSERT INTO sessions (owner, session_id, agent, title, created_at, active_at)"
        " VALUES (?, ?, ?, ?, 1, 1)', ('ann', 's1', 'echo', 'old'))\n"
        "os._exit(0)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(path)], check=True)
    assert content(path.with_name("limelight.db-wal"))
    return path


def backups(path: Path) -> list[str]:
    return sorted(file.name for file in path.parent.iterdir() if ".v" in file.name)


@pytest.mark.requirement("upgrade-copy")
async def test_older_database_is_copied_before_its_migration(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with opened(lambda: SqliteStore(path)) as store:
        assert [session.title for session in await store.sessions("ann")] == ["old"]
    assert query(path, "PRAGMA user_version") == len(MIGRATIONS)
    (name,) = backups(path)
    assert name == "limelight.db.v3.bak"
    kept = path.with_name(name)
    assert str(kept) in caplog.text and caplog.text.count("\n") == 1
    assert mode_of(kept) == 0o600
    assert (query(kept, "PRAGMA user_version"), query(kept, "SELECT title FROM sessions")) == (OLD, "old")
    async with opened(lambda: SqliteStore(path)):
        assert backups(path) == [name]


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o777


async def test_new_database_is_not_copied(tmp_path: Path) -> None:
    async with opened(lambda: SqliteStore(tmp_path / "limelight.db")):
        assert backups(tmp_path / "limelight.db") == []


@pytest.mark.requirement("upgrade-copy")
async def test_migration_copy_does_not_overwrite_an_earlier_one(path: Path) -> None:
    overwrite(path.with_name("limelight.db.v3.bak"), b"of last year")
    overwrite(path.with_name("limelight.db.v3.part"), b"half a copy")
    async with opened(lambda: SqliteStore(path)):
        assert backups(path) == ["limelight.db.v3-2.bak", "limelight.db.v3.bak"]
    assert content(path.with_name("limelight.db.v3.bak")) == b"of last year"


async def test_migration_without_room_for_the_copy_is_refused(path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    store = SqliteStore(path)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, hard))
    try:
        with pytest.raises(SetupError) as error:
            await store.open()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "make room for 1 MB" in error.value.detail and "\n" not in error.value.detail
    assert (query(path, "PRAGMA user_version"), backups(path)) == (OLD, [])
    async with opened(lambda: SqliteStore(path)) as again:
        await again.ping()


def crash(path: Path) -> None:
    assert subprocess.run([sys.executable, "-c", CRASH, str(path)], timeout=60).returncode == 9


@pytest.mark.requirement("upgrade-interrupted")
async def test_migration_interrupted_by_a_crash_is_completed_at_the_next_start(path: Path) -> None:
    for _ in range(2):
        crash(path)
        assert query(path, "PRAGMA user_version") == OLD
    assert query(path, "SELECT count(*) FROM sqlite_master WHERE name = 'half'") == 0
    async with opened(lambda: SqliteStore(path)) as store:
        assert [session.title for session in await store.sessions("ann")] == ["old"]
    assert query(path, "PRAGMA user_version") == len(MIGRATIONS)
    assert backups(path) == ["limelight.db.v3.bak"]
