"""The decision whether retention may delete, with times that the test chooses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limelight.runs.retention_clock import (
    CONFIRM_COMMAND,
    DAY_MS,
    Pause,
    RetentionState,
    TrustedTime,
    advise,
    check_clock,
    describe,
    recorded_pause,
    trusted_at_start,
)

T = 1_750_000_000_000
"""A time in June 2025."""
GAP = 7 * DAY_MS
HOUR_MS = 3600 * 1000


def check(trusted: TrustedTime, clock: int, elapsed: int = 0) -> TrustedTime:
    return check_clock(trusted, clock_ms=clock, elapsed_ms=elapsed, max_gap_ms=GAP)


def saved(at: int, *, newest_at: int = T, confirmed_at: int = 0, pause: Pause | None = None) -> RetentionState:
    return RetentionState(trusted=TrustedTime(at, pause), newest_at=newest_at, confirmed_at=confirmed_at)


# While a server runs


@pytest.mark.parametrize("gap", [-GAP, -1, 0, 1, GAP])
def test_clock_within_max_gap_becomes_trusted_time(gap: int) -> None:
    assert check(TrustedTime(T), T + gap) == TrustedTime(T + gap)


def test_clock_ahead_by_more_than_max_gap_pauses() -> None:
    found = check(TrustedTime(T), T + GAP + 1)
    assert found == TrustedTime(T, Pause(expected_at=T, clock_at=T + GAP + 1, behind=False))


def test_clock_behind_by_more_than_max_gap_pauses() -> None:
    found = check(TrustedTime(T), T - GAP - 1)
    assert found == TrustedTime(T, Pause(expected_at=T, clock_at=T - GAP - 1, behind=True))


def test_time_that_the_process_lived_through_needs_no_confirmation() -> None:
    """Also if the process was not able to check for all of it."""
    assert check(TrustedTime(T), T + 60 * DAY_MS, elapsed=60 * DAY_MS) == TrustedTime(T + 60 * DAY_MS)


def test_jump_of_the_clock_between_two_checks_pauses() -> None:
    found = check(TrustedTime(T), T + 400 * DAY_MS, elapsed=HOUR_MS)
    assert found.pause == Pause(expected_at=T + HOUR_MS, clock_at=T + 400 * DAY_MS, behind=False)


def test_trusted_time_advances_while_the_clock_is_wrong() -> None:
    wrong = check(TrustedTime(T), T + 400 * DAY_MS)
    later = check(wrong, T + 410 * DAY_MS, elapsed=10 * DAY_MS)
    assert later == TrustedTime(T + 10 * DAY_MS, wrong.pause), "the same pause, so that it is reported once"


def test_clock_that_was_ahead_and_is_corrected_ends_the_pause() -> None:
    wrong = check(TrustedTime(T), T + 400 * DAY_MS)
    assert check(wrong, T + 10 * DAY_MS, elapsed=10 * DAY_MS) == TrustedTime(T + 10 * DAY_MS)


def test_clock_that_was_behind_and_is_corrected_does_not_end_the_pause() -> None:
    """Records of that time have old dates: retention would delete them at once."""
    wrong = check(TrustedTime(T), 0)
    assert check(wrong, T + HOUR_MS, elapsed=HOUR_MS) == TrustedTime(T + HOUR_MS, wrong.pause)


def test_clock_that_was_behind_and_then_ahead_needs_a_confirmation_after_its_correction() -> None:
    ahead = check(check(TrustedTime(T), 0), T + 400 * DAY_MS)
    assert ahead.pause == Pause(expected_at=T, clock_at=T + 400 * DAY_MS, behind=True)
    assert check(ahead, T).pause == ahead.pause


def test_second_jump_is_another_pause() -> None:
    first = check(TrustedTime(T), T + 400 * DAY_MS)
    second = check(first, T + 800 * DAY_MS, elapsed=HOUR_MS)
    assert second.pause == Pause(expected_at=T + HOUR_MS, clock_at=T + 800 * DAY_MS, behind=False)


@pytest.mark.parametrize("clock", [0, T, T + 400 * DAY_MS])
def test_max_gap_of_zero_trusts_every_clock(clock: int) -> None:
    pause = Pause(expected_at=T, clock_at=0, behind=True)
    assert check_clock(TrustedTime(T, pause), clock_ms=clock, elapsed_ms=0, max_gap_ms=0) == TrustedTime(clock)


WRONG_BY = st.integers(GAP + 1, 10_000 * DAY_MS) | st.integers(-T, -GAP - 1)


@given(st.lists(st.tuples(st.integers(0, 100 * DAY_MS), st.just(0) | WRONG_BY), max_size=20))
def test_wrong_clock_never_becomes_trusted_without_confirmation(checks: list[tuple[int, int]]) -> None:
    trusted, real, was_behind = TrustedTime(T), T, False
    for elapsed, error in checks:
        real += elapsed
        trusted = check(trusted, real + error, elapsed)
        was_behind |= error < 0
        assert trusted.at == real
        assert (trusted.pause is not None) == bool(error or was_behind)


# At start


def test_first_start_trusts_the_newest_record() -> None:
    assert trusted_at_start(None, newest_at=T, confirmed_at=0, clock_ms=T + DAY_MS) == TrustedTime(T)


def test_start_with_an_empty_store_trusts_the_clock() -> None:
    pause = Pause(expected_at=0, clock_at=T, behind=True)
    for state in (None, saved(T, pause=pause)):
        found = trusted_at_start(state, newest_at=None, confirmed_at=T, clock_ms=T + 400 * DAY_MS)
        assert found == TrustedTime(T + 400 * DAY_MS)


def test_start_trusts_the_saved_time_of_a_server_without_traffic() -> None:
    now = T + 60 * DAY_MS
    trusted = trusted_at_start(saved(now), newest_at=T, confirmed_at=0, clock_ms=now + HOUR_MS)
    assert check(trusted, now + HOUR_MS) == TrustedTime(now + HOUR_MS)


def test_start_after_a_year_switched_off_pauses() -> None:
    now = T + 365 * DAY_MS
    trusted = trusted_at_start(saved(T + HOUR_MS), newest_at=T, confirmed_at=0, clock_ms=now)
    assert check(trusted, now).pause == Pause(expected_at=T + HOUR_MS, clock_at=now, behind=False)


def test_records_from_a_clock_that_is_ahead_do_not_end_the_pause_at_the_next_start() -> None:
    wrong = T + 400 * DAY_MS
    pause = Pause(expected_at=T, clock_at=wrong, behind=False)
    trusted = trusted_at_start(
        saved(T + HOUR_MS, newest_at=wrong, pause=pause), newest_at=wrong + HOUR_MS, confirmed_at=0, clock_ms=wrong
    )
    assert check(trusted, wrong).pause == pause


def test_records_in_the_future_do_not_pause_once_the_clock_is_right() -> None:
    state = saved(T, newest_at=T + 400 * DAY_MS)
    trusted = trusted_at_start(state, newest_at=T + 400 * DAY_MS, confirmed_at=0, clock_ms=T + HOUR_MS)
    assert check(trusted, T + HOUR_MS) == TrustedTime(T + HOUR_MS)
    assert check(trusted, T + 400 * DAY_MS).pause is not None, "the guard is on all the same"


def test_first_start_with_records_in_the_future_pauses() -> None:
    future = T + 400 * DAY_MS
    trusted = trusted_at_start(None, newest_at=future, confirmed_at=0, clock_ms=T)
    assert check(trusted, T).pause == Pause(expected_at=future, clock_at=T, behind=True)


def test_start_with_an_older_copy_of_the_store_trusts_that_copys_newest_record() -> None:
    now = T + 365 * DAY_MS
    trusted = trusted_at_start(saved(now, newest_at=now), newest_at=T, confirmed_at=0, clock_ms=now)
    assert check(trusted, now).pause == Pause(expected_at=T, clock_at=now, behind=False)


def test_new_confirmation_at_start_is_trusted_in_place_of_the_saved_time() -> None:
    now = T + 400 * DAY_MS
    state = saved(T, pause=Pause(expected_at=T, clock_at=now, behind=True))
    trusted = trusted_at_start(state, newest_at=T, confirmed_at=now, clock_ms=now)
    assert check(trusted, now) == TrustedTime(now)
    assert check(trusted, now + 400 * DAY_MS).pause is not None, "only that jump was confirmed"


def test_confirmation_that_was_applied_is_not_applied_again() -> None:
    state = saved(T + 30 * DAY_MS, confirmed_at=T)
    assert trusted_at_start(state, newest_at=T, confirmed_at=T, clock_ms=T) == state.trusted


def test_confirmation_whose_file_is_gone_changes_nothing() -> None:
    state = saved(T + 30 * DAY_MS, confirmed_at=T)
    assert trusted_at_start(state, newest_at=T, confirmed_at=0, clock_ms=T) == state.trusted


# What commands show


@pytest.mark.parametrize(
    ("clock", "is_shown"), [(T + 3 * DAY_MS, True), (T + 5 * DAY_MS, True), (T, False), (T + DAY_MS, False)]
)
def test_recorded_pause_is_shown_while_the_clock_is_still_off(clock: int, is_shown: bool) -> None:
    pause = Pause(expected_at=T, clock_at=T + 3 * DAY_MS, behind=False)
    assert recorded_pause(TrustedTime(T, pause), clock) == (pause if is_shown else None)


def test_recorded_pause_of_a_clock_that_was_behind_is_shown_after_its_correction() -> None:
    pause = Pause(expected_at=T, clock_at=0, behind=True)
    assert recorded_pause(TrustedTime(T, pause), T) == pause
    assert recorded_pause(TrustedTime(T), T) is None


def test_description_has_both_times_and_the_gap() -> None:
    ahead = Pause(expected_at=T, clock_at=T + 400 * DAY_MS, behind=False)
    assert describe(ahead) == (
        "the clock read 2026-07-20T15:06:40.000Z, 400.0 days ahead of the expected 2025-06-15T15:06:40.000Z"
    )
    behind = Pause(expected_at=T, clock_at=T - 8 * DAY_MS, behind=True)
    assert "8.0 days behind the expected" in describe(behind)
    assert "6.0 hours ahead of" in describe(Pause(expected_at=T, clock_at=T + 6 * HOUR_MS, behind=False))
    assert "correct it" in advise(ahead) and "too old" in advise(behind)
    assert all(CONFIRM_COMMAND in advise(pause) for pause in (ahead, behind))
