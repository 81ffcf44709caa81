"""Waiting between tries: growing, shortened by chance, and not for ever."""

import pytest

from limelight.client.backoff import MOST_SECONDS, Patience
from limelight.client.errors import ConnectionLost, Limited


@pytest.fixture(autouse=True)
def short_waits() -> None:
    """Not here."""


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def waits(patience: Patience, clock: Clock, n: int) -> list[float]:
    found: list[float] = []
    for _ in range(n):
        found.append(patience.next_wait(OSError("cut")))
        clock.now += found[-1]
    return found


def test_waits_double_up_to_a_limit() -> None:
    clock = Clock()
    found = waits(Patience(60, clock, chance=lambda: 1.0), clock, 9)
    assert found == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5, 5, 5])
    assert max(found) == MOST_SECONDS


def test_chance_takes_up_to_half() -> None:
    clock = Clock()
    assert waits(Patience(60, clock, chance=lambda: 0.0), clock, 3) == pytest.approx([0.05, 0.1, 0.2])


def test_at_a_limit_it_waits_as_long_as_the_server_says() -> None:
    patience = Patience(60, Clock(), chance=lambda: 1.0)
    assert patience.next_wait(Limited("too often", retry_after=7)) == pytest.approx(7.1)
    assert patience.next_wait(Limited("too often", retry_after=100)) == 60


def test_it_gives_up_after_its_time_and_names_the_cause() -> None:
    clock = Clock()
    patience = Patience(60, clock)
    with pytest.raises(ConnectionLost, match=r"gave up after 60 s: cut") as raised:
        waits(patience, clock, 1000)
    assert clock.now == pytest.approx(160)
    assert isinstance(raised.value.__cause__, OSError)


def test_any_byte_renews_the_time_and_what_was_worth_it_the_waits() -> None:
    clock = Clock()
    patience = Patience(60, clock, chance=lambda: 1.0)
    for _ in range(100):
        waits(patience, clock, 8)
        patience.alive()
    assert waits(patience, clock, 1) == [MOST_SECONDS]
    patience.well()
    assert waits(patience, clock, 1) == pytest.approx([0.1])
