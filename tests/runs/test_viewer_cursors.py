"""Viewers that resume from a cursor, with gaps in the log and under random scheduling."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limelight.events import (
    TERMINAL_TYPES,
    Record,
    RunFailed,
    RunFinished,
    RunStarted,
)
from limelight.models import Cursor
from tests.dialects.transcripts import DIALECTS, SCRIPTS, Frame, live
from tests.runs.viewers import (
    Stage,
    read_all,
    read_to,
    same,
    soon,
    whole_run,
)
from tests.support.strategies import as_records, write_run


async def test_cursor_before_the_oldest_record_gets_a_gap_first() -> None:
    stage, records = Stage(), whole_run(first_seq=50)
    stage.commit(records)
    async with stage.viewer() as viewer:
        viewer.start(Cursor(10), only_run=True)
        gap, *frames = await read_all(viewer)
    assert (gap.id, msgspec.json.decode(gap.data)) == ("49", {"gap": {"from": 11, "to": 49}})
    assert same(frames, live(DIALECTS["records"], records))


async def test_cursor_inside_a_deleted_record_skips_no_frames_of_another() -> None:
    stage, records = Stage(), whole_run(first_seq=50)
    stage.commit(records)
    async with stage.viewer("typed") as viewer:
        viewer.start(Cursor(10, 1), only_run=True)
        gap, first, *_ = await read_all(viewer)
    assert msgspec.json.decode(gap.data) == {"type": "gap", "data": {"from": 10, "to": 49}}
    assert (first.id, msgspec.json.decode(first.data)["type"]) == ("50", "status")


async def test_cursor_at_the_start_of_a_complete_log_gets_no_gap() -> None:
    stage = Stage()
    stage.commit(whole_run())
    for cursor in (Cursor(0), Cursor(0, 1)):
        async with stage.viewer() as viewer:
            viewer.start(cursor, only_run=True)
            assert same(await read_all(viewer), live(DIALECTS["records"], whole_run()))


async def test_cursor_inside_a_record_resumes_with_its_remaining_frames() -> None:
    stage = Stage()
    stage.commit(as_records([RunStarted(agent="a"), RunFailed(code="c", message="m")]))
    async with stage.viewer("typed") as viewer:
        viewer.start(Cursor.parse("2.2"), only_run=True)
        assert await read_all(viewer) == [Frame("2", "", b'{"type":"done"}')]


async def test_cursor_inside_a_record_is_exact_beside_another_viewer() -> None:
    """The frame buffer has complete Records only."""
    stage, records = Stage(), as_records(SCRIPTS["plan"])
    expected = live(DIALECTS["v2"], records)
    async with stage.viewer("v2") as other:
        other.start(Cursor(0), is_new_run=True)
        stage.play(records)
        assert same(await read_to(other, expected[-1].id), expected, "v2")
        for position, frame in enumerate(expected[:-1]):
            async with stage.viewer("v2") as viewer:
                viewer.start(Cursor.parse(frame.id))
                assert same(await read_to(viewer, expected[-1].id), expected[position + 1 :], "v2"), frame.id


async def test_cursor_inside_a_future_record_waits_for_it() -> None:
    stage, records = Stage(), whole_run()
    async with stage.viewer() as other, stage.viewer() as viewer:
        other.start(Cursor(0))
        viewer.start(Cursor(3, 1))
        stage.play(records[:2])
        viewer.wake()
        assert await soon(viewer) == []
        stage.play(records[2:])
        assert [frame.id for frame in await read_to(viewer, str(len(records)))][-1] == str(len(records))


@pytest.mark.parametrize("cursor", ["2.3", "2.9"])
async def test_cursor_after_all_frames_of_the_terminal_event_ends_at_once(cursor: str) -> None:
    stage = Stage()
    stage.commit(as_records([RunStarted(agent="a"), RunFailed(code="c", message="m")]))
    async with stage.viewer("typed") as viewer:
        viewer.start(Cursor.parse(cursor), only_run=True)
        assert await soon(viewer) is None


async def test_resumed_view_has_the_state_of_the_earlier_events_of_its_run() -> None:
    """The dialect is fed from the run's beginning: a tool_end needs the name that its tool_start had."""
    run = next(run for run in (write_run(Random(seed), 60) for seed in range(50)) if isinstance(run[-1], RunFinished))
    stage, records = Stage(), [*whole_run(), *as_records(run, first_seq=8, run_id="run_2")]
    stage.commit(records)
    expected = live(DIALECTS["typed"], records)
    for position, frame in enumerate(expected[:-1]):
        async with stage.viewer("typed") as viewer:
            viewer.start(Cursor.parse(frame.id))
            frames = await read_to(viewer, expected[-1].id)
        assert same(frames, expected[position + 1 :], "typed")


@settings(max_examples=40)
@given(st.randoms(use_true_random=False), st.sampled_from(sorted(DIALECTS)))
def test_viewer_gets_each_frame_once_under_random_scheduling(random: Random, format_: str) -> None:
    """Batches of any size are committed or published while viewers enter, read and leave at random."""
    asyncio.run(_play_at_random(random, format_))


async def _play_at_random(random: Random, format_: str) -> None:
    records: list[Record] = []
    for number in range(random.randint(1, 3)):
        events = write_run(random, random.choice([2, 30, 400]))
        records += as_records(events, first_seq=len(records) + 1, run_id=f"run_{number}")
    expected = live(DIALECTS[format_], records)
    stage, seen = Stage(), list[Frame]()
    async with AsyncExitStack() as others:
        commit = stage.commit
        if random.random() < 0.5:  # another viewer keeps the frame buffer alive, so every Record has to be published
            other = await others.enter_async_context(stage.viewer(format_))
            other.start(Cursor(0), is_new_run=True)
            commit = stage.play
        await _come_and_go(random, format_, stage, commit, records, seen, expected)
    assert isinstance(records[-1].event, TERMINAL_TYPES)
    assert same(seen, expected, format_)


async def _come_and_go(
    random: Random,
    format_: str,
    stage: Stage,
    commit: Callable[[Sequence[Record]], None],
    records: list[Record],
    seen: list[Frame],
    expected: list[Frame],
) -> None:
    done = 0
    while done < len(records):
        del seen[max(0, len(seen) - random.choice([0, 0, 1, 2])) :]  # the last frames did not arrive
        async with stage.viewer(format_) as viewer:
            viewer.start(Cursor.parse(seen[-1].id if seen else "0"))
            for _ in range(random.randint(1, 4)):
                batch = records[done : done + random.choice([1, 5, 100, 300])]
                (stage.play if random.random() < 0.8 else commit)(batch)
                done += len(batch)
                for _ in range(random.randint(0, 2)):
                    viewer.wake()
                    seen += await soon(viewer) or []
    async with stage.viewer(format_) as viewer:
        viewer.start(Cursor.parse(seen[-1].id if seen else "0"))
        if not seen or seen[-1].id != expected[-1].id:
            seen += await read_to(viewer, expected[-1].id)
