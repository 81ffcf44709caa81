"""During an attack memory stays bounded, and other users are served.

The attacks of `make attacks`, with many connections and for a short time.
"""

from pathlib import Path

import pytest

from tests.system.faults.attacks import HTTP_CASES, SOCKET_CASES, Case, measure, open_house

SECONDS = 3.0
PATIENCE = 25
"""Bounds of time are higher by this factor than on a machine that does nothing else."""
CASES = [case for case in (*HTTP_CASES, *SOCKET_CASES) if case.connections > 1]


@pytest.mark.requirement("attacks")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_others_are_served_during_an_attack(tmp_path: Path, case: Case) -> None:
    with open_house(tmp_path / "data") as house:
        seen = measure(house, case, SECONDS)
    assert len(seen.stop) >= 1
    assert not seen.faults(PATIENCE)
