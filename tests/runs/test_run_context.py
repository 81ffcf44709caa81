"""Approvals of a run context: Stop, the decision and the expiry may come at the same time."""

import asyncio
import time
from pathlib import Path

import pytest

from limelight.events import ApprovalRequested, ApprovalResolved, RunStarted, ToolStarted
from limelight.models import Decide, User
from limelight.runs.engine import Execution
from limelight.runs.limits import RunLimits
from limelight.runs.run_context import LoggedApproval, RunContext
from limelight.sources.base import Approval
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


async def test_logged_edit_whose_arguments_were_cut_is_requested_again() -> None:
    """The log has only the beginning of arguments over `limits.result_bytes`, as text."""
    run = execution()
    request = ApprovalRequested(approval_id="old", name="delete", args={}, call_id="c")
    edit = ApprovalResolved(approval_id="old", decision="edit", args='{"path": "aaaa')
    ctx = RunContext(run, User("ann"), Path, [LoggedApproval(request, edit)])
    run.emit(RunStarted(agent="a"))
    run.emit(ToolStarted(call_id="c", name="delete", args={}))
    task = asyncio.create_task(ctx.approve("delete", {"path": "original"}, call_id="c"))
    await eventually(lambda: run.grammar.approvals or task.done())
    assert not task.done()
    ctx.resolve(Decide("run_1", next(iter(run.grammar.approvals)), "edit", {"path": "new"}))
    assert (await task).args == {"path": "new"}
