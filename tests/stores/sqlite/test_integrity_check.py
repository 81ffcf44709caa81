"""The integrity check looks for damage in the background: it delays neither the start nor the shutdown."""

import logging
import sqlite3
import threading
from pathlib import Path

import pytest

from limelight.errors import StoreUnavailable
from limelight.stores.sqlite import SqliteStore, integrity_check
from tests.stores.operations import complete_run, new_run, opened
from tests.stores.sqlite.files import damage_last_page
from tests.support.wait import eventually


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "limelight.db"


async def fill(path: Path) -> None:
    async with opened(lambda: SqliteStore(path)) as store:
        for number in range(20):
            await complete_run(store, f"r{number}", words=500)


@pytest.mark.requirement("damaged-database")
async def test_damage_that_no_request_has_read_is_found(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    await fill(path)
    damage_last_page(path)
    async with opened(lambda: SqliteStore(path)) as store:
        await eventually(lambda: store.is_failing)
        with pytest.raises(StoreUnavailable, match="damaged") as error:
            await store.ping()
        assert error.value.words == "the database is damaged; end the server and restore a backup: " + (
            "limelight restore BACKUP"
        )
        with pytest.raises(StoreUnavailable, match="damaged"):
            await store.begin(new_run("new"))
    (line,) = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert f"{path} cannot be written: the database is damaged (" in line and "limelight restore BACKUP" in line


async def test_sound_database_is_not_reported(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await fill(path)
    found: list[str] = []

    def check(db: sqlite3.Connection, *, quick: bool) -> str:
        found.append(real(db, quick=quick))
        return found[0]

    real = integrity_check.integrity_error
    monkeypatch.setattr(integrity_check, "integrity_error", check)
    async with opened(lambda: SqliteStore(path)) as store:
        await eventually(lambda: bool(found))
        await store.ping()
        assert not store.is_failing
    assert found == [""]


async def test_store_is_used_while_the_check_runs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    may_end = threading.Event()

    def check(db: sqlite3.Connection, *, quick: bool) -> str:
        may_end.wait(10)
        return ""

    monkeypatch.setattr(integrity_check, "integrity_error", check)
    async with opened(lambda: SqliteStore(path)) as store:
        await complete_run(store, "r1")
        assert await store.run("r1") is not None
        may_end.set()


async def test_close_interrupts_a_check(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The statement would take minutes: only the interrupt of `close` ends it."""
    ended: list[sqlite3.Error] = []

    def check(db: sqlite3.Connection, *, quick: bool) -> str:
        count_forever = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
        try:
            db.execute(count_forever).fetchone()
        except sqlite3.Error as error:
            ended.append(error)
            raise
        return ""

    monkeypatch.setattr(integrity_check, "integrity_error", check)
    async with opened(lambda: SqliteStore(path)) as store:
        await store.ping()
    assert [str(error) for error in ended] == ["interrupted"]
    assert not store.is_failing
