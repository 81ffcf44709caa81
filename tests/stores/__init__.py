"""The suite's cases are imported, not collected: without this their assertions would not say what they compared."""

import pytest

for module in ("operations", "random_traffic", "cases_sessions", "cases_runs", "cases_records", "cases_maintenance"):
    pytest.register_assert_rewrite(f"tests.stores.{module}")
