"""The hub: frame buffers are bounded and shared, and channels exist only while they have viewers."""

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from limelight.dialects.base import Frame
from limelight.dialects.frame_encoder import FrameEncoder
from limelight.dialects.records import RecordsDialect
from limelight.events import AnyEvent, Record, RunFinished, Status
from limelight.models import SessionRef
from limelight.runs.hub import BUFFER_BYTES, BUFFER_RECORDS, FrameBuffer, Hub
from tests.support.strategies import as_records

REF = SessionRef("local", "s")


def statuses(count: int, *, first_seq: int = 1, text: str = "x") -> list[Record]:
    return as_records([Status(text=text)] * count, first_seq=first_seq)


def new_buffer(head: int = 0) -> FrameBuffer:
    return FrameBuffer(FrameEncoder(RecordsDialect), head)


def kept(buffer: FrameBuffer) -> Sequence[Frame]:
    return buffer.since(buffer.base - 1, buffer.head).frames


def encoded(records: list[Record]) -> list[Frame]:
    encoder = FrameEncoder(RecordsDialect)
    return [frame for record in records for frame in encoder.encode(record)]


def size(frames: Sequence[Frame]) -> int:
    return sum(len(frame.payload) for frame in frames)


# Frame buffers


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(1, 700), st.sampled_from(["", "x" * 900, "x" * 50_000])), max_size=6))
def test_buffer_keeps_the_newest_frames_within_its_bounds(batches: list[tuple[int, str]]) -> None:
    buffer, records = new_buffer(), list[Record]()
    for count, text in batches:
        shown = len(records)
        batch = statuses(min(count, 40) if len(text) > 1000 else count, first_seq=shown + 1, text=text)
        records += batch
        assert buffer.feed(batch, shown)
        assert buffer.head == len(records)
        assert buffer.head - buffer.base + 1 <= BUFFER_RECORDS + len(batch)
        assert size(kept(buffer)) <= BUFFER_BYTES
        assert kept(buffer) == encoded(records[buffer.base - 1 :])


def test_trimming_drops_half_so_that_it_happens_rarely() -> None:
    buffer, bases = new_buffer(), set[int]()
    for record in statuses(2000):
        buffer.feed([record], record.seq - 1)
        bases.add(buffer.base)
        assert buffer.head - buffer.base < BUFFER_RECORDS
    assert len(bases) <= 2000 // (BUFFER_RECORDS // 2) + 1
    assert buffer.head - buffer.base + 1 >= BUFFER_RECORDS // 2


def test_trimming_by_size_drops_half_too() -> None:
    buffer, bases = new_buffer(), set[int]()
    for record in statuses(1000, text="x" * 4000):
        buffer.feed([record], record.seq - 1)
        bases.add(buffer.base)
    assert size(kept(buffer)) >= BUFFER_BYTES // 3
    assert len(bases) <= 1000 // (BUFFER_BYTES // 4100 // 2) + 1


def test_trimming_keeps_records_for_which_viewers_were_not_woken() -> None:
    buffer = new_buffer()
    buffer.feed(statuses(BUFFER_RECORDS), woken_seq=0)
    buffer.feed(statuses(BUFFER_RECORDS, first_seq=BUFFER_RECORDS + 1), woken_seq=10)
    assert buffer.base <= 11
    buffer.feed(statuses(1, first_seq=2 * BUFFER_RECORDS + 1), woken_seq=2 * BUFFER_RECORDS)
    assert buffer.base > 11


def test_frame_larger_than_the_buffer_empties_it() -> None:
    buffer = new_buffer()
    assert buffer.feed(statuses(1, text="x" * (BUFFER_BYTES + 1)), woken_seq=0)
    assert (buffer.base, buffer.head, kept(buffer)) == (2, 1, [])
    assert buffer.feed(statuses(1, first_seq=2), woken_seq=1)
    assert kept(buffer) == encoded(statuses(1, first_seq=2))


def test_viewers_at_the_same_position_get_the_same_batch() -> None:
    buffer = new_buffer()
    buffer.feed(statuses(5), woken_seq=0)
    assert buffer.since(1, 5) is buffer.since(1, 5)
    assert buffer.since(2, 4).frames == encoded(statuses(2, first_seq=3))
    assert buffer.since(5, 5).frames == []


