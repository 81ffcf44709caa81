"""Delays between connection attempts: they double, are shortened by jitter, and end after a time limit."""

import pytest

from limelight.client.backoff import MAX_DELAY, Backoff
from limelight.client.errors import ConnectionLost, Limited


@pytest.fixture(autouse=True)
def short_delays() -> None:
    """Keeps the real delays in this module."""


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def delays(backoff: Backoff, clock: Clock, n: int) -> list[float]:
    found: list[float] = []
    for _ in range(n):
        found.append(backoff.next_delay(OSError("cut")))
        clock.now += found[-1]
    return found


def test_backoff_doubles_delays_up_to_the_maximum() -> None:
    clock = Clock()
    found = delays(Backoff(60, clock, jitter=lambda: 1.0), clock, 9)
    assert found == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5, 5, 5])
    assert max(found) == MAX_DELAY


def test_backoff_jitter_shortens_delays_by_up_to_half() -> None:
    clock = Clock()
    assert delays(Backoff(60, clock, jitter=lambda: 0.0), clock, 3) == pytest.approx([0.05, 0.1, 0.2])


def test_backoff_adds_retry_after_of_a_limit() -> None:
    backoff = Backoff(60, Clock(), jitter=lambda: 1.0)
    assert backoff.next_delay(Limited("too often", retry_after=7)) == pytest.approx(7.1)
    assert backoff.next_delay(Limited("too often", retry_after=100)) == 60


def test_backoff_gives_up_after_its_time_limit_and_names_the_cause() -> None:
    clock = Clock()
    backoff = Backoff(60, clock)
    with pytest.raises(ConnectionLost, match=r"gave up after 60 s: cut") as raised:
        delays(backoff, clock, 1000)
    assert clock.now == pytest.approx(160)
    assert isinstance(raised.value.__cause__, OSError)


def test_backoff_restarts_its_time_limit_on_bytes_and_its_delays_on_frames() -> None:
    clock = Clock()
    backoff = Backoff(60, clock, jitter=lambda: 1.0)
    for _ in range(100):
        delays(backoff, clock, 8)
        backoff.restart_timer()
    assert delays(backoff, clock, 1) == [MAX_DELAY]
    backoff.reset()
    assert delays(backoff, clock, 1) == pytest.approx([0.1])
