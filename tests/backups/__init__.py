"""Tests of backups. The assertions of the shared operations are registered here."""

import pytest

pytest.register_assert_rewrite("tests.backups.operations")
