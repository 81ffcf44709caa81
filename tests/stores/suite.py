"""What every store passes. It knows no engine: a store's own test file says how one is made.

class TestMine(StoreSuite):
    @pytest.fixture
    def make_store(self, ...) -> MakeStore: ...
"""

from collections.abc import AsyncGenerator

import pytest

from limelight.stores.base import Store
from tests.stores.cases_maintenance import KeepingCases
from tests.stores.cases_memories import MemoryCases
from tests.stores.cases_records import RecordCases
from tests.stores.cases_runs import RunCases
from tests.stores.cases_sessions import SessionCases
from tests.stores.operations import MakeStore, opened


class StoreFixtures:
    """What the cases need; `make_store` is the part to fill in."""

    @pytest.fixture
    def make_store(self) -> MakeStore:
        raise NotImplementedError("a store's test file says how one is made")

    @pytest.fixture
    async def store(self, make_store: MakeStore) -> AsyncGenerator[Store]:
        async with opened(make_store) as store:
            yield store


class StoreSuite(StoreFixtures, SessionCases, RunCases, RecordCases, KeepingCases, MemoryCases):
    """All of it."""
