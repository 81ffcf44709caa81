"""Decides whether retention may delete old data, or the wall clock may be wrong. Pure: reads no clock, store or file.

Retention deletes by age, so with a wrong clock it would delete data too early. The server therefore maintains a
*trusted time*: the latest time that is probably right. While the server runs, the trusted time advances with
the monotonic clock, and follows the wall clock as long as the two agree. At start, it is the time that the server saved
last or, if there is none, the time of the newest record in the store.

When the wall clock differs from the trusted time by more than `store.retention_max_gap_days`, the server cannot
distinguish a wrong clock from a long shutdown. Retention is then paused until an operator confirms the clock with
`limelight retention confirm`, which makes the clock's time of that moment the trusted one: a later jump needs another
confirmation.

- Clock ahead: records of that time have dates in the future and are kept longer than needed. When the clock is
  corrected, retention continues by itself.
- Clock behind: records of that time have dates that are too old. Retention would delete them as soon as the clock is
  corrected, so the pause lasts until it is confirmed.

Records never make a time trusted while the server runs, because a wrong clock dates them too.
"""

import msgspec

from limelight.timestamps import iso

DAY_MS = 24 * 3600 * 1000
CONFIRM_COMMAND = "limelight retention confirm"


class Pause(msgspec.Struct, frozen=True, kw_only=True):
    """A pause of retention because of a suspicious clock: the time that it showed, and the time that was expected."""

    expected_at: int
    clock_at: int
    behind: bool
    """Whether the clock was behind at some time during the pause; then only a confirmation ends the pause."""

    @property
    def gap_ms(self) -> int:
        """The difference between the clock and the expected time; positive if the clock was ahead."""
        return self.clock_at - self.expected_at


class TrustedTime(msgspec.Struct, frozen=True):
    """The latest time that is probably right, in milliseconds since 1970; also the pause of retention, if any."""

    at: int
    pause: Pause | None = None


class RetentionState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of retention that a server saves for its next start."""

    trusted: TrustedTime
    newest_at: int
    """Time of the newest record when the state was saved. If all records are older, the store is an older copy."""
    confirmed_at: int = 0
    """The clock's time in the operator's confirmation that was applied last; 0 if there was none."""


def check_clock(trusted: TrustedTime, *, clock_ms: int, elapsed_ms: int, max_gap_ms: int) -> TrustedTime:
    """Compare the clock with the trusted time, and return the new trusted time.

    `elapsed_ms` is the monotonic time since `trusted` was determined. `max_gap_ms` 0 means that the clock is always
    trusted.
    """
    expected = trusted.at + elapsed_ms
    gap, pause = clock_ms - expected, trusted.pause
    if not max_gap_ms:
        return TrustedTime(clock_ms)
    if abs(gap) <= max_gap_ms:
        return TrustedTime(clock_ms, pause if pause is not None and pause.behind else None)
    if pause is None or abs(gap - pause.gap_ms) > max_gap_ms:
        behind = gap < 0 or (pause is not None and pause.behind)
        pause = Pause(expected_at=expected, clock_at=clock_ms, behind=behind)
    return TrustedTime(expected, pause)


def trusted_at_start(
    state: RetentionState | None, *, newest_at: int | None, confirmed_at: int, clock_ms: int
) -> TrustedTime:
    """Return the trusted time of a server that starts, with which `check_clock` then compares the clock.

    `newest_at` is the time of the newest record, None for an empty store, in which nothing can be deleted.
    `confirmed_at` is the clock's time at the newest confirmation, 0 if there was none.
    """
    if newest_at is None:
        return TrustedTime(clock_ms)
    if confirmed_at not in (0, 0 if state is None else state.confirmed_at):
        return TrustedTime(confirmed_at)
    if state is None:
        return TrustedTime(newest_at)
    if newest_at < state.newest_at:
        return TrustedTime(min(newest_at, state.trusted.at), state.trusted.pause)
    return state.trusted


def recorded_pause(trusted: TrustedTime, clock_ms: int) -> Pause | None:
    """Return the pause that a server has saved, if the clock is still off by about the same time; None otherwise.

    Commands use this, because their setting `store.retention_max_gap_days` may differ from the server's.
    """
    pause = trusted.pause
    if pause is None or pause.behind:
        return pause
    return pause if abs(clock_ms - trusted.at) > abs(pause.gap_ms) // 2 else None


def describe(pause: Pause) -> str:
    """Return why retention is paused: what the clock reads, and what is expected. Any client may see the text."""
    days = abs(pause.gap_ms) / DAY_MS
    gap = f"{days:.1f} days" if days >= 1 else f"{24 * days:.1f} hours"
    side = "ahead of" if pause.gap_ms > 0 else "behind"
    return f"the clock read {iso(pause.clock_at)}, {gap} {side} the expected {iso(pause.expected_at)}"


def advise(pause: Pause) -> str:
    """Return what an operator can do about paused retention."""
    if pause.behind:
        return (
            "runs that ended while the clock was behind have dates that are too old and may be deleted early: check"
            f" the clock, then run: {CONFIRM_COMMAND}"
        )
    return f"if the clock is right, run: {CONFIRM_COMMAND}; if it is wrong, correct it and retention continues"
