"""A run that is ahead of its log: whoever writes has to wait, and nobody waits for good."""

import asyncio
from typing import Any, cast

from limelight.events import RunStarted, Status
from limelight.runs.committer import Committer
from limelight.runs.engine import MAX_UNCOMMITTED, Execution, RunLimits
from limelight.stores.base import Run, SessionRef, Store


class Marks:
    """A committer that only notes that there is something to commit."""

    def mark(self, run: Any, *, can_wait: bool = False) -> None:
        """Nothing is committed before the test does so."""


def execution() -> Execution:
    ref = SessionRef("ann", "s")
    run = Run(
        run_id="run_1",
        ref=ref,
        agent="a",
        turn=1,
        state="running",
        started_at=0,
        ended_at=None,
        first_seq=1,
        last_seq=0,
    )
    return Execution(run, cast("Store", None), cast("Committer", Marks()), RunLimits())


async def test_all_who_wait_for_room_go_on() -> None:
    """The source and the threads of its tools wait at the same time."""
    run = execution()
    run.accept(RunStarted(agent="a", turn=1))
    for _ in range(MAX_UNCOMMITTED):
        run.accept(Status(text="more"))
    waiting = [asyncio.create_task(run.accept_in_turn(Status(text=f"late {n}"))) for n in range(3)]
    await asyncio.sleep(0)
    waiting.pop().cancel()
    run.committed(run.take())
    async with asyncio.timeout(5):
        await asyncio.gather(*waiting)
    assert [record.event for record in run.take().records] == [Status(text="late 0"), Status(text="late 1")]
