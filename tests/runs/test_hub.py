"""The hub: lanes that are bounded and shared, and channels that exist only while somebody watches."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limelight.dialects.encoder import SseEncoder
from limelight.dialects.records import RecordsDialect
from limelight.events import AnyEvent, Record, RunFinished, Status
from limelight.models import SessionRef
from limelight.runs.hub import HELD_BACK, LANE_BYTES, LANE_RECORDS, Hub, Lane
from tests.support.strategies import as_records

REF = SessionRef("local", "s")


def statuses(count: int, *, first_seq: int = 1, text: str = "x") -> list[Record]:
    return as_records([Status(text=text)] * count, first_seq=first_seq)


def new_lane(head: int = 0) -> Lane:
    return Lane(SseEncoder(RecordsDialect), head)


def kept(lane: Lane) -> bytes:
    return lane.since(lane.base - 1, lane.head)


def encoded(records: list[Record]) -> bytes:
    encoder = SseEncoder(RecordsDialect)
    return b"".join(encoder.encode(record) for record in records)


# Lanes


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(1, 700), st.sampled_from(["", "x" * 900, "x" * 50_000])), max_size=6))
def test_a_lane_keeps_the_newest_frames_within_its_bounds(batches: list[tuple[int, str]]) -> None:
    lane, records = new_lane(), list[Record]()
    for count, text in batches:
        shown = len(records)
        batch = statuses(min(count, 40) if len(text) > 1000 else count, first_seq=shown + 1, text=text)
        records += batch
        assert lane.feed(batch, shown)
        assert lane.head == len(records)
        assert lane.head - lane.base + 1 <= LANE_RECORDS + len(batch)
        assert len(kept(lane)) <= LANE_BYTES
        assert kept(lane) == encoded(records[lane.base - 1 :])


def test_trimming_drops_half_so_that_it_happens_rarely() -> None:
    lane, bases = new_lane(), set[int]()
    for record in statuses(2000):
        lane.feed([record], record.seq - 1)
        bases.add(lane.base)
        assert lane.head - lane.base < LANE_RECORDS
    assert len(bases) <= 2000 // (LANE_RECORDS // 2) + 1
    assert lane.head - lane.base + 1 >= LANE_RECORDS // 2


def test_trimming_by_size_drops_half_too() -> None:
    lane, bases = new_lane(), set[int]()
    for record in statuses(1000, text="x" * 4000):
        lane.feed([record], record.seq - 1)
        bases.add(lane.base)
    assert len(kept(lane)) >= LANE_BYTES // 3
    assert len(bases) <= 1000 // (LANE_BYTES // 4100 // 2) + 1


def test_what_viewers_were_not_woken_for_is_kept() -> None:
    lane = new_lane()
    lane.feed(statuses(LANE_RECORDS), shown=0)
    lane.feed(statuses(LANE_RECORDS, first_seq=LANE_RECORDS + 1), shown=10)
    assert lane.base <= 11
    lane.feed(statuses(1, first_seq=2 * LANE_RECORDS + 1), shown=2 * LANE_RECORDS)
    assert lane.base > 11


def test_a_frame_that_is_larger_than_the_lane_empties_it() -> None:
    lane = new_lane()
    assert lane.feed(statuses(1, text="x" * (LANE_BYTES + 1)), shown=0)
    assert (lane.base, lane.head, kept(lane)) == (2, 1, b"")
    assert lane.feed(statuses(1, first_seq=2), shown=1)
    assert kept(lane) == encoded(statuses(1, first_seq=2))


def test_viewers_side_by_side_get_the_same_bytes_object() -> None:
    lane = new_lane()
    lane.feed(statuses(5), shown=0)
    assert lane.since(1, 5) is lane.since(1, 5)
    assert lane.since(2, 4) == encoded(statuses(2, first_seq=3))
    assert lane.since(5, 5) == b""


def test_a_slice_is_not_mixed_up_after_more_has_come() -> None:
    lane = new_lane()
    lane.feed(statuses(2), shown=0)
    assert lane.since(0, 2) == encoded(statuses(2))
    lane.feed(statuses(600, first_seq=3), shown=2)
    assert lane.since(600, 602) == encoded(statuses(2, first_seq=601))


def test_what_the_lane_has_already_is_not_taken_twice() -> None:
    lane = new_lane(head=3)
    assert lane.feed(statuses(5), shown=3)
    assert (lane.base, lane.head, kept(lane)) == (4, 5, encoded(statuses(2, first_seq=4)))


def test_a_hole_makes_a_lane_useless() -> None:
    lane = new_lane(head=3)
    assert not lane.feed(statuses(2, first_seq=5), shown=3)
    assert not lane.feed([*statuses(1, first_seq=4), *statuses(1, first_seq=6)], shown=3)


def test_a_lane_knows_where_runs_ended_as_far_as_it_reaches() -> None:
    lane = new_lane()
    run: list[AnyEvent] = [Status(text="x"), RunFinished()]
    lane.feed(as_records(run * 3), shown=0)
    assert [lane.end_after(seq) for seq in range(7)] == [2, 2, 4, 4, 6, 6, None]
    lane.feed(statuses(LANE_RECORDS, first_seq=7), shown=200)
    assert lane.base > 6
    assert lane.end_after(0) is None
    assert lane.ends == []


# Channels


async def test_publishing_wakes_those_who_wait() -> None:
    hub = Hub()
    channel = hub.enter(REF, "records")
    waits = [channel.wait(), channel.wait()]
    hub.publish(SessionRef("local", "other"), statuses(1))
    assert not any(wait.done() for wait in waits)
    hub.publish(REF, statuses(3))
    assert all(wait.done() for wait in waits)
    assert channel.published == 3


@pytest.fixture
def long_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    """So long that what is held back stays there."""
    monkeypatch.setattr("limelight.runs.hub.INTERVAL", 3600)


async def test_what_comes_on_the_heels_of_another_is_shown_a_little_later() -> None:
    hub = Hub()
    channel = hub.enter(REF, "records")
    hub.publish(REF, statuses(1))
    held = channel.wait()
    hub.publish(REF, statuses(1, first_seq=2))
    await asyncio.wait_for(held, 5)
    assert not channel.holds_back


@pytest.mark.usefixtures("long_interval")
async def test_viewers_are_not_woken_for_each_event_but_for_the_end_of_a_run() -> None:
    hub = Hub()
    channel = hub.enter(REF, "records")
    hub.publish(REF, statuses(1))
    held = channel.wait()
    hub.publish(REF, statuses(1, first_seq=2))
    assert not held.done()
    end: list[AnyEvent] = [RunFinished()]
    hub.publish(REF, as_records(end, first_seq=3))
    assert held.done()


@pytest.mark.usefixtures("long_interval")
async def test_much_is_not_held_back() -> None:
    hub = Hub()
    channel = hub.enter(REF, "records")
    hub.publish(REF, statuses(1))
    held = channel.wait()
    hub.publish(REF, statuses(HELD_BACK, first_seq=2))
    assert held.done()


async def test_one_who_waits_no_more_does_not_trouble_the_others() -> None:
    hub = Hub()
    channel = hub.enter(REF, "records")
    gone, there = channel.wait(), channel.wait()
    gone.cancel()
    hub.publish(REF, statuses(1))
    assert there.done()


async def test_a_session_that_is_gone_sends_its_viewers_away() -> None:
    hub = Hub()
    channel = hub.enter(REF, "records")
    waiting = channel.wait()
    hub.forget(REF)
    assert waiting.done()
    assert channel.over
    successor = hub.enter(REF, "records")
    assert successor is not channel
    hub.leave(REF, channel, "records")
    assert hub.enter(REF, "records") is successor


async def test_publishing_to_nobody_costs_nothing_and_keeps_nothing() -> None:
    hub = Hub()
    hub.publish(REF, statuses(3))
    assert hub.enter(REF, "records").published == 0


async def test_publishing_nothing_is_allowed() -> None:
    hub = Hub()
    channel = hub.enter(REF, "records")
    hub.publish(REF, [])
    assert channel.published == 0


def test_a_lane_goes_with_the_last_viewer_of_its_format() -> None:
    hub = Hub()
    channel = hub.enter(REF, "records")
    assert hub.enter(REF, "records") is channel
    assert hub.enter(REF, "typed") is channel
    channel.lanes["records"] = new_lane()
    channel.lanes["typed"] = new_lane()
    assert hub.viewers == 3
    hub.leave(REF, channel, "records")
    assert set(channel.lanes) == {"records", "typed"}
    hub.leave(REF, channel, "records")
    assert set(channel.lanes) == {"typed"}


def test_a_channel_goes_with_its_last_viewer() -> None:
    hub = Hub()
    first = hub.enter(REF, "records")
    hub.leave(REF, first, "records")
    assert hub.viewers == 0
    assert hub.enter(REF, "records") is not first


async def test_a_hole_removes_the_lane_so_that_viewers_read_again() -> None:
    hub = Hub()
    channel = hub.enter(REF, "records")
    channel.lanes["records"] = new_lane()
    hub.publish(REF, statuses(1))
    assert set(channel.lanes) == {"records"}
    hub.publish(REF, statuses(1, first_seq=5))
    assert channel.lanes == {}
