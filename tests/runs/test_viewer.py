"""Viewers get missed Records from the log and new ones from the frame buffer, each exactly once and in order."""

import asyncio

import pytest

from limelight.events import Status, TextDelta
from limelight.models import Cursor
from limelight.runs.hub import BUFFER_RECORDS
from limelight.runs.viewer import BATCH, MAX_BATCH_TEXT
from limelight.server.sse import sse_framing
from tests.dialects.transcripts import DIALECTS, Frame, live
from tests.runs.viewers import (
    REF,
    Stage,
    ids,
    is_waiting,
    read_all,
    read_to,
    same,
    soon,
    statuses,
    whole_run,
)
from tests.support.strategies import as_records

# Replay, then live


async def test_viewer_replays_the_log_and_then_reads_the_frame_buffer() -> None:
    stage, records = Stage(), statuses(3 * BATCH)
    stage.commit(records[:-20])
    async with stage.viewer() as viewer:
        viewer.start(Cursor(0))
        frames = await read_to(viewer, str(3 * BATCH - 20))
        task = asyncio.create_task(soon(viewer))
        assert await is_waiting(task)
        reads = stage.store.reads
        stage.play(records[-20:])
        frames += await task or []
        assert stage.store.reads == reads, "live frames come from the frame buffer"
    assert frames == live(DIALECTS["records"], records)


@pytest.mark.parametrize(("format_", "replayed"), [("typed", ["1", "6"]), ("records", ["1", "2", "3", "4", "5", "6"])])
async def test_replay_joins_deltas_if_the_format_allows_it(format_: str, replayed: list[str]) -> None:
    stage, records = Stage(), whole_run(tokens=10)
    stage.commit(records[:6])
    async with stage.viewer(format_) as viewer:
        viewer.start(Cursor(0))
        assert ids(await read_to(viewer, "6")) == replayed
        task = asyncio.create_task(soon(viewer))
        assert await is_waiting(task)
        stage.play(records[6:8])
        assert ids(await task or []) == ["7", "8"]


async def test_viewers_of_one_format_share_frames_and_bytes() -> None:
    stage = Stage()
    async with stage.viewer() as one, stage.viewer() as other, stage.viewer("typed") as third:
        for viewer in (one, other, third):
            viewer.start(Cursor(0), is_new_run=True)
        stage.play(whole_run())
        first, second = await one.next(), await other.next()
        typed = await soon(third)
    assert first is not None and first is second
    assert first.encoded(sse_framing()) is first.encoded(sse_framing())
    assert typed is not None
    assert typed[-1].data == b'{"type":"done"}'


async def test_slow_viewer_replays_the_log_and_then_reads_the_frame_buffer_again() -> None:
    stage, records = Stage(), statuses(5 * BUFFER_RECORDS)
    async with stage.viewer() as slow, stage.viewer() as quick:
        slow.start(Cursor(0), is_new_run=True)
        quick.start(Cursor(0), is_new_run=True)
        got: list[Frame] = []
        for start in range(0, len(records), 100):
            stage.play(records[start : start + 100])
            got += await soon(quick) or []
        assert stage.store.reads == 0, "the quick viewer does not read the log"
        late = await read_to(slow, str(records[-1].seq))
        assert stage.store.reads > 0
        task = asyncio.create_task(soon(slow))
        assert await is_waiting(task)
        stage.play(statuses(1, first_seq=len(records) + 1))
        assert ids(await task or []) == [str(len(records) + 1)], "it reads the frame buffer again"
    assert got == late == live(DIALECTS["records"], records)


async def test_records_that_were_not_published_are_read_from_the_log() -> None:
    stage, records = Stage(), statuses(9)
    async with stage.viewer() as viewer:
        viewer.start(Cursor(0), is_new_run=True)
        stage.play(records[:3])
        assert ids(await read_to(viewer, "3")) == ["1", "2", "3"]
        stage.commit(records[3:6])  # another process wrote these
        stage.play(records[6:])
        assert ids(await read_to(viewer, "9")) == ["4", "5", "6", "7", "8", "9"]


async def test_records_published_during_the_last_read_are_not_missed() -> None:
    stage, records = Stage(), statuses(8)
    stage.commit(records[:4])
    async with stage.viewer() as viewer:
        viewer.start(Cursor(0))
        assert ids(await read_to(viewer, "4")) == ["1", "2", "3", "4"]
        stage.store.during_read = lambda: stage.play(records[4:])
        assert ids(await read_to(viewer, "8")) == ["5", "6", "7", "8"]


