"""Large files in the SQLite store: rows of older versions, interrupted writes, and rows that are deleted."""

from pathlib import Path

import pytest

from limelight.errors import StoreUnavailable
from limelight.models import Artifact
from limelight.stores.sqlite import SqliteStore, large_values
from tests.stores.cases_large_values import body_of
from tests.stores.operations import S1, begin, opened
from tests.stores.sqlite.files import query

BODY = body_of(700_000)
FILE = Artifact(artifact_id="a", ref=S1, name="a.bin", media_type="text/plain", body=BODY)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "limelight.db"


async def test_file_that_an_older_version_has_stored_in_one_row_is_read_in_parts(path: Path) -> None:
    async with opened(lambda: SqliteStore(path)) as store:
        await begin(store, "r1")
        await store.put_artifact(FILE, "r1")
    query(path, "DELETE FROM artifact_parts")
    query(path, f"UPDATE artifacts SET body = x'{BODY.hex()}'")
    async with opened(lambda: SqliteStore(path)) as store:
        info = await store.artifact_info("a")
        assert info is not None and info.size == len(BODY)
        parts = [await store.artifact_part(info, at, 100_000) for at in range(0, len(BODY), 100_000)]
        assert b"".join(part or b"" for part in parts) == BODY
        assert await store.artifact("a") == FILE


async def test_file_is_readable_only_when_all_parts_are_stored(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError("interrupted")

    async with opened(lambda: SqliteStore(path)) as store:
        await begin(store, "r1")
        with monkeypatch.context() as patch:
            patch.setattr(large_values, "put_artifact", fail)
            with pytest.raises(StoreUnavailable):
                await store.put_artifact(FILE, "r1")
        assert await store.artifact_info("a") is await store.artifact("a") is None
        await store.put_artifact(FILE, "r1")
        assert await store.artifact("a") == FILE


async def test_deleted_run_leaves_no_parts(path: Path) -> None:
    async with opened(lambda: SqliteStore(path)) as store:
        run = await begin(store, "r1")
        await store.put_artifact(FILE, "r1")
        await run.end()
        await store.delete(S1)
        await store.put_artifact(FILE, "r1")
    assert query(path, "SELECT count(*) FROM artifact_parts") == query(path, "SELECT count(*) FROM artifacts") == 0
