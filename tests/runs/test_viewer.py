"""A viewer's way: what it missed, then what comes, exactly once and in order, however it is interrupted."""

import asyncio

import pytest

from limelight.dialects.base import Cursor
from limelight.events import Status
from limelight.runs.hub import BUFFER_RECORDS
from limelight.runs.viewer import BATCH
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

# What it missed, then what comes


async def test_it_replays_the_log_and_then_shares_the_frame_buffer() -> None:
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
        assert stage.store.reads == reads, "what is live comes from the frame buffer"
    assert frames == live(DIALECTS["records"], records)


@pytest.mark.parametrize(("format_", "replayed"), [("typed", ["1", "6"]), ("records", ["1", "2", "3", "4", "5", "6"])])
async def test_a_replay_joins_deltas_where_the_format_allows_it(format_: str, replayed: list[str]) -> None:
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
            viewer.start(Cursor(0), fresh=True)
        stage.play(whole_run())
        first, second = await one.next(), await other.next()
        typed = await soon(third)
    assert first is not None and first is second
    assert first.encoded(sse_framing()) is first.encoded(sse_framing())
    assert typed is not None
    assert typed[-1].data == b'{"type":"done"}'


async def test_one_that_falls_off_the_frame_buffer_reads_the_log_again_and_misses_nothing() -> None:
    stage, records = Stage(), statuses(5 * BUFFER_RECORDS)
    async with stage.viewer() as slow, stage.viewer() as quick:
        slow.start(Cursor(0), fresh=True)
        quick.start(Cursor(0), fresh=True)
        got: list[Frame] = []
        for start in range(0, len(records), 100):
            stage.play(records[start : start + 100])
            got += await soon(quick) or []
        assert stage.store.reads == 0, "the quick one never needs the log"
        late = await read_to(slow, str(records[-1].seq))
        assert stage.store.reads > 0
        task = asyncio.create_task(soon(slow))
        assert await is_waiting(task)
        stage.play(statuses(1, first_seq=len(records) + 1))
        assert ids(await task or []) == [str(len(records) + 1)], "it is on the frame buffer again"
    assert got == late == live(DIALECTS["records"], records)


async def test_a_hole_between_two_publishes_is_filled_from_the_log() -> None:
    stage, records = Stage(), statuses(9)
    async with stage.viewer() as viewer:
        viewer.start(Cursor(0), fresh=True)
        stage.play(records[:3])
        assert ids(await read_to(viewer, "3")) == ["1", "2", "3"]
        stage.commit(records[3:6])  # another process wrote these
        stage.play(records[6:])
        assert ids(await read_to(viewer, "9")) == ["4", "5", "6", "7", "8", "9"]


async def test_what_is_published_during_the_last_read_is_not_missed() -> None:
    stage, records = Stage(), statuses(8)
    stage.commit(records[:4])
    async with stage.viewer() as viewer:
        viewer.start(Cursor(0))
        assert ids(await read_to(viewer, "4")) == ["1", "2", "3", "4"]
        stage.store.during_read = lambda: stage.play(records[4:])
        assert ids(await read_to(viewer, "8")) == ["5", "6", "7", "8"]


async def test_the_log_may_be_ahead_of_the_hub() -> None:
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


async def test_one_that_read_ahead_of_anothers_buffer_waits_for_the_frame_buffer() -> None:
    stage, records = Stage(), statuses(9)
    stage.commit(records[:3])
    async with stage.viewer() as early, stage.viewer() as late:
        early.start(Cursor(3), fresh=True)
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


# Beginning with a run


async def test_a_fresh_run_needs_no_read() -> None:
    stage = Stage()
    async with stage.viewer() as viewer:
        viewer.start(Cursor(0), only_run=True, fresh=True)
        stage.play(whole_run())
        frames = await read_all(viewer)
    assert frames == live(DIALECTS["records"], whole_run())
    assert stage.store.reads == 0


@pytest.mark.parametrize("published", [1, 4, 7])
async def test_a_run_that_was_faster_than_the_viewer_is_shown_from_its_start(published: int) -> None:
    stage, records = Stage(), whole_run()
    async with stage.viewer() as viewer:
        stage.play(records[:published])
        viewer.start(Cursor(0), only_run=True, fresh=True)
        task = asyncio.create_task(read_all(viewer))
        await asyncio.sleep(0)
        if published < len(records):
            stage.play(records[published:])
        frames = await task
    assert same(frames, live(DIALECTS["records"], records))


