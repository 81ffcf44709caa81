"""Executions as objects: appended events, sources that are ahead of the log, and full sessions."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

from limelight.events import RunFailed, RunStarted, Status, ToolStarted
from limelight.messages import Message
from limelight.runs.context import RunContext
from limelight.runs.engine import MAX_UNCOMMITTED
from limelight.runs.limits import RunLimits
from limelight.sources.base import FileMade, Turn, User
from tests.runs.execution import execution
from tests.support.wait import eventually


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


async def test_source_that_never_suspends_ends_when_its_session_is_full() -> None:
    run = execution(limits=RunLimits(session_max=10_000))
    made = 0

    async def stream(turn: Turn) -> AsyncGenerator[FileMade, None]:
        nonlocal made
        while True:
            made += 1
            yield FileMade(name="f", data=bytes(20_000), media_type="application/octet-stream")

    async def prepare() -> Turn:
        messages = [Message(role="user", content="go")]
        return Turn(messages=messages, context=RunContext(run, User("ann"), Path))

    executing = asyncio.create_task(run.execute(RunStarted(agent="a"), stream, prepare))
    await eventually(lambda: run.grammar.terminal)
    run.take()
    run.committed()
    await executing
    assert isinstance(run.grammar.terminal, RunFailed) and run.grammar.terminal.code == "log_full"
    assert made == 1
