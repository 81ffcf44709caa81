"""A viewer's way: what it missed, then what comes, exactly once and in order, however it is interrupted."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import cast

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limelight.dialects.base import Cursor
from limelight.events import (
    TERMINAL_TYPES,
    AnyEvent,
    FinalAnswer,
    Record,
    RunFailed,
    RunFinished,
    RunStarted,
    Status,
    TextDelta,
    TextFinished,
)
from limelight.runs.hub import LANE_RECORDS, Hub
from limelight.runs.viewer import BATCH, Format, Viewer
from limelight.stores.base import Run, SessionRef, Store
from tests.dialects.transcripts import DIALECTS, Frame, joined, live, parse, pieces
from tests.strategies import as_records, write_run

REF = SessionRef("local", "s")


class FakeStore:
    """Not a store: a list of Records with the two methods that a viewer calls."""

    def __init__(self) -> None:
        self.log: list[Record] = []
        self.reads = 0
        self.during_read: Callable[[], None] = lambda: None
        """Called after a read has looked at the log and before its caller gets the answer."""

    async def records(self, ref: SessionRef, *, after: int, limit: int) -> list[Record]:
        assert ref == REF
        self.reads += 1
        found = [record for record in self.log if record.seq > after][:limit]
        happens, self.during_read = self.during_read, lambda: None
        happens()
        return found

    async def run_covering(self, ref: SessionRef, seq: int) -> Run | None:
        assert ref == REF
        runs = sorted({record.run_id for record in self.log})
        spans = [[record.seq for record in self.log if record.run_id == run_id] for run_id in runs]
        covering = [(span[0], span[-1], run_id) for span, run_id in zip(spans, runs, strict=True) if span[-1] >= seq]
        if not covering:
            return None
        first, last, run_id = min(covering)
        return Run(
            run_id=run_id,
            ref=ref,
            agent="a",
            turn=1,
            state="running",
            started_at=0,
            ended_at=None,
            first_seq=first,
            last_seq=last,
        )


class Stage:
    """A hub and a log, with the order of things that the engine keeps: first the log, then the viewers."""

    def __init__(self) -> None:
        self.hub = Hub()
        self.store = FakeStore()

    def commit(self, records: Sequence[Record]) -> None:
        self.store.log += records

    def play(self, records: Sequence[Record]) -> None:
        self.commit(records)
        self.hub.publish(REF, records)

    @asynccontextmanager
    async def viewer(self, format_: str = "records") -> AsyncGenerator[Viewer]:
        with Viewer(self.hub, cast("Store", self.store), REF, Format(format_, DIALECTS[format_])) as viewer:
            yield viewer


async def soon(viewer: Viewer) -> bytes | None:
    return await asyncio.wait_for(viewer.next(), 5)


async def read_to(viewer: Viewer, last: str) -> list[Frame]:
    """Read until the frame with this id has come."""
    frames: list[Frame] = []
    while not frames or frames[-1].id != last:
        data = await soon(viewer)
        assert data, f"it ended or fell silent at {frames[-1:]}"
        frames += parse(data)
    return frames


async def read_all(viewer: Viewer) -> list[Frame]:
    frames: list[Frame] = []
    while (data := await soon(viewer)) is not None:
        frames += parse(data)
    return frames


async def is_waiting(task: "asyncio.Task[bytes | None]") -> bool:
    """True if it does not come to an end although everybody else has had their turn."""
    for _ in range(20):
        await asyncio.sleep(0)
    return not task.done()


def statuses(count: int, first_seq: int = 1, run_id: str = "run_1") -> list[Record]:
    return as_records([Status(text=f"s{n}") for n in range(count)], first_seq=first_seq, run_id=run_id)


def whole_run(first_seq: int = 1, run_id: str = "run_1", tokens: int = 3) -> list[Record]:
    events: list[AnyEvent] = [
        RunStarted(agent="a"),
        *(TextDelta(message_id="m", text=f"t{n} ") for n in range(tokens)),
        TextFinished(message_id="m"),
        FinalAnswer(content="x", message_id="m"),
        RunFinished(),
    ]
    return as_records(events, first_seq=first_seq, run_id=run_id)


def ids(frames: list[Frame]) -> list[str]:
    return [frame.id for frame in frames]


def same(frames: list[Frame], expected: list[Frame], format_: str = "records") -> bool:
    return joined(pieces(format_, frames)) == joined(pieces(format_, expected))


# What it missed, then what comes


async def test_it_replays_the_log_and_then_shares_the_lane() -> None:
    stage, records = Stage(), statuses(3 * BATCH)
    stage.commit(records[:-20])
    async with stage.viewer() as viewer:
        viewer.start(Cursor(0))
        frames = await read_to(viewer, str(3 * BATCH - 20))
        task = asyncio.create_task(viewer.next())
        assert await is_waiting(task)
        reads = stage.store.reads
        stage.play(records[-20:])
        frames += parse(await task or b"")
        assert stage.store.reads == reads, "what is live comes from the lane"
    assert frames == live(DIALECTS["records"], records)


@pytest.mark.parametrize(("format_", "replayed"), [("typed", ["1", "6"]), ("records", ["1", "2", "3", "4", "5", "6"])])
async def test_a_replay_joins_deltas_where_the_format_allows_it(format_: str, replayed: list[str]) -> None:
    stage, records = Stage(), whole_run(tokens=10)
    stage.commit(records[:6])
    async with stage.viewer(format_) as viewer:
        viewer.start(Cursor(0))
        assert ids(await read_to(viewer, "6")) == replayed
        task = asyncio.create_task(viewer.next())
        assert await is_waiting(task)
        stage.play(records[6:8])
        assert ids(parse(await task or b"")) == ["7", "8"]


async def test_viewers_of_one_format_get_the_same_bytes() -> None:
    stage = Stage()
    async with stage.viewer() as one, stage.viewer() as other, stage.viewer("typed") as third:
        for viewer in (one, other, third):
            viewer.start(Cursor(0), fresh=True)
        stage.play(whole_run())
        first, second, typed = await soon(one), await soon(other), await soon(third)
    assert first is second
    assert typed is not None
    assert parse(typed)[-1].data == b'{"type":"done"}'


async def test_one_that_falls_off_the_lane_reads_the_log_again_and_misses_nothing() -> None:
    stage, records = Stage(), statuses(5 * LANE_RECORDS)
    async with stage.viewer() as slow, stage.viewer() as quick:
        slow.start(Cursor(0), fresh=True)
        quick.start(Cursor(0), fresh=True)
        got: list[Frame] = []
        for start in range(0, len(records), 100):
            stage.play(records[start : start + 100])
            got += parse(await soon(quick) or b"")
        assert stage.store.reads == 0, "the quick one never needs the log"
        late = await read_to(slow, str(records[-1].seq))
        assert stage.store.reads > 0
        task = asyncio.create_task(slow.next())
        assert await is_waiting(task)
        stage.play(statuses(1, first_seq=len(records) + 1))
        assert ids(parse(await task or b"")) == [str(len(records) + 1)], "it is on the lane again"
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
        task = asyncio.create_task(viewer.next())
        assert await is_waiting(task)
        stage.hub.publish(REF, records)
        assert await is_waiting(task)
        stage.play(statuses(1, first_seq=7))
        assert ids(parse(await task or b"")) == ["7"]


async def test_one_that_read_ahead_of_anothers_lane_waits_for_the_lane() -> None:
    stage, records = Stage(), statuses(9)
    stage.commit(records[:3])
    async with stage.viewer() as early, stage.viewer() as late:
        early.start(Cursor(3), fresh=True)
        stage.play(records[3:6])
        assert ids(await read_to(early, "6")) == ["4", "5", "6"]
        stage.commit(records[6:])
        late.start(Cursor(0))
        assert ids(await read_to(late, "9")) == [str(n) for n in range(1, 10)]
        task = asyncio.create_task(late.next())
        assert await is_waiting(task)
        stage.hub.publish(REF, records[6:])
        assert ids(await read_to(early, "9")) == ["7", "8", "9"]
        assert not task.done()
        stage.play(statuses(1, first_seq=10))
        assert ids(parse(await task or b"")) == ["10"]


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
        task = asyncio.create_task(watcher.next())
        assert await is_waiting(task)
        viewer.start(Cursor(7), only_run=True, fresh=True)
        stage.play(second)
        frames = await read_all(viewer)
        assert parse(await task or b"") == frames
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


async def test_a_nudge_ends_the_wait_and_nothing_else() -> None:
    stage = Stage()
    async with stage.viewer() as viewer:
        viewer.start(Cursor(0), fresh=True)
        task = asyncio.create_task(viewer.next())
        assert await is_waiting(task)
        viewer.nudge()
        assert await asyncio.wait_for(task, 5) == b""
        task = asyncio.create_task(viewer.next())
        assert await is_waiting(task), "one nudge, one sign of life"
        stage.play(statuses(1))
        assert ids(parse(await task or b"")) == ["1"]


async def test_a_nudge_before_the_wait_counts() -> None:
    stage = Stage()
    async with stage.viewer() as viewer:
        viewer.start(Cursor(0), fresh=True)
        viewer.nudge()
        assert await soon(viewer) == b""


async def test_frames_come_before_a_nudge() -> None:
    stage = Stage()
    async with stage.viewer() as viewer:
        viewer.start(Cursor(0), fresh=True)
        stage.play(statuses(2))
        viewer.nudge()
        assert ids(parse(await soon(viewer) or b"")) == ["1", "2"]
        assert await soon(viewer) == b""


# Cursors


async def test_a_cursor_behind_retention_gets_a_gap_first() -> None:
    stage, records = Stage(), whole_run(first_seq=50)
    stage.commit(records)
    async with stage.viewer() as viewer:
        viewer.start(Cursor(10), only_run=True)
        gap, *frames = await read_all(viewer)
    assert (gap.id, msgspec.json.decode(gap.data)) == ("49", {"gap": {"from": 11, "to": 49}})
    assert same(frames, live(DIALECTS["records"], records))


async def test_a_cursor_inside_a_record_that_is_gone_skips_nothing_of_another() -> None:
    stage, records = Stage(), whole_run(first_seq=50)
    stage.commit(records)
    async with stage.viewer("typed") as viewer:
        viewer.start(Cursor(10, 1), only_run=True)
        gap, first, *_ = await read_all(viewer)
    assert msgspec.json.decode(gap.data) == {"type": "gap", "data": {"from": 10, "to": 49}}
    assert (first.id, msgspec.json.decode(first.data)["type"]) == ("50", "status")


async def test_no_gap_is_reported_where_there_is_none() -> None:
    stage = Stage()
    stage.commit(whole_run())
    for cursor in (Cursor(0), Cursor(0, 1)):
        async with stage.viewer() as viewer:
            viewer.start(cursor, only_run=True)
            assert same(await read_all(viewer), live(DIALECTS["records"], whole_run()))


async def test_a_cursor_inside_a_record_gets_its_other_frames() -> None:
    stage = Stage()
    stage.commit(as_records([RunStarted(agent="a"), RunFailed(code="c", message="m")]))
    async with stage.viewer("typed") as viewer:
        viewer.start(Cursor.parse("2.1"), only_run=True)
        assert await read_all(viewer) == [Frame("2", "", b'{"type":"done"}')]


@pytest.mark.parametrize("cursor", ["2.2", "2.9"])
async def test_a_cursor_that_skips_all_frames_of_the_terminal_ends_at_once(cursor: str) -> None:
    stage = Stage()
    stage.commit(as_records([RunStarted(agent="a"), RunFailed(code="c", message="m")]))
    async with stage.viewer("typed") as viewer:
        viewer.start(Cursor.parse(cursor), only_run=True)
        assert await soon(viewer) is None


async def test_a_resume_knows_what_the_run_said_before() -> None:
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


# Any order of things


@settings(max_examples=40)
@given(st.randoms(use_true_random=False), st.sampled_from(sorted(DIALECTS)))
def test_every_frame_comes_exactly_once_whatever_happens(random: Random, format_: str) -> None:
    """Batches of any size, committed or published as they come, while viewers read when they like and come and go."""
    asyncio.run(_play_at_random(random, format_))


async def _play_at_random(random: Random, format_: str) -> None:
    records: list[Record] = []
    for number in range(random.randint(1, 3)):
        events = write_run(random, random.choice([2, 30, 400]))
        records += as_records(events, first_seq=len(records) + 1, run_id=f"run_{number}")
    expected = live(DIALECTS[format_], records)
    stage, done, seen = Stage(), 0, list[Frame]()
    while done < len(records):
        async with stage.viewer(format_) as viewer:
            viewer.start(Cursor.parse(seen[-1].id if seen else "0"))
            for _ in range(random.randint(1, 4)):
                batch = records[done : done + random.choice([1, 5, 100, 300])]
                (stage.play if random.random() < 0.8 else stage.commit)(batch)
                done += len(batch)
                for _ in range(random.randint(0, 2)):
                    viewer.nudge()
                    seen += parse(await soon(viewer) or b"")
    async with stage.viewer(format_) as viewer:
        viewer.start(Cursor.parse(seen[-1].id if seen else "0"))
        if not seen or seen[-1].id != expected[-1].id:
            seen += await read_to(viewer, expected[-1].id)
    assert isinstance(records[-1].event, TERMINAL_TYPES)
    assert same(seen, expected, format_)