async def test_record_that_was_replayed_before_it_was_published_comes_once() -> None:
    """A replay that has read what is committed and not yet published does not get it a second time."""
    stage, records = Stage(), statuses(6)
    async with stage.viewer() as viewer:
        stage.commit(records)
        viewer.start(Cursor(0))
        assert ids(await read_to(viewer, "6")) == [str(n) for n in range(1, 7)]
        task = asyncio.create_task(soon(viewer))
        assert await is_waiting(task)
        stage.publish(records)
        assert await is_waiting(task)
        stage.play(statuses(1, first_seq=7))
        assert ids(await task or []) == ["7"]


async def test_viewer_ahead_of_an_existing_frame_buffer_waits_for_it() -> None:
    stage, records = Stage(), statuses(9)
    stage.commit(records[:3])
    async with stage.viewer() as early, stage.viewer() as late:
        early.start(Cursor(3), is_new_run=True)
        stage.play(records[3:6])
        assert ids(await read_to(early, "6")) == ["4", "5", "6"]
        stage.commit(records[6:])
        late.start(Cursor(0))
        assert ids(await read_to(late, "9")) == [str(n) for n in range(1, 10)]
        task = asyncio.create_task(soon(late))
        assert await is_waiting(task)
        stage.publish(records[6:])
        assert ids(await read_to(early, "9")) == ["7", "8", "9"]
        assert not task.done()
        stage.play(statuses(1, first_seq=10))
        assert ids(await task or []) == ["10"]


# Views that start with a run


async def test_view_of_a_new_run_does_not_read_the_log() -> None:
    stage = Stage()
    async with stage.viewer() as viewer:
        viewer.start(Cursor(0), only_run=True, is_new_run=True)
        stage.play(whole_run())
        frames = await read_all(viewer)
    assert frames == live(DIALECTS["records"], whole_run())
    assert stage.store.reads == 0


@pytest.mark.parametrize("published", [1, 4, 7])
async def test_new_run_that_is_ahead_of_its_viewer_is_shown_from_its_start(published: int) -> None:
    stage, records = Stage(), whole_run()
    async with stage.viewer() as viewer:
        stage.play(records[:published])
        viewer.start(Cursor(0), only_run=True, is_new_run=True)
        task = asyncio.create_task(read_all(viewer))
        await asyncio.sleep(0)
        if published < len(records):
            stage.play(records[published:])
        frames = await task
    assert same(frames, live(DIALECTS["records"], records))


async def test_new_run_in_a_session_with_another_viewer_is_shown_to_both() -> None:
    stage, first, second = Stage(), whole_run(), whole_run(first_seq=8, run_id="run_2")
    async with stage.viewer() as watcher, stage.viewer() as viewer:
        watcher.start(Cursor(0))
        stage.play(first)
        assert (await read_to(watcher, "7"))[0].id == "1"
        task = asyncio.create_task(soon(watcher))
        assert await is_waiting(task)
        viewer.start(Cursor(7), only_run=True, is_new_run=True)
        stage.play(second)
        frames = await read_all(viewer)
        assert (await task or []) == frames
    assert frames == live(DIALECTS["records"], second)


# Ends of views, and batches


@pytest.mark.parametrize("ahead", [True, False], ids=["replayed", "live"])
async def test_view_of_one_run_ends_with_it(ahead: bool) -> None:
    stage, first, second = Stage(), whole_run(), whole_run(first_seq=8, run_id="run_2")
    async with stage.viewer() as viewer:
        viewer.start(Cursor(0), only_run=True, is_new_run=not ahead)
        stage.play([*first, *second])
        frames = await read_all(viewer)
        assert await soon(viewer) is None
    assert same(frames, live(DIALECTS["records"], first))


@pytest.mark.parametrize("ahead", [True, False], ids=["replayed", "live"])
async def test_view_through_a_record_does_not_end_with_earlier_runs(ahead: bool) -> None:
    runs = [whole_run(first_seq=1 + 7 * n, run_id=f"run_{n}") for n in range(3)]
    stage, records = Stage(), [record for run in runs for record in run]
    async with stage.viewer() as viewer:
        viewer.start(Cursor(0), only_run=True, min_end=14, is_new_run=not ahead)
        stage.play(records)
        assert same(await read_all(viewer), live(DIALECTS["records"], records[:14]))
        viewer.next_run()
        assert same(await read_all(viewer), live(DIALECTS["records"], records[14:]))


async def test_small_records_are_read_in_growing_batches_up_to_the_limit_of_the_format() -> None:
    stage = Stage()
    stage.commit(statuses(4000))
    batches: dict[int, int] = {}
    for batch in (128, 2048):
        stage.store.reads = 0
        async with stage.viewer(batch=batch) as viewer:
            viewer.start(Cursor(0))
            await read_to(viewer, "4000")
        batches[batch] = stage.store.reads
    assert batches[128] == 32
    assert batches[2048] <= 9


