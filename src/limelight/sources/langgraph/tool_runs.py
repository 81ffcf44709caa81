"""Matches the tool runs that a graph's nodes start themselves to the tool calls of models. Pure.

A tool run is one execution of a tool. A node may run a tool with the arguments of a tool call but without its call id;
LangChain then reports the tool run under a new run id. The tool run is matched to the open call with the same name and
arguments. If there is no such call, it is matched to the only possible call among those that a running task has
received. The value that the tool returns is stored until the node ends, because the node converts it into the message
that the model gets.
"""

import re
from collections import deque
from typing import Any

import msgspec

from limelight.sources.langgraph.agents import SubAgents
from limelight.sources.langgraph.stream_parts import Namespace
from limelight.sources.langgraph.tasks import Task, Tasks
from limelight.sources.langgraph.tool_calls import GraphCall, ToolCalls, ToolRun
from limelight.sources.tool_results import args_value

RUN_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""Pattern of LangChain's run ids. LangChain uses a call's id instead if a tool is run with one."""
UNREADABLE = 3
"""The distance between arguments that cannot be compared, because one side is unknown or is not an object."""


def match_call(open_calls: list[GraphCall], agent_id: str, name: str, given: Any) -> GraphCall | None:
    """Return the open call of an agent that best matches a tool run; None if no call matches.

    `given` are the arguments of the tool run; None means unknown. Equal arguments match best. Next come arguments to
    which the node has added some, then values with the same text (1 for "1"), then arguments that cannot be compared.
    Among equal matches, calls without a tool run come first, then the oldest call. A call whose tool run has failed or
    was only guessed can be matched again.
    """
    candidates = [call for call in open_calls if call.agent_id == agent_id and call.name == name]
    given = None if given is None else args_value(given)
    ranked = [
        (distance, call.run is not None, at)
        for at, call in enumerate(candidates)
        if (distance := _distance(call, given)) is not None
        and (call.is_free or (distance < UNREADABLE and call.run is not None and call.run.guessed))
    ]
    return candidates[min(ranked)[2]] if ranked else None


def match_given_call(by_task: list[list[GraphCall]], name: str, given: Any, tool_names: set[str]) -> GraphCall | None:
    """Return the only call that a tool run can belong to, among the calls that a running task was given.

    It is the only call with this name whose arguments the node can have converted. Otherwise it is the only call with
    equal arguments and a name that no tool has (`tool_names`): the tool then has another name than the model uses. The
    tasks are checked one after the other; the first task with such a call decides.
    """
    args = args_value(given)
    for calls in by_task:
        free = [call for call in calls if not call.finished and call.is_free]
        converted = [call for call in free if call.name == name and _is_converted(call.known_args, args)]
        renamed = [call for call in free if args and call.known_args == args and call.name not in tool_names]
        found = _only(converted) or _only(renamed)
        if found is not None:
            return found
    return None


class ToolTasks:
    """The graph tasks in which tools run, by the events of their runs.

    A callback of LangChain records them, because LangGraph's stream has the graph of a tool and not its task. Tools
    with the same call id may run at once, so the tasks of each kind of event are kept in order.
    """

    def __init__(self) -> None:
        self._tasks: dict[tuple[str, str], deque[str]] = {}

    def record(self, event: str, call_id: str, task_id: str) -> None:
        self._tasks.setdefault((event, call_id), deque()).append(task_id)

    def take(self, event: str, call_id: str) -> str:
        """Return the task of the next event of this kind about a call; "" if it is unknown."""
        recorded = self._tasks.get((event, call_id))
        if recorded is None:
            return ""
        task_id = recorded.popleft()
        if not recorded:
            del self._tasks[event, call_id]
        return task_id


class ToolRuns:
    """The tool runs that a graph's nodes have started themselves, each matched to the call that it executes."""

    def __init__(self, calls: ToolCalls, agents: SubAgents, tasks: Tasks) -> None:
        self._calls = calls
        self._agents = agents
        self._tasks = tasks
        self.tool_names: set[str] = set()
        """The names of all tools that were started in this run."""
        self._chosen: dict[tuple[str, str], GraphCall] = {}
        """The calls that tasks execute, by task and LangGraph's id, if calls of several branches have this id."""
        self._by_run: dict[str, GraphCall] = {}
        """The matched calls, by LangChain's id of their tool run."""

    def call(self, run_id: str) -> GraphCall | None:
        """Return the call that is matched to the tool run with this LangChain id; None if there is none."""
        return self._by_run.get(run_id)

    def find_call(
        self, ns: Namespace, raw_id: str, name: str | None = None, task_id: str = "", given: Any = None
    ) -> GraphCall | None:
        """Return the call with this LangGraph id: of the agent at a namespace, or an open call of an agent above it.

        The agent's branches are included, first of all the branch of the task. If several have open calls with this id,
        the arguments (`given`) decide when the task starts a call, and then the same call is found for the task. A
        subgraph may run tools for the calls of an ancestor.
        """
        own_branch, agent_id = self._agents.agent_id(ns, task_id) or "", self._agents.agent_id(ns) or ""
        candidates = dict.fromkeys((own_branch, agent_id, *self._agents.branch_ids(ns)))
        same = [call for id_ in candidates if (call := self._calls.get(id_, raw_id)) is not None]
        if same:
            return self._choose(same, raw_id, task_id, given)
        agents, spawning = self._agents.ancestors(ns)
        calls = [call for agent_id in agents if (call := self._calls.get(agent_id, raw_id)) is not None]
        return next((c for c in calls if not c.finished and c not in spawning and name in (None, c.name)), None)

    def find_branch_call(self, ns: Namespace, raw_id: str, task_id: str, given: Any) -> GraphCall | None:
        """Return the open call with this LangGraph id that a branch of the agent at a namespace has made."""
        made = (self._calls.get(agent_id, raw_id) for agent_id in self._agents.branch_ids(ns))
        still_open = [call for call in made if call is not None and not call.finished]
        return self._choose(still_open, raw_id, task_id, given) if still_open else None

    def _choose(self, same: list[GraphCall], raw_id: str, task_id: str, given: Any) -> GraphCall:
        """Return the call that a task executes, among calls of several agents with the same LangGraph id."""
        if len(same) == 1:
            return same[0]
        still_open = [call for call in same if not call.finished] or same
        known = self._chosen.get((task_id, raw_id))
        if task_id and known in still_open:
            return known
        others = self._chosen.values()
        fits = [call for call in still_open if given is not None and call.known_args == args_value(given)] or still_open
        call = next((call for call in fits if call not in others), fits[0])
        if task_id and given is not None:
            self._chosen[task_id, raw_id] = call
        return call

    def match(
        self, ns: Namespace, run_id: str, name: str, given: Any, now: float, in_task: str = ""
    ) -> tuple[GraphCall | None, ToolRun | None]:
        """Match a tool run without a call id to a call. Returns the call, and the tool run that this one replaces.

        The replaced tool run was matched to the call by a wrong guess. Either value may be None. `in_task` is the task
        in which the tool runs, if it is known.
        """
        if not RUN_ID.fullmatch(run_id):
            return None, None
        agents, _ = self._agents.ancestors(ns)
        own = dict.fromkeys((self._agents.agent_id(ns, in_task) or "", self._agents.agent_id(ns) or ""))
        agents = [*own, *(branch for branch in self._agents.branch_ids(ns) if branch not in own), *agents]
        matches = (match_call(self._calls.open, agent_id, name, given) for agent_id in agents)
        matched = next((match for match in matches if match is not None), None)
        by_task = {task.task_id: self.calls_given(task.task_id) for task in self._tasks.running_in(ns)}
        call = matched or match_given_call(list(by_task.values()), name, given, self.tool_names)
        if call is None:
            return None, None
        task_id = _task_running(by_task, call)
        return call, self._start(call, ToolRun(run_id, name, given, task_id, ns, now, guessed=matched is None))

    def calls_given(self, task_id: str) -> list[GraphCall]:
        """Return the open calls that a graph task executes: those made in it, or else those in its input.

        Single calls in the input take precedence over calls in its last messages, because all tasks of a fan-out may
        receive the same messages.
        """
        made_here = self._calls.open_made_in(task_id)
        task = self._tasks.running.get(task_id)
        if made_here or task is None:
            return made_here
        single, in_messages = task.call_ids
        return self._open_calls(task.ns, single) or self._open_calls(task.ns, in_messages)

    def runs_given_calls(self, task: Task) -> bool:
        """Whether a task executes open tool calls that its input contains one by one, as `Send` passes them."""
        return bool(self._open_calls(task.ns, task.call_ids[0]))

    def _open_calls(self, ns: Namespace, raw_ids: list[str]) -> list[GraphCall]:
        """Return the open calls with these LangGraph ids, in order; a repeated id means a different call each time."""
        calls: list[GraphCall] = []
        for raw_id in raw_ids:
            first = self.find_call(ns, raw_id)
            same = [] if first is None else self._calls.open_with_id(first.agent_id, raw_id)
            calls += [call for call in same if call not in calls][:1]
        return calls

    def find_task(self, ns: Namespace, call: GraphCall) -> None:
        """Find and record the graph task that executes a tool call.

        LangGraph does not report the task if a node takes its calls from the state.
        """
        if self._agents.has_task(call):
            return
        for task in self._tasks.running_in(ns):
            if call in self.calls_given(task.task_id):
                self._agents.add_task_call(task.task_id, call)

    def _start(self, call: GraphCall, run: ToolRun) -> ToolRun | None:
        """Assign a tool run to a call. Returns the wrongly matched tool run that it replaces, if there is one."""
        replaced = call.run if call.run is not None and call.run.guessed and not call.run.failed else None
        if replaced is not None:
            self._by_run.pop(replaced.run_id, None)
        call.run = run
        self._by_run[run.run_id] = call
        return replaced

    def correct_match(self, call: GraphCall, task_id: str) -> None:
        """Check which tool run belongs to a call, by the graph task that returned the call's result message.

        Among equal calls in parallel tasks, a tool run may have been matched to the wrong call. If the call has no tool
        run that has ended, but an equal call of another task has one, the two calls exchange their tool runs.
        """
        if call.finished or (call.started_by_id if call.run is None else not call.run.live):
            return
        others = (other for other in self._by_run.values() if other is not call and not other.finished)
        other = next((other for other in others if _may_have_run_of(call, other, task_id)), None)
        if other is None or other.run is None:
            return
        exchanged = {id(call): other, id(other): call}
        self._by_run = {run_id: exchanged.get(id(each), each) for run_id, each in self._by_run.items()}
        other_task = other.run.task_id
        call.run, other.run = other.run, call.run
        call.error, other.error = other.error, call.error
        call.run.task_id = task_id
        if other.run is not None:
            other.run.task_id = other_task

    def in_task(self, task_id: str) -> list[tuple[GraphCall, ToolRun]]:
        """Return the open calls whose tool runs belong to this task, each with its tool run."""
        runs = [(call, call.run) for call in self._by_run.values() if not call.finished]
        return [(call, run) for call, run in runs if run is not None and run.task_id == task_id]

    def ending_with(self, ns: Namespace, task_id: str, *, is_last: bool) -> list[tuple[GraphCall, ToolRun]]:
        """Return the open calls whose tool runs end when a task ends, each with its tool run.

        A tool run without a known task ends with the last task of its graph.
        """
        unplaced = [(call, run) for call, run in self.in_task("") if run.ns == ns]
        return self.in_task(task_id) + (unplaced if task_id and is_last else [])

    def end_task(self, ns: Namespace, task_id: str, now: float, *, is_last: bool) -> None:
        """End a task's tool runs that are still running, and discard its finished calls.

        Tool runs are still live after an interrupt; the node will start them again.
        """
        for _, run in self.ending_with(ns, task_id, is_last=is_last):
            if run.live:
                run.end(now)
        self._by_run = {run_id: call for run_id, call in self._by_run.items() if not call.finished}


