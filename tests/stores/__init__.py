"""Tests of stores. The cases of the suite are imported, not collected, so their assertions are registered here."""

import pytest

for module in (
    "operations",
    "random_traffic",
    "cases_sessions",
    "cases_runs",
    "cases_records",
    "cases_maintenance",
    "cases_memories",
    "cases_defaults",
):
    pytest.register_assert_rewrite(f"tests.stores.{module}")
