"""During a flood memory stays bounded, and other users are served.

Some floods of `make bench-floods`, for a short time and with larger limits of time.
"""

from collections.abc import Generator

import pytest

from benchmarks.floods.catalog import FLOODS
from benchmarks.floods.measured_user import FIRST_EVENT, HEALTH, PING, STOP
from benchmarks.floods.measurement import measure_flood
from benchmarks.floods.server import FloodProcess, UserProcess
from benchmarks.server_process import raise_fd_limit

SECONDS = 1.5
PATIENCE = 25
"""Limits of time are higher by this factor than on a machine that does nothing else."""
CASES = [
    ("pipeline-unread", False),
    ("pipeline-read", True),
    ("request-and-leave", True),
    ("own-connect-idle", False),
    ("half-body", False),
    ("wrong-keys", False),
    ("stop-own", True),
    ("live-and-leave", True),
    ("socket-ping", True),
    ("socket-protocol-ping-unread", True),
]
"""One flood for each way in which a connection can keep the server busy, and whether it has a key."""


@pytest.fixture(scope="module")
def processes() -> Generator[tuple[UserProcess, FloodProcess]]:
    """The measured user, and the flooding client."""
    raise_fd_limit()
    with UserProcess() as user, FloodProcess() as client:
        yield user, client


@pytest.mark.requirement("attacks")
@pytest.mark.parametrize(("name", "has_key"), CASES)
def test_others_are_served_during_a_flood(
    name: str, has_key: bool, processes: tuple[UserProcess, FloodProcess]
) -> None:
    figures = measure_flood(FLOODS[name], has_key, SECONDS, *processes)
    assert figures.client.opened >= FLOODS[name].connections // 2
    assert {FIRST_EVENT, STOP, PING, HEALTH} <= set(figures.user.latencies)
    assert not figures.breaches(PATIENCE), figures.user.failures
