"""A run that is ahead of its log: whoever writes has to wait, and nobody waits for good."""

import asyncio

from limelight.events import RunStarted, Status
from limelight.runs.engine import MAX_UNCOMMITTED
from tests.runs.execution import execution


async def test_all_who_wait_for_room_go_on() -> None:
    """The source and the threads of its tools wait at the same time."""
    run = execution()
    run.emit(RunStarted(agent="a", turn=1))
    for _ in range(MAX_UNCOMMITTED):
        run.emit(Status(text="more"))
    waiting = [asyncio.create_task(run.emit_when_ready(Status(text=f"late {n}"))) for n in range(3)]
    await asyncio.sleep(0)
    waiting.pop().cancel()
    run.committed(run.take())
    async with asyncio.timeout(5):
        await asyncio.gather(*waiting)
    assert [record.event for record in run.take().records] == [Status(text="late 0"), Status(text="late 1")]
