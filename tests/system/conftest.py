"""System tests may take long on a busy machine, so their time limit is higher than that of other tests."""

from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
SECONDS = 900
"""Far longer than any of these tests takes; a test that hangs still ends."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(FOLDER) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(SECONDS))