def test_batch_is_correct_after_the_buffer_was_trimmed() -> None:
    buffer = new_buffer()
    buffer.feed(statuses(2), woken_seq=0)
    assert buffer.since(0, 2).frames == encoded(statuses(2))
    buffer.feed(statuses(600, first_seq=3), woken_seq=2)
    assert buffer.since(600, 602).frames == encoded(statuses(2, first_seq=601))


def test_feed_skips_records_that_the_buffer_has() -> None:
    buffer = new_buffer(head=3)
    assert buffer.feed(statuses(5), woken_seq=3)
    assert (buffer.base, buffer.head, kept(buffer)) == (4, 5, encoded(statuses(2, first_seq=4)))


def test_feed_reports_a_missing_record() -> None:
    buffer = new_buffer(head=3)
    assert not buffer.feed(statuses(2, first_seq=5), woken_seq=3)
    assert not buffer.feed([*statuses(1, first_seq=4), *statuses(1, first_seq=6)], woken_seq=3)


def test_end_after_finds_ends_of_runs_within_the_buffer() -> None:
    buffer = new_buffer()
    run: list[AnyEvent] = [Status(text="x"), RunFinished()]
    buffer.feed(as_records(run * 3), woken_seq=0)
    assert [buffer.end_after(seq) for seq in range(7)] == [2, 2, 4, 4, 6, 6, None]
    buffer.feed(statuses(BUFFER_RECORDS, first_seq=7), woken_seq=200)
    assert buffer.base > 6
    assert buffer.end_after(0) is None
    assert buffer.ends == []


# Channels


async def test_wake_wakes_the_waiting_viewers_of_one_session() -> None:
    hub = Hub()
    channel = hub.enter(REF, "records")
    waits = [channel.wait(), channel.wait()]
    hub.publish(REF, statuses(3))
    hub.wake(SessionRef("local", "other"))
    assert channel.published == 3
    assert not any(wait.done() for wait in waits)
    hub.wake(REF)
    assert all(wait.done() for wait in waits)


async def test_wake_skips_a_viewer_that_no_longer_waits() -> None:
    hub = Hub()
    channel = hub.enter(REF, "records")
    cancelled, waiting = channel.wait(), channel.wait()
    cancelled.cancel()
    hub.wake(REF)
    assert waiting.done()


async def test_forget_wakes_the_viewers_and_ends_the_channel() -> None:
    hub = Hub()
    channel = hub.enter(REF, "records")
    waiting = channel.wait()
    hub.forget(REF)
    assert waiting.done()
    assert channel.deleted
    successor = hub.enter(REF, "records")
    assert successor is not channel
    hub.leave(REF, channel, "records")
    assert hub.enter(REF, "records") is successor


async def test_publish_without_viewers_keeps_nothing() -> None:
    hub = Hub()
    hub.publish(REF, statuses(3))
    assert hub.enter(REF, "records").published == 0


async def test_publish_of_no_records_does_nothing() -> None:
    hub = Hub()
    channel = hub.enter(REF, "records")
    hub.publish(REF, [])
    assert channel.published == 0


def test_buffer_is_removed_with_the_last_viewer_of_its_format() -> None:
    hub = Hub()
    channel = hub.enter(REF, "records")
    assert hub.enter(REF, "records") is channel
    assert hub.enter(REF, "typed") is channel
    channel.buffers["records"] = new_buffer()
    channel.buffers["typed"] = new_buffer()
    assert hub.viewers == 3
    hub.leave(REF, channel, "records")
    assert set(channel.buffers) == {"records", "typed"}
    hub.leave(REF, channel, "records")
    assert set(channel.buffers) == {"typed"}


def test_channel_is_removed_with_its_last_viewer() -> None:
    hub = Hub()
    first = hub.enter(REF, "records")
    hub.leave(REF, first, "records")
    assert hub.viewers == 0
    assert hub.enter(REF, "records") is not first


async def test_publish_with_a_missing_record_removes_the_buffer() -> None:
    hub = Hub()
    channel = hub.enter(REF, "records")
    channel.buffers["records"] = new_buffer()
    hub.publish(REF, statuses(1))
    assert set(channel.buffers) == {"records"}
    hub.publish(REF, statuses(1, first_seq=5))
    assert channel.buffers == {}
