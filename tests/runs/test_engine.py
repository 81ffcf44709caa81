"""Executions as objects: order of appended events, and sources that are ahead of the log."""

import asyncio

from limelight.events import RunStarted, Status, ToolStarted
from limelight.runs.engine import MAX_UNCOMMITTED
from tests.runs.execution import execution


async def test_all_that_wait_for_room_continue_after_a_commit() -> None:
    """The source and the threads of its tools wait at the same time."""
    run = execution()
    run.emit(RunStarted(agent="a", turn=1))
    for _ in range(MAX_UNCOMMITTED):
        run.emit(Status(text="more"))
    waiting = [asyncio.create_task(run.emit_when_ready(Status(text=f"late {n}"))) for n in range(3)]
    await asyncio.sleep(0)
    waiting.pop().cancel()
    run.take()
    run.committed()
    async with asyncio.timeout(5):
        await asyncio.gather(*waiting)
    assert [record.event for record in run.take().records] == [Status(text="late 0"), Status(text="late 1")]


async def test_tool_with_a_status_text_shows_it_when_it_starts() -> None:
    run = execution(status={"search": "Searching"})
    events = [RunStarted(agent="a"), ToolStarted(call_id="c1", name="search", args={})]
    for event in events:
        run.emit(event)
    assert [record.event for record in run.take().records] == [*events, Status(text="Searching")]
