"""Viewers over a hub and a log in memory, and helpers that read from them."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

from limelight.events import (
    AnyEvent,
    FinalAnswer,
    Record,
    RunFinished,
    RunStarted,
    Status,
    TextDelta,
    TextFinished,
)
from limelight.models import Run, SessionRef
from limelight.runs.hub import Hub
from limelight.runs.viewer import BATCH, Format, Viewer
from limelight.stores.base import Store
from tests.dialects.transcripts import DIALECTS, Frame, as_sent, joined, pieces
from tests.support.strategies import as_records

REF = SessionRef("local", "s")


class FakeStore:
    """A list of Records with the two methods of a store that a viewer calls."""

    def __init__(self) -> None:
        self.log: list[Record] = []
        self.reads = 0
        self.during_read: Callable[[], None] = lambda: None
        """Called after a read has looked at the log and before its caller gets the answer."""
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def records(self, ref: SessionRef, *, after: int, limit: int) -> list[Record]:
        assert ref == REF
        self.reads += 1
        found = [record for record in self.log if record.seq > after][:limit]
        happens, self.during_read = self.during_read, lambda: None
        happens()
        await self.may_answer.wait()
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
    """A hub and a log. `play` commits Records first and publishes them then, as the committer does."""

    def __init__(self) -> None:
        self.hub = Hub()
        self.store = FakeStore()

    def commit(self, records: Sequence[Record]) -> None:
        self.store.log += records

    def play(self, records: Sequence[Record]) -> None:
        self.commit(records)
        self.publish(records)

    def publish(self, records: Sequence[Record]) -> None:
        self.hub.publish(REF, records)
        self.hub.wake(REF)

    @asynccontextmanager
    async def viewer(self, format_: str = "records", batch: int = BATCH) -> AsyncGenerator[Viewer]:
        with Viewer(
            self.hub, cast("Store", self.store), REF, Format(format_, DIALECTS[format_], batch=batch)
        ) as viewer:
            yield viewer


async def soon(viewer: Viewer) -> list[Frame] | None:
    """The next frames, as a client of a stream reads them."""
    batch = await asyncio.wait_for(viewer.next(), 5)
    return None if batch is None else as_sent(viewer.format.make_dialect, batch.frames)


async def read_to(viewer: Viewer, last: str) -> list[Frame]:
    """Read until the frame with this id has come."""
    frames: list[Frame] = []
    while not frames or frames[-1].id != last:
        sent = await soon(viewer)
        assert sent, f"the view ended at {frames[-1:]}"
        frames += sent
    return frames


async def read_all(viewer: Viewer) -> list[Frame]:
    frames: list[Frame] = []
    while (sent := await soon(viewer)) is not None:
        frames += sent
    return frames


async def is_waiting(task: "asyncio.Task[Any]") -> bool:
    """Whether a task still waits after all other tasks have run."""
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
