"""Requests approvals for calls of the tools that the setting `approve` names.

smolagents' agents cannot ask a person themselves. The thread of the agent waits for the decision. Its state cannot be
saved, so a waiting run ends with its server.

The thread of the agent waits for the decision. Its state cannot be saved, so a run that waits ends with its server.
"""

import asyncio
from typing import Any, cast

from limelight.errors import SetupError
from limelight.sources.base import Context, is_instance
from limelight.sources.smolagents.reports import ANSWER, CODE, ApprovalNeeded
from limelight.sources.thread_bridge import ThreadCancelled


class ApprovalRequests:
    """The pending approval requests of one run, each with the thread that waits for the decision."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._open: dict[asyncio.Task[None], ApprovalNeeded] = {}

    def add(self, request: ApprovalNeeded, call_id: str) -> None:
        """Request an approval, and pass the decision to the thread that waits for it."""
        task = asyncio.create_task(self._ask(request, call_id))
        self._open[task] = request
        task.add_done_callback(self._open.pop)

    async def _ask(self, request: ApprovalNeeded, call_id: str) -> None:
        name, args = request.name, request.args
        try:
            approval = await self._context.approve(name, args, call_id=call_id, agent_id=request.agent_id)
        except Exception as error:
            request.approval.set_exception(error)
        else:
            request.approval.set_result(approval)

    def cancel(self) -> None:
        """Cancel the pending requests, and end the threads that wait for them."""
        for task, request in list(self._open.items()):
            task.cancel()
            if not request.approval.done():
                request.approval.set_exception(ThreadCancelled())


def check_tool_names(agent: Any, names: tuple[str, ...]) -> None:
    """Raise SetupError if the setting `approve` names a tool that the agent does not have.

    A misspelt name would let the tool run without an approval.
    """
    known = sorted(_tool_names(agent))
    for name in names:
        if name not in known:
            raise SetupError(f"approve: {name!r} cannot be approved here; these can: {', '.join(known)}")


def _tool_names(agent: Any) -> set[str]:
    managed = cast("dict[str, Any]", getattr(agent, "managed_agents", None) or {})
    names = {*cast("dict[str, Any]", agent.tools), *managed} - {ANSWER}
    executor = getattr(agent, "python_executor", None)
    if executor is not None:  # calls that a remote executor makes cannot be paused
        is_local = is_instance(executor, "smolagents", "LocalPythonExecutor")
        names = {*(names if is_local else ()), CODE}
    return names.union(*map(_tool_names, managed.values()))
