"""Questions to people before a tool runs, for agents that could not ask by themselves.

The thread that runs the agent stands still until there is an answer. Nothing of it can be kept, so a run that waits
ends with its server. Which tools, the configuration says.
"""

import asyncio
from concurrent.futures import Future
from typing import Any, cast

import msgspec

from limelight.errors import SetupError
from limelight.sources.base import Approval, Context
from limelight.sources.smolagents.signals import ANSWER, CODE, Signal
from limelight.sources.threads import Left


class Asked(Signal, frozen=True):
    """A tool waits for a person's word."""

    ticket: int
    name: str
    args: dict[str, Any]
    answer: "Future[Approval]" = msgspec.field(default_factory=Future)


class Rejected(Exception):
    """A person has said no, or nobody has said anything in time. It is told to the agent."""

    def __init__(self, approval: Approval) -> None:
        why = f": {approval.reason}" if approval.reason else ""
        super().__init__(f"rejected by {approval.by or 'a person'}{why}")


class Questions:
    """Asks for the threads of one run, and lets them go when it is over."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._open: dict[asyncio.Task[None], Asked] = {}

    def ask(self, asked: Asked, call_id: str) -> None:
        task = asyncio.create_task(self._answer(asked, call_id))
        self._open[task] = asked
        task.add_done_callback(self._open.pop)

    async def _answer(self, asked: Asked, call_id: str) -> None:
        try:
            approval = await self._context.approve(asked.name, asked.args, call_id=call_id, agent_id=asked.agent_id)
        except Exception as error:
            asked.answer.set_exception(error)
        else:
            asked.answer.set_result(approval)

    def close(self) -> None:
        """Nobody will answer any more: who waits leaves."""
        for task, asked in list(self._open.items()):
            task.cancel()
            if not asked.answer.done():
                asked.answer.set_exception(Left())


def check_names(agent: Any, names: tuple[str, ...]) -> None:
    """Raises SetupError for a tool that is not there: misspelt, it would run without a question."""
    known = sorted(_tools_of(agent))
    for name in names:
        if name not in known:
            raise SetupError(f"approve: nobody can be asked before {name!r} here; there are: {', '.join(known)}")


def _tools_of(agent: Any) -> set[str]:
    managed = cast("dict[str, Any]", getattr(agent, "managed_agents", None) or {})
    names = {*cast("dict[str, Any]", agent.tools), *managed} - {ANSWER}
    executor = getattr(agent, "python_executor", None)
    if executor is not None:  # one that runs code elsewhere calls tools there, where nobody can hold them up
        is_here = any(base.__name__ == "LocalPythonExecutor" for base in type(executor).__mro__)
        names = {*(names if is_here else ()), CODE}
    return names.union(*map(_tools_of, managed.values()))