async def test_a_fresh_run_in_a_session_that_somebody_watches_already() -> None:
    stage, first, second = Stage(), whole_run(), whole_run(first_seq=8, run_id="run_2")
    async with stage.viewer() as watcher, stage.viewer() as viewer:
        watcher.start(Cursor(0))
        stage.play(first)
        assert (await read_to(watcher, "7"))[0].id == "1"
        task = asyncio.create_task(soon(watcher))
        assert await is_waiting(task)
        viewer.start(Cursor(7), only_run=True, fresh=True)
        stage.play(second)
        frames = await read_all(viewer)
        assert (await task or []) == frames
    assert frames == live(DIALECTS["records"], second)


# The end


@pytest.mark.parametrize("ahead", [True, False], ids=["replayed", "live"])
async def test_only_one_run_is_shown_if_that_is_asked(ahead: bool) -> None:
    stage, first, second = Stage(), whole_run(), whole_run(first_seq=8, run_id="run_2")
    async with stage.viewer() as viewer:
        viewer.start(Cursor(0), only_run=True, fresh=not ahead)
        stage.play([*first, *second])
        frames = await read_all(viewer)
        assert await soon(viewer) is None
    assert same(frames, live(DIALECTS["records"], first))


@pytest.mark.parametrize("ahead", [True, False], ids=["replayed", "live"])
async def test_runs_that_are_history_do_not_end_the_view(ahead: bool) -> None:
    runs = [whole_run(first_seq=1 + 7 * n, run_id=f"run_{n}") for n in range(3)]
    stage, records = Stage(), [record for run in runs for record in run]
    async with stage.viewer() as viewer:
        viewer.start(Cursor(0), only_run=True, through=14, fresh=not ahead)
        stage.play(records)
        assert same(await read_all(viewer), live(DIALECTS["records"], records[:14]))
        viewer.next_run()
        assert same(await read_all(viewer), live(DIALECTS["records"], records[14:]))


async def test_a_format_that_takes_more_is_read_in_growing_batches_while_records_are_small() -> None:
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


async def test_batches_of_large_records_stay_small() -> None:
    stage = Stage()
    stage.commit(as_records([Status(text="x" * 4096) for _ in range(1000)]))
    sizes: list[int] = []
    async with stage.viewer(batch=2048) as viewer:
        viewer.start(Cursor(0))
        while sum(sizes) < 1000:
            sizes.append(len(await soon(viewer) or []))
    assert max(sizes) == 128


async def test_a_view_of_the_session_goes_on_from_run_to_run() -> None:
    stage, first, second = Stage(), whole_run(), whole_run(first_seq=8, run_id="run_2")
    async with stage.viewer("typed") as viewer:
        viewer.start(Cursor(0))
        stage.play(first)
        frames = await read_to(viewer, "7")
        stage.play(second)
        frames += await read_to(viewer, "14")
    assert [frame.data for frame in frames].count(b'{"type":"done"}') == 2


# Nudges


async def test_a_wake_up_ends_the_wait_and_nothing_else() -> None:
    stage = Stage()
    async with stage.viewer() as viewer:
        viewer.start(Cursor(0), fresh=True)
        task = asyncio.create_task(soon(viewer))
        assert await is_waiting(task)
        viewer.wake()
        assert await asyncio.wait_for(task, 5) == []
        task = asyncio.create_task(soon(viewer))
        assert await is_waiting(task), "one wake-up, one heartbeat"
        stage.play(statuses(1))
        assert ids(await task or []) == ["1"]


async def test_a_nudge_before_the_wait_counts() -> None:
    stage = Stage()
    async with stage.viewer() as viewer:
        viewer.start(Cursor(0), fresh=True)
        viewer.wake()
        assert await soon(viewer) == []


async def test_frames_come_before_a_wake() -> None:
    stage = Stage()
    async with stage.viewer() as viewer:
        viewer.start(Cursor(0), fresh=True)
        stage.play(statuses(2))
        viewer.wake()
        assert ids(await soon(viewer) or []) == ["1", "2"]
        assert await soon(viewer) == []


async def test_a_heartbeat_does_not_wait_for_a_slow_read_and_the_read_is_not_repeated() -> None:
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


async def test_a_nudge_that_is_no_heartbeat_lets_a_read_end_first() -> None:
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


async def test_leaving_ends_a_read() -> None:
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


async def test_a_viewer_ends_when_its_session_is_deleted_while_it_reads_the_log() -> None:
    stage = Stage()
    async with stage.viewer() as viewer:
        stage.store.during_read = lambda: stage.hub.forget(REF)
        viewer.start(Cursor(0))
        assert await soon(viewer) is None
        assert viewer.is_deleted
