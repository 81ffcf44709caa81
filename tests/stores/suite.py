"""The suite that every store passes. The test file of a store subclasses it and overrides `make_store`:

class TestMyStore(StoreSuite):
    @pytest.fixture
    def make_store(self, ...) -> MakeStore: ...
"""

from collections.abc import AsyncGenerator

import pytest

from limelight.stores.base import Store
from tests.stores.cases_defaults import DefaultCases
from tests.stores.cases_large_values import LargeValueCases
from tests.stores.cases_maintenance import MaintenanceCases
from tests.stores.cases_memories import MemoryCases
from tests.stores.cases_records import RecordCases
from tests.stores.cases_runs import RunCases
from tests.stores.cases_sessions import SessionCases
from tests.stores.operations import MakeStore, opened


class StoreFixtures:
    """The fixtures of the cases; a store's test class overrides `make_store`."""

    @pytest.fixture
    def make_store(self) -> MakeStore:
        raise NotImplementedError("override make_store in the test class of the store")

    @pytest.fixture
    async def store(self, make_store: MakeStore) -> AsyncGenerator[Store]:
        async with opened(make_store) as store:
            yield store


class StoreSuite(
    StoreFixtures,
    SessionCases,
    RunCases,
    RecordCases,
    LargeValueCases,
    MaintenanceCases,
    MemoryCases,
    DefaultCases,
):
    """All cases."""
