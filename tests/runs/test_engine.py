"""Executions as objects: how a run ends, files, time limits, and sources that are ahead of the log."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from limelight.events import (
    AnyEvent,
    ApprovalRequested,
    ApprovalResolved,
    ArtifactMade,
    FinalAnswer,
    RunFailed,
    RunFinished,
    RunStarted,
    Status,
    TextDelta,
    TextFinished,
    ToolFinished,
    ToolStarted,
)
from limelight.messages import Message
from limelight.models import User
from limelight.runs.engine import MAX_UNCOMMITTED, Execution, StreamItems
from limelight.runs.limits import RunLimits
from limelight.runs.run_context import RunContext
from limelight.sources.base import FileMade, Turn
from tests.runs.execution import execution
from tests.support.clock import Clock

STARTED = RunStarted(agent="a")
END: list[AnyEvent] = [FinalAnswer(content="done"), RunFinished()]


def start(run: Execution, stream: StreamItems) -> "asyncio.Task[None]":
    async def prepare() -> Turn:
        return Turn(messages=[Message(role="user", content="go")], context=RunContext(run, User("ann"), Path))

    return asyncio.create_task(run.execute(STARTED, stream, prepare))


async def events_of(run: Execution, stream: StreamItems) -> list[AnyEvent]:
    """Execute a run and return its log."""
    executing = start(run, stream)
    events: list[AnyEvent] = []
    async with asyncio.timeout(5):
        while not executing.done():
            events += [record.event for record in run.take().records]
            run.committed()
            await asyncio.sleep(0)
    await executing
    return events


def yielding(*items: Any) -> StreamItems:
    async def stream(turn: Turn) -> AsyncGenerator[Any, None]:
        for item in items:
            yield item

    return stream


def raising(error: BaseException) -> StreamItems:
    async def stream(turn: Turn) -> AsyncGenerator[Any, None]:
        yield Status(text="at work")
        raise error

    return stream


async def cancelling(turn: Turn) -> AsyncGenerator[Any, None]:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)
    yield Status(text="not reached")


async def test_events_of_the_source_are_appended_in_order() -> None:
    events = [TextDelta(message_id="m", text="Hello"), TextFinished(message_id="m"), *END]
    assert await events_of(execution(), yielding(*events, Status(text="late"))) == [STARTED, *events]


@pytest.mark.parametrize(
    ("stream", "code", "message"),
    [
        (raising(ValueError("broken")), "agent_error", "ValueError: broken"),
        (raising(SystemExit(3)), "agent_error", "SystemExit: 3"),
        (cancelling, "agent_error", "the agent has cancelled its own task"),
        (yielding(), "ended_early", ""),
        (yielding(RunFinished()), "bad_event", ""),
        (yielding(5), "bad_event", "not int"),
    ],
    ids=["exception", "exit", "cancellation", "no end", "no answer", "no event"],
)
async def test_run_of_a_source_that_does_not_finish_fails_with_a_code(
    stream: StreamItems, code: str, message: str
) -> None:
    failed = (await events_of(execution(), stream))[-1]
    assert isinstance(failed, RunFailed)
    assert failed.code == code and message in failed.message


async def test_failed_rejected_and_stopped_calls_have_different_outcomes() -> None:
    async def stream(turn: Turn) -> AsyncGenerator[Any, None]:
        for call_id in ("failed", "rejected", "open", "waiting"):
            yield ToolStarted(call_id=call_id, name="rm", args={})
        yield ToolFinished(call_id="failed", error="stopped")
        for call_id in ("rejected", "waiting"):
            yield ApprovalRequested(approval_id=call_id, name="rm", args={}, call_id=call_id)
        yield ApprovalResolved(approval_id="rejected", decision="reject", by="ann")
        yield ToolFinished(call_id="rejected", error="ann said no", result="x" * 100_000)
        raise ValueError("stopped")

    events = await events_of(execution(), stream)
    outcomes = {event.call_id: event.outcome for event in events if isinstance(event, ToolFinished)}
    assert outcomes == {"failed": "failed", "rejected": "rejected", "open": "stopped", "waiting": "stopped"}


async def test_tool_with_a_status_text_shows_it_when_it_starts() -> None:
    run = execution(status={"search": "Searching"})
    events = [STARTED, ToolStarted(call_id="c1", name="search", args={})]
    for event in events:
        run.emit(event)
    assert [record.event for record in run.take().records] == [*events, Status(text="Searching")]


# Files


async def test_file_of_the_source_becomes_an_artifact() -> None:
    file = FileMade(name="a.txt", data=b"abc", media_type="text/plain", call_id="c1")
    made = (await events_of(execution(), yielding(file, *END)))[1]
    assert isinstance(made, ArtifactMade)
    assert (made.name, made.media_type, made.size, made.call_id) == ("a.txt", "text/plain", 3, "c1")


async def test_file_that_cannot_be_read_becomes_a_status() -> None:
    def read() -> bytes:
        raise OSError("no such file")

    file = FileMade(name="a.txt", data=read, media_type="text/plain")
    events = await events_of(execution(), yielding(file, *END))
    assert events[1:] == [Status(text="The file a.txt cannot be read: no such file"), *END]


async def test_source_that_never_suspends_ends_when_its_session_is_full() -> None:
    made = 0

    async def stream(turn: Turn) -> AsyncGenerator[FileMade, None]:
        nonlocal made
        while True:
            made += 1
            yield FileMade(name="f", data=bytes(20_000), media_type="application/octet-stream")

    failed = (await events_of(execution(limits=RunLimits(session_max=10_000)), stream))[-1]
    assert isinstance(failed, RunFailed) and failed.code == "log_full"
    assert made == 1


# Time limits


@pytest.mark.parametrize(
    ("limits", "code"),
    [
        (RunLimits(run_seconds=10, silence_seconds=100), "run_timeout"),
        (RunLimits(run_seconds=100, silence_seconds=10), "silence_timeout"),
    ],
)
async def test_run_that_reaches_a_time_limit_fails_with_its_code(
    loop_clock: Clock, limits: RunLimits, code: str
) -> None:
    async def stream(turn: Turn) -> AsyncGenerator[Any, None]:
        yield Status(text="at work")
        await asyncio.Event().wait()

    run = execution(limits=limits)
    executing = start(run, stream)
    await loop_clock.settle()
    await loop_clock.advance(9)
    assert run.grammar.terminal is None
    await loop_clock.advance(2)
    terminal = run.take().records[-1].event
    run.committed()
    await executing
    assert isinstance(terminal, RunFailed) and terminal.code == code


# Commits


async def test_all_that_wait_for_room_continue_after_a_commit() -> None:
    """The source and the threads of its tools wait at the same time."""
    run = execution()
    run.emit(STARTED)
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


async def test_suspension_waits_until_everything_is_committed() -> None:
    run = execution()
    run.emit(STARTED)
    suspending = asyncio.create_task(run.suspend())
    await asyncio.sleep(0)
    assert not suspending.done()
    run.take()
    run.committed()
    await suspending
    run.emit(Status(text="dropped"))
    assert run.take().records == []