async def test_large_records_are_read_in_small_batches() -> None:
    stage = Stage()
    stage.commit(as_records([Status(text="x" * 4096) for _ in range(1000)]))
    sizes: list[int] = []
    async with stage.viewer(batch=2048) as viewer:
        viewer.start(Cursor(0))
        while sum(sizes) < 1000:
            sizes.append(len(await soon(viewer) or []))
    assert max(sizes) == 128


async def test_view_of_a_session_continues_with_its_next_run() -> None:
    stage, first, second = Stage(), whole_run(), whole_run(first_seq=8, run_id="run_2")
    async with stage.viewer("typed") as viewer:
        viewer.start(Cursor(0))
        stage.play(first)
        frames = await read_to(viewer, "7")
        stage.play(second)
        frames += await read_to(viewer, "14")
    assert [frame.data for frame in frames].count(b'{"type":"done"}') == 2


# Wake-ups


async def test_wake_ends_one_wait() -> None:
    stage = Stage()
    async with stage.viewer() as viewer:
        viewer.start(Cursor(0), is_new_run=True)
        task = asyncio.create_task(soon(viewer))
        assert await is_waiting(task)
        viewer.wake()
        assert await asyncio.wait_for(task, 5) == []
        task = asyncio.create_task(soon(viewer))
        assert await is_waiting(task), "one wake-up, one heartbeat"
        stage.play(statuses(1))
        assert ids(await task or []) == ["1"]


async def test_frames_are_returned_before_a_wake() -> None:
    stage = Stage()
    async with stage.viewer() as viewer:
        viewer.start(Cursor(0), is_new_run=True)
        stage.play(statuses(2))
        viewer.wake()
        assert ids(await soon(viewer) or []) == ["1", "2"]
        assert await soon(viewer) == []


async def test_heartbeat_does_not_wait_for_a_slow_read_and_the_read_is_not_repeated() -> None:
    stage = Stage()
    stage.commit(statuses(3))
    stage.store.may_answer.clear()
    async with stage.viewer() as viewer:
        viewer.start(Cursor(0))
        for _ in range(2):
            task = asyncio.create_task(soon(viewer))
            assert await is_waiting(task)
            viewer.wake(in_read=True)
            assert await asyncio.wait_for(task, 5) == []
            assert viewer.is_reading
        stage.play(statuses(2, first_seq=4))  # the read has looked at the log before
        stage.store.may_answer.set()
        assert ids(await read_to(viewer, "5")) == ["1", "2", "3", "4", "5"]
        assert not viewer.is_reading
        assert stage.store.reads == 2


async def test_wake_without_in_read_waits_for_the_read() -> None:
    stage = Stage()
    stage.commit(statuses(3))
    stage.store.may_answer.clear()
    async with stage.viewer() as viewer:
        viewer.start(Cursor(0))
        task = asyncio.create_task(soon(viewer))
        assert await is_waiting(task)
        viewer.wake()
        assert await is_waiting(task)
        stage.store.may_answer.set()
        assert ids(await asyncio.wait_for(task, 5) or []) == ["1", "2", "3"]


async def test_exit_ends_a_read_in_progress() -> None:
    stage = Stage()
    stage.commit(statuses(1))
    stage.store.may_answer.clear()
    before = asyncio.all_tasks()
    async with stage.viewer() as viewer:
        viewer.start(Cursor(0))
        task = asyncio.create_task(soon(viewer))
        assert await is_waiting(task)
        viewer.wake(in_read=True)
        await task
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before


async def test_viewer_ends_if_its_session_is_deleted_during_a_read() -> None:
    stage = Stage()
    async with stage.viewer() as viewer:
        stage.store.during_read = lambda: stage.hub.forget(REF)
        viewer.start(Cursor(0))
        assert await soon(viewer) is None
        assert viewer.is_deleted


async def test_replay_of_large_records_is_read_in_small_batches() -> None:
    """A viewer that does not read holds one batch, so its size is bounded, and all Records arrive."""
    text = "x" * 50_000
    events = [TextDelta(message_id=f"m{number}", text=text) for number in range(100)]
    stage, records = Stage(), as_records(events)
    stage.commit(records)
    async with stage.viewer() as viewer:
        viewer.start(Cursor(0))
        first = await viewer.next()
        assert first is not None and MAX_BATCH_TEXT < first.size < MAX_BATCH_TEXT + 2 * len(text)
        rest = await read_to(viewer, "100")
    assert [frame.cursor.encode().decode() for frame in first.frames] + ids(rest) == [
        str(number) for number in range(1, 101)
    ]
