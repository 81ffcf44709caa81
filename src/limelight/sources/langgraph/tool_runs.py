"""Matches tools that nodes run themselves to the calls of models. Pure.

A node may run a tool with the arguments of a call but without its id; LangChain reports such a run under an id of its
own. The run is matched to the open call with that name and those arguments, or else to the only call that a running
task was given and that it can be. The returned value is kept until the node ends, because the message that the node
makes of it is the result that the model gets.
"""

import re
from typing import Any

import msgspec

from limelight.sources.langgraph.stream_parts import Namespace
from limelight.sources.langgraph.tool_calls import GraphCall, ToolRun
from limelight.sources.values import args_value

RUN_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""The form of LangChain's run ids. A tool that was given a call runs under the id of the call instead."""
UNREADABLE = 3
"""The distance of arguments that cannot be compared, because one side is unknown or not an object."""


def match_call(open_calls: list[GraphCall], agent_id: str, name: str, given: Any) -> GraphCall | None:
    """The open call of an agent for which a node runs a tool with these arguments; None means unknown arguments.

    The best match has equal arguments; next come arguments to which the node has added some, then values with the same
    text (1 for "1"), then a call whose arguments cannot be read. Among equals it is the oldest call that was not run; a
    call whose run has failed may be run again.
    """
    candidates = [call for call in open_calls if call.agent_id == agent_id and call.name == name]
    given = None if given is None else args_value(given)
    ranked = [
        (distance, call.run is not None, at)
        for at, call in enumerate(candidates)
        if (distance := _distance(call, given)) is not None
        and (_is_free(call) or (distance < UNREADABLE and call.run is not None and call.run.guessed))
    ]
    return candidates[min(ranked)[2]] if ranked else None


def match_given_call(by_task: list[list[GraphCall]], name: str, given: Any, tool_names: set[str]) -> GraphCall | None:
    """The only call that a run can be for, among the calls that each running task was given.

    It is the only one with this name whose arguments the node can have converted. Otherwise it is the only one with the
    same arguments whose name no tool has (`tool_names`): then the tool has another name than the model uses.
    """
    args = args_value(given)
    for calls in by_task:
        free = [call for call in calls if not call.finished and _is_free(call)]
        converted = [call for call in free if call.name == name and _is_converted(call.known_args, args)]
        renamed = [call for call in free if args and call.known_args == args and call.name not in tool_names]
        found = _only(converted) or _only(renamed)
        if found is not None:
            return found
    return None


class ToolRuns:
    """The runs of tools that nodes have started for open calls."""

    def __init__(self) -> None:
        self._calls: dict[str, GraphCall] = {}
        """By run id."""

    def call(self, run_id: str) -> GraphCall | None:
        """The call that a run executes."""
        return self._calls.get(run_id)

    def start(self, call: GraphCall, run: ToolRun) -> ToolRun | None:
        """Match a run to a call. Returns the guessed run that it replaces, which is not the call's."""
        replaced = call.run if call.run is not None and call.run.guessed and not call.run.failed else None
        if replaced is not None:
            self._calls.pop(replaced.run_id, None)
        call.run = run
        self._calls[run.run_id] = call
        return replaced

    def correct_match(self, call: GraphCall, task_id: str) -> None:
        """Correct the match of a call that a message of this task ends.

        Of equal calls in parallel tasks, a run may have been matched to the wrong one. If the call has no run that has
        ended, while an equal call of another task has one, the two calls exchange their runs.
        """
        if call.finished or call.running or (call.run is not None and not call.run.live):
            return
        others = (other for other in self._calls.values() if other is not call and not other.finished)
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

    def in_task(self, task_id: str) -> list[tuple[GraphCall, ToolRun]]:
        """The open calls that a task has run."""
        runs = [(call, call.run) for call in self._calls.values() if not call.finished]
        return [(call, run) for call, run in runs if run is not None and run.task_id == task_id]

    def ending_with(self, ns: Namespace, task_id: str, *, is_last: bool) -> list[tuple[GraphCall, ToolRun]]:
        """The open calls that end with a task. A run of an unknown task ends with the last task of its graph."""
        unplaced = [(call, run) for call, run in self.in_task("") if run.ns == ns]
        return self.in_task(task_id) + (unplaced if task_id and is_last else [])

    def end_task(self, ns: Namespace, task_id: str, now: float, *, is_last: bool) -> None:
        """End the runs that a task has left open because of an interrupt: they will be run again."""
        for _, run in self.ending_with(ns, task_id, is_last=is_last):
            if run.live:
                run.end(now)
        self._calls = {run_id: call for run_id, call in self._calls.items() if not call.finished}


def _may_have_run_of(call: GraphCall, other: GraphCall, task_id: str) -> bool:
    """Whether the run that was matched to the other call can be the run of this call."""
    run = other.run
    if run is None or run.live or (task_id and run.task_id == task_id):
        return False
    return (other.agent_id, other.name) == (call.agent_id, call.name) and (
        run.guessed or other.known_args == call.known_args
    )


def _is_free(call: GraphCall) -> bool:
    """Whether a run may be matched to a call: it has no run, or the last one has failed or was interrupted."""
    return not call.running and (call.run is None or call.run.failed)


def _distance(call: GraphCall, given: dict[str, Any] | str | None) -> int | None:
    """How much the arguments of a run differ from those of a call; None if they do not match."""
    args = call.known_args
    if given is None or isinstance(args, str) or isinstance(given, str):
        return UNREADABLE if args != given else 0
    if args == given:
        return 0
    if not args.keys() <= given.keys():
        return None
    if all(given[key] == value for key, value in args.items()):
        return 1
    return 2 if all(_as_text(given[key]) == _as_text(value) for key, value in args.items()) else None


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _is_converted(args: dict[str, Any] | str, given: dict[str, Any] | str) -> bool:
    """Whether a node can have converted the arguments of a call: each value is equal, or of another type."""
    if isinstance(args, str) or isinstance(given, str):
        return False
    return args.keys() <= given.keys() and all(
        type(given[key]) is not type(value) or given[key] == value for key, value in args.items()
    )


def _only(calls: list[GraphCall]) -> GraphCall | None:
    """The oldest of these calls, if all have one name and the same arguments. Calls that were not run come first."""
    calls = [call for call in calls if call.run is None] or calls
    if len({call.name for call in calls}) != 1 or any(call.known_args != calls[0].known_args for call in calls):
        return None
    return calls[0]
