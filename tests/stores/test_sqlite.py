from pathlib import Path

import pytest

from limelight.stores.sqlite import SqliteStore
from tests.stores.steps import MakeStore
from tests.stores.suite import StoreSuite


class TestSqlite(StoreSuite):
    @pytest.fixture
    def make_store(self, tmp_path: Path) -> MakeStore:
        return lambda: SqliteStore(tmp_path / "limelight.db")