def _task_running(by_task: dict[str, list[GraphCall]], call: GraphCall) -> str:
    """Return the id of the graph task that executes a call; "" if several tasks are possible.

    It is the only task that has received the call, or the only running task.
    """
    given = [task_id for task_id, calls in by_task.items() if call in calls]
    candidates = given or list(by_task)
    return candidates[0] if len(candidates) == 1 else ""


def _may_have_run_of(call: GraphCall, other: GraphCall, task_id: str) -> bool:
    """Whether the tool run matched to `other` can belong to `call`, whose result this graph task returned."""
    run = other.run
    if run is None or run.live or (task_id and run.task_id == task_id):
        return False
    return (other.agent_id, other.name) == (call.agent_id, call.name) and (
        run.guessed or other.known_args == call.known_args
    )


def _distance(call: GraphCall, given: dict[str, Any] | str | None) -> int | None:
    """Return how much a tool run's arguments differ from those of a call; None if they do not match."""
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
    """Whether a node can have converted a call's arguments to `given`: each value is equal or has another type."""
    if isinstance(args, str) or isinstance(given, str):
        return False
    return args.keys() <= given.keys() and all(
        type(given[key]) is not type(value) or given[key] == value for key, value in args.items()
    )


def _only(calls: list[GraphCall]) -> GraphCall | None:
    """Return the oldest of these calls if all have the same name and arguments, else None.

    If there are calls without a tool run, only these are considered.
    """
    calls = [call for call in calls if call.run is None] or calls
    if len({call.name for call in calls}) != 1 or any(call.known_args != calls[0].known_args for call in calls):
        return None
    return calls[0]
