"""Runs of tools that nodes have started themselves, each matched to the call of a model that it carries out. Pure.

LangChain reports such a run under an id of its own. What the tool returns is kept until the node ends, because the
message that the node makes of it is the result that the model gets.
"""

import re

from limelight.sources.langgraph.calls import Call, NodeRun

RUN_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""The form of the ids of runs. A run that was given a call has the id of the call, which a provider makes up."""


class NodeRuns:
    """The runs of one turn whose calls are open."""

    def __init__(self) -> None:
        self._calls: dict[str, Call] = {}

    def call(self, run_id: str) -> Call | None:
        """The call that a run carries out."""
        return self._calls.get(run_id)

    def start(self, run_id: str, call: Call, task_id: str, now: float) -> None:
        call.run = NodeRun(task_id, now)
        self._calls[run_id] = call

    def in_task(self, task_id: str) -> list[tuple[Call, NodeRun]]:
        """The open calls that a task has run."""
        runs = [(call, call.run) for call in self._calls.values() if not call.over]
        return [(call, run) for call, run in runs if run is not None and run.task_id == task_id]

    def ending_with(self, agent_id: str, task_id: str) -> list[tuple[Call, NodeRun]]:
        """The same at the end of the task. A run whose task is not known ends with any task of its agent."""
        unplaced = [(call, run) for call, run in self.in_task("") if call.agent_id == agent_id]
        return self.in_task(task_id) + (unplaced if task_id else [])

    def task_ended(self, task_id: str, now: float) -> None:
        """A tool that its task has left without an end, by an interrupt, will be run again."""
        for _, run in self.in_task(task_id):
            if run.live:
                run.end(now)
        self._calls = {run_id: call for run_id, call in self._calls.items() if not call.over}
