"""The in-memory store passes the suite of stores, without a disk."""

from pathlib import Path

import pytest

from limelight.errors import LeaseLost, SetupError
from limelight.models import Cancel
from limelight.stores.memory import MemoryDatabase, MemoryStore
from tests.stores.operations import MakeStore, begin, complete_run, opened, read_all, tokens
from tests.stores.suite import StoreSuite


@pytest.fixture
def database() -> MemoryDatabase:
    return MemoryDatabase()


class TestMemoryStore(StoreSuite):
    @pytest.fixture
    def make_store(self, database: MemoryDatabase) -> MakeStore:
        return lambda: MemoryStore(database)


async def test_stores_from_urls_share_nothing(tmp_path: Path) -> None:
    async with opened(lambda: MemoryStore.from_url("memory://", tmp_path)) as store:
        await complete_run(store, "r1")
        assert await MemoryStore.from_url("memory", tmp_path).run("r1") is None
        assert store.file is None


@pytest.mark.parametrize("url", ["memory://x", "memory:///x.db", "memory?x=1", "sqlite"])
def test_from_url_rejects_options(tmp_path: Path, url: str) -> None:
    with pytest.raises(SetupError, match="memory://"):
        MemoryStore.from_url(url, tmp_path)


async def test_note_messages_is_read_back() -> None:
    store = MemoryStore()
    await complete_run(store, "r1")
    await store.note_messages("r1", 5)
    run = await store.run("r1")
    assert run is not None and run.messages == 5


async def test_signal_reaches_the_process_that_holds_the_run(database: MemoryDatabase) -> None:
    holder, other = MemoryStore(database), MemoryStore(database)
    await begin(holder, "r1")
    assert await other.signal(Cancel("r1", "stop"), now=1000) == "sent"
    assert await anext(holder.wakes()) == "r1"
    assert await holder.signals("r1") == await other.signals("r1") == [Cancel("r1", "stop")]


async def test_run_with_an_expired_lease_is_taken_over_by_another_process(database: MemoryDatabase) -> None:
    first, second = MemoryStore(database), MemoryStore(database)
    run = await begin(first, "r1")
    await first.renew(2000)
    assert (await first.orphans(3000), await second.orphans(1999)) == ([], [])
    assert not await second.take_over("r1", until=5000, now=1999)
    assert [orphan.run_id for orphan in await second.orphans(2000)] == ["r1"]
    assert await second.take_over("r1", until=5000, now=2000)
    with pytest.raises(LeaseLost):
        await run.write(*tokens(1))
    assert await read_all(first) == []
