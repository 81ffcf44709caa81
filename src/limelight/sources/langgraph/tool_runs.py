"""Runs of tools that nodes have started themselves, each matched to the call of a model that it carries out. Pure.

LangChain reports such a run under an id of its own. What the tool returns is kept until the node ends, because the
message that the node makes of it is the result that the model gets.
"""

import re

from limelight.sources.langgraph.stream_parts import Namespace
from limelight.sources.langgraph.tool_calls import Call, NodeRun

RUN_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""The form of the ids of runs. A run that was given a call has the id of the call, which a provider makes up."""


class NodeRuns:
    """The runs of one turn whose calls are open."""

    def __init__(self) -> None:
        self._calls: dict[str, Call] = {}

    def call(self, run_id: str) -> Call | None:
        """The call that a run carries out."""
        return self._calls.get(run_id)

    def start(self, call: Call, run: NodeRun) -> NodeRun | None:
        """Match a run to a call. Returns the run that it replaces, if that was a guess: it is not the call's."""
        replaced = call.run if call.run is not None and call.run.guessed and not call.run.failed else None
        if replaced is not None:
            self._calls.pop(replaced.run_id, None)
        call.run = run
        self._calls[run.run_id] = call
        return replaced

    def correct(self, call: Call, task_id: str) -> None:
        """Correct the match of a call that a message of this task ends.

        Of calls with the same arguments in parallel tasks, a run may have been matched to the wrong one. If the call
        has no run that has ended, while such a call of another task has one, the two calls exchange their runs.
        """
        if call.over or call.running or (call.run is not None and not call.run.live):
            return
        others = (other for other in self._calls.values() if other is not call and not other.over)
        other = next((other for other in others if _may_have_run_of(call, other, task_id)), None)
        if other is None or other.run is None:
            return
        exchanged = {id(call): other, id(other): call}
        self._calls = {run_id: exchanged.get(id(each), each) for run_id, each in self._calls.items()}
        other_task = other.run.task_id
        call.run, other.run = other.run, call.run
        call.error, other.error = other.error, call.error
        call.run.task_id = task_id
        if other.run is not None:
            other.run.task_id = other_task

    def in_task(self, task_id: str) -> list[tuple[Call, NodeRun]]:
        """The open calls that a task has run."""
        runs = [(call, call.run) for call in self._calls.values() if not call.over]
        return [(call, run) for call, run in runs if run is not None and run.task_id == task_id]

    def ending_with(self, ns: Namespace, task_id: str, *, is_last: bool) -> list[tuple[Call, NodeRun]]:
        """The same at the end of the task. A run whose task is not known ends with the last task of its graph."""
        unplaced = [(call, run) for call, run in self.in_task("") if run.ns == ns]
        return self.in_task(task_id) + (unplaced if task_id and is_last else [])

    def task_ended(self, ns: Namespace, task_id: str, now: float, *, is_last: bool) -> None:
        """A tool that its task has left without an end, by an interrupt, will be run again."""
        for _, run in self.ending_with(ns, task_id, is_last=is_last):
            if run.live:
                run.end(now)
        self._calls = {run_id: call for run_id, call in self._calls.items() if not call.over}


def _may_have_run_of(call: Call, other: Call, task_id: str) -> bool:
    """Whether the run that was matched to the other call can be the run of this call."""
    run = other.run
    if run is None or run.live or (task_id and run.task_id == task_id):
        return False
    return (other.agent_id, other.name) == (call.agent_id, call.name) and (
        run.guessed or other.known_args == call.known_args
    )
