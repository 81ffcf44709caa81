"""Approvals of a run context: Stop, the decision and the expiry may come at the same time."""

import asyncio
import time
from pathlib import Path

import pytest

from limelight.events import ApprovalResolved, RunStarted, ToolStarted
from limelight.models import Decide
from limelight.runs.engine import Execution
from limelight.runs.limits import RunLimits
from limelight.runs.run_context import RunContext
from limelight.sources.base import Approval, User
from tests.runs.execution import execution
from tests.support.wait import eventually


def asking(run: Execution) -> tuple[RunContext, "asyncio.Task[Approval]"]:
    """An agent that waits for an approval."""
    ctx = RunContext(run, User("ann"), Path)
    run.emit(RunStarted(agent="a"))
    run.emit(ToolStarted(call_id="c", name="delete", args={}))
    return ctx, asyncio.create_task(_ask(ctx))


async def _ask(ctx: RunContext) -> Approval:
    answer = await ctx.approve("delete", {}, call_id="c")
    await asyncio.sleep(3600)  # the approved work
    return answer


@pytest.mark.parametrize("turns", range(6))
async def test_stop_that_comes_together_with_the_decision_is_not_lost(turns: int) -> None:
    run = execution()
    ctx, task = asking(run)
    await eventually(lambda: run.grammar.approvals)
    ctx.resolve(Decide("run_1", next(iter(run.grammar.approvals)), "approve"))
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    done, _ = await asyncio.wait([task], timeout=5)
    task.cancel()
    assert done and task.cancelled()


async def test_decision_at_the_moment_of_expiry_is_the_only_one() -> None:
    run = execution(limits=RunLimits(approval_seconds=0.4))
    ctx, task = asking(run)
    await eventually(lambda: run.grammar.approvals)
    approval_id = next(iter(run.grammar.approvals))
    asyncio.get_running_loop().call_soon(ctx.resolve, Decide("run_1", approval_id, "approve"))
    time.sleep(0.5)  # noqa: ASYNC251 - so that the decision and the expiry are both due when the loop continues
    for _ in range(6):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task], timeout=5)
    resolved = [record.event for record in run.take().records if isinstance(record.event, ApprovalResolved)]
    assert [event.decision for event in resolved] == ["approve"]
