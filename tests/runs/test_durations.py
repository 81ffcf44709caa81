"""Durations of calls and steps: from when they may run to their end, also if the engine ends them."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from limelight.events import (
    AgentStarted,
    AnyEvent,
    ApprovalRequested,
    ApprovalResolved,
    FinalAnswer,
    Record,
    RunCancelled,
    RunFinished,
    RunStarted,
    StepFinished,
    StepStarted,
    ToolFinished,
    ToolReady,
    ToolStarted,
)
from limelight.models import Decide, User
from limelight.runs.durations import Durations
from limelight.runs.engine import Execution
from limelight.runs.run_context import RunContext
from tests.runs.execution import execution
from tests.support.wait import eventually

TimedEvent = tuple[float, AnyEvent]
CALL = ToolStarted(call_id="c", name="t", args={})
ENDED = ToolFinished(call_id="c", result="done")


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("limelight.runs.engine.perf_counter", clock)
    return clock


def duration(*events: TimedEvent) -> int | None:
    """The duration of the last event, if each is measured at its second."""
    durations = Durations()
    event: Any = None
    for now, event in events:
        event = durations.measure(event, now)
    return event.duration_ms


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([(1, CALL), (3, ENDED)], 2000),
        ([(1, ToolStarted(call_id="c", name="t")), (5, ToolReady(call_id="c", args={})), (6, ENDED)], 1000),
        ([(1, CALL), (3, ToolFinished(call_id="c", duration_ms=7))], 7),
        ([(1, StepStarted(number=1)), (2.5, StepFinished(number=1))], 1500),
        ([(1, StepStarted(number=1)), (2, StepFinished(agent_id="a", number=1))], None),
        ([(1, ENDED)], None),
    ],
)
def test_duration_starts_when_a_call_or_step_may_run(events: list[TimedEvent], expected: int | None) -> None:
    assert duration(*events) == expected


def test_duration_of_a_call_excludes_the_wait_for_its_approval() -> None:
    asked = ApprovalRequested(approval_id="p", call_id="c", name="t", args={})
    assert (
        duration((1, CALL), (2, asked), (50, ApprovalResolved(approval_id="p", decision="approve")), (51, ENDED))
        == 1000
    )


def ends(run: Execution) -> dict[str, int | None]:
    events = [record.event for record in run.take().records]
    return {
        e.call_id if isinstance(e, ToolFinished) else "step": e.duration_ms
        for e in events
        if isinstance(e, ToolFinished | StepFinished)
    }


async def test_calls_that_are_approved_together_are_measured_from_the_last_decision(clock: Clock) -> None:
    run = execution()
    ctx = RunContext(run, User("ann"), Path)
    run.emit(RunStarted(agent="a"))
    run.emit(ToolStarted(call_id="task", name="task", args={}))
    run.emit(AgentStarted(agent_id="sub", name="sub", call_id="task"))
    for call_id in ("first", "second", "free"):
        run.emit(ToolStarted(agent_id="sub", call_id=call_id, name="t", args={}))
    questions = [ctx.approve("t", {}, call_id=call_id, agent_id="sub") for call_id in ("first", "second")]
    asking = asyncio.create_task(ctx.together(*questions))
    await eventually(lambda: len(run.grammar.approvals) == 2)
    for seconds, approval_id in zip((10, 40), list(run.grammar.approvals), strict=True):
        clock.now = 100 + seconds
        ctx.resolve(Decide("run_1", approval_id, "approve"))
        await eventually(lambda approval_id=approval_id: approval_id not in run.grammar.approvals)
    await asking
    clock.now += 1
    for call_id in ("first", "second", "free"):
        run.emit(ToolFinished(agent_id="sub", call_id=call_id))
    run.emit(ToolFinished(call_id="task"))
    assert ends(run) == {"first": 1000, "second": 1000, "free": 1000, "task": 41_000}


async def test_calls_and_steps_that_the_engine_closes_are_measured(clock: Clock) -> None:
    run = execution()
    run.emit(RunStarted(agent="a"))
    run.emit(StepStarted(number=1))
    run.emit(CALL)
    clock.now += 3
    run.seal(RunCancelled(reason="enough"))
    assert ends(run) == {"c": 3000, "step": 3000}


async def test_calls_of_a_sub_agent_that_end_with_its_call_are_measured(clock: Clock) -> None:
    run = execution()
    run.emit(RunStarted(agent="a"))
    run.emit(CALL)
    run.emit(AgentStarted(agent_id="sub", name="sub", call_id="c"))
    run.emit(ToolStarted(agent_id="sub", call_id="inner", name="t", args={}))
    clock.now += 2
    run.emit(ToolFinished(call_id="c", error="it failed"))
    assert ends(run) == {"inner": 2000, "c": 2000}


async def test_call_whose_result_was_not_seen_has_no_duration(clock: Clock) -> None:
    run = execution()
    run.emit(RunStarted(agent="a"))
    run.emit(CALL)
    clock.now += 2
    run.emit(FinalAnswer(content="done"))
    run.emit(RunFinished())
    assert ends(run) == {"c": None}


async def test_duration_of_a_call_includes_the_time_before_a_restart(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("limelight.runs.engine.now_ms", lambda: 60_000)
    events: list[tuple[int, AnyEvent]] = [
        (10_000, RunStarted(agent="a")),
        (20_000, CALL),
        (21_000, AgentStarted(agent_id="sub", name="sub", call_id="c")),
        (22_000, ApprovalRequested(agent_id="sub", approval_id="p", name="t", args={})),
    ]
    run = execution()
    run.reopen([Record(seq, "run_1", at, event) for seq, (at, event) in enumerate(events, start=1)])
    clock.now += 5
    run.emit(ENDED)
    assert ends(run) == {"c": 45_000}
