"""Sortable ids."""

import re

from limelight.ids import now_ms, sortable_id


def test_sortable_ids_are_unique_and_ordered_by_time() -> None:
    before = now_ms()
    ids = [sortable_id("run_") for _ in range(500)]
    assert len(set(ids)) == 500
    assert all(re.fullmatch(r"run_[0-9a-hjkmnp-tv-z]{26}", id_) for id_ in ids)
    times = [time_of(id_.removeprefix("run_")) for id_ in ids]
    assert times == sorted(times)
    assert before <= times[0] <= times[-1] <= now_ms()


def time_of(ulid: str) -> int:
    """The milliseconds in an id's first ten characters, in Crockford's base 32."""
    number = 0
    for character in ulid[:10]:
        number = number * 32 + "0123456789abcdefghjkmnpqrstvwxyz".index(character)
    return number
