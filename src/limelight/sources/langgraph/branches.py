"""Decides which tasks of a graph are shown as branches, and how branches of one name are distinguished. Pure.

A branch is a task that runs beside other tasks of its graph: parallel nodes, tasks that `Send` has started, parallel
subgraphs and parallel calls of `@task` functions. A task that runs alone is a step of its agent instead. Whether a task
runs alone is known when the next one starts. The first of several tasks therefore begins as a step, and becomes a
branch inside of this step when the second one starts.

A task that `Send` has started for tool calls of a model executes these calls, so the calls show it. It becomes a branch
only if a model speaks in it.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import msgspec

from limelight.display_fields import summarize
from limelight.events import AgentStarted, AnyEvent
from limelight.json_values import fields_of, items_of, json_value
from limelight.sources.langgraph.agents import SubAgents
from limelight.sources.langgraph.stream_parts import Namespace, node_of
from limelight.sources.langgraph.tasks import Task, Tasks, is_arguments, is_function_call
from limelight.sources.langgraph.tool_calls import GraphCall
from limelight.sources.resume_state import ResumeState

MAX_FIELDS = 50
"""How many fields of a task's input are compared with those of other tasks to find a title."""
SCALARS = (str, int, float)


class StartedBranch(NamedTuple):
    """A branch that starts, with the events that show it."""

    task: Task
    events: list[AnyEvent]
    has_step: bool
    """Whether a step starts in the branch. A branch that is a subgraph has the steps of the subgraph."""


class Group(msgspec.Struct):
    """Tasks of one graph that run beside each other."""

    keys: dict[str, tuple[str, ...]] = {}
    """The fields in which the inputs of the first two tasks of a node differ, by node."""
    titles: Counter[tuple[str, str]] = msgspec.field(default_factory=Counter)
    """How many branches have the same name and title."""


class Branches:
    """The branches of one run: which tasks become branches, and their titles."""

    def __init__(self, tasks: Tasks, agents: SubAgents, subgraphs: frozenset[tuple[str, ...]]) -> None:
        self._tasks = tasks
        self._agents = agents
        self._subgraphs = subgraphs
        """The paths of the nodes that are subgraphs, as names of nodes from the main graph on."""
        self._groups: dict[tuple[Namespace, bool], Group] = {}
        self._starting: set[Namespace] = set()
        """The graphs whose nodes are starting: the starts of nodes that run together follow each other directly."""
        self._runs_calls: set[str] = set()
        """The ids of the parallel tasks that execute tool calls, and are branches only if a model speaks in them."""
        self._callers: set[str] = set()
        """The ids of the tasks that have called `@task` functions."""
        self._ended_before: list[AgentStarted] = []
        """The branches of a resumed run that had ended; LangGraph reports the starts of their tasks again."""

    def restore(self, state: ResumeState) -> None:
        """Restore the branches that had ended in the last step of a resumed run's log."""
        self._ended_before = list(state.ended_branches)

    # Steps of the graph

    def is_next_step(self, ns: Namespace, task_input: Any, triggers: Any) -> bool:
        """Whether the start of a task begins the next step of its graph, so that all nodes before have ended."""
        if is_function_call(task_input, triggers):
            return False
        is_next = ns not in self._starting
        self._starting.add(ns)
        return is_next

    def end_start_of_nodes(self, ns: Namespace) -> None:
        """Record that the nodes of a graph which run together have started, because another part follows."""
        self._starting.discard(ns)

    # Tasks alone

    def is_alone(self, task: Task) -> bool:
        """Whether no task runs beside a task that starts, so that it is a step.

        A function is not alone if several nodes run that can have called it.
        """
        return not self._tasks.beside(task) and len(self._tasks.callers(task)) < 2

    def begin_alone(self, task: Task) -> str:
        """Register a task that runs alone, and return the agent to which its step belongs."""
        self._groups.pop((task.ns, task.is_function), None)
        self._join_caller(task)
        return self._agents.agent_id(task.ns, task.task_id) or ""

    def has_called_functions(self, task_id: str) -> bool:
        """Whether a task has called an `@task` function, so that its own step has ended before the function."""
        return task_id in self._callers

    def _join_caller(self, task: Task) -> str:
        """Let a function belong to the branch of the only task that can have called it. Returns this task's id."""
        callers = self._tasks.callers(task)
        if len(callers) != 1:
            return ""
        self._callers.add(callers[0].task_id)
        self._agents.join_branch(task.task_id, callers[0].task_id)
        return callers[0].task_id

    # Tasks beside others

    def begin_beside(self, task: Task, runs_calls: Callable[[Task], bool]) -> list[StartedBranch]:
        """Start the branch of a task that runs beside others, and those of the others if they are still steps.

        A task that has already emitted something stays a step.
        """
        others = [other for other in self._tasks.beside(task) if self._can_become_branch(other)]
        tasks = [each for each in (*others, task) if not self._executes_calls(each, runs_calls)]
        group = self._groups.setdefault((task.ns, task.is_function), Group())
        names = Counter(each.node for each in tasks)
        _compare_inputs(group, tasks, self._tasks.beside(task))
        started = (self._start(each, _title(group, each, is_only=names[each.node] == 1)) for each in tasks)
        return [branch for branch in started if branch is not None]

    def _can_become_branch(self, task: Task) -> bool:
        return not (task.is_active or task.is_branch or task.task_id in self._runs_calls)

    def _executes_calls(self, task: Task, runs_calls: Callable[[Task], bool]) -> bool:
        if runs_calls(task):
            self._runs_calls.add(task.task_id)
        return task.task_id in self._runs_calls

    def _start(self, task: Task, title: str) -> StartedBranch | None:
        task.is_branch = True
        caller_id = self._join_caller(task)
        parent_id = self._agents.agent_id(task.ns, caller_id) or ""
        if self._has_ended_before(task.node, parent_id, title):
            return None
        path = (*(node_of(step) for step in task.ns), task.node)
        if path in self._subgraphs:
            self._agents.expect_branch(task.ns, task.node, task.task_id, title)
            return StartedBranch(task, [], has_step=False)
        events = self._agents.start_branch(task.ns, task.node, task.task_id, title, caller_id=caller_id)
        return StartedBranch(task, events, has_step=True)

    def _has_ended_before(self, node: str, parent_id: str, title: str) -> bool:
        same = (b for b in self._ended_before if (b.name, b.parent_id, b.title) == (node, parent_id, title))
        found = next(same, None)
        if found is not None:
            self._ended_before.remove(found)
        return found is not None

    def is_late(self, task: Task) -> bool:
        """Whether a task that executes tool calls beside others becomes a branch, because a model speaks in it."""
        return task.task_id in self._runs_calls and not self._agents.is_branch(task.task_id)

    def start_late(self, task: Task, call: GraphCall | None) -> list[AnyEvent]:
        """Start the branch of a task that executes tool calls. The first of these calls has started the branch."""
        title = "" if call is not None else _title(Group(), task, is_only=True)
        return self._agents.start_branch(task.ns, task.node, task.task_id, title, call=call)


# Titles


def _compare_inputs(group: Group, starting: list[Task], beside: list[Task]) -> None:
    """Find the fields in which the input of a task that starts differs from that of another task of its node."""
    for task in starting:
        others = (other for other in (*starting, *beside) if other is not task and other.node == task.node)
        other = next(others, None)
        if task.node not in group.keys and other is not None:
            group.keys[task.node] = _varying_keys(task.input, other.input)


def _title(group: Group, task: Task, *, is_only: bool) -> str:
    """Return what distinguishes a branch from others of its name: its main input, a number, or both."""
    main = _main_input(task.input, group.keys.get(task.node)) if task.is_pushed else ""
    same = group.titles[task.node, main] = group.titles[task.node, main] + 1
    if main:
        return main if same == 1 else f"{main} ({same})"
    return "" if is_only and same == 1 else str(same)


def _main_input(given: Any, keys: tuple[str, ...] | None) -> str:
    """Return the part of a task's input that describes it best, as one line."""
    fields = _fields(given)
    chosen = {key: _plain(fields[key]) for key in list(fields)[:MAX_FIELDS] if keys is None or key in keys}
    chosen = {key: value for key, value in chosen.items() if value not in ("", None, {}, [])}
    inner = fields_of(next(iter(chosen.values()))) if len(chosen) == 1 else {}
    return summarize(inner or chosen)


def _fields(given: Any) -> dict[str, Any]:
    """Return the fields of a task's input: a dict, an object, one value, or the arguments of a function."""
    if is_arguments(given):
        positional, named = cast("tuple[tuple[Any, ...], dict[str, Any]]", given)
        fields = {str(at): value for at, value in enumerate(positional)} | named
        only = next(iter(fields.values())) if len(fields) == 1 else None
        return _fields(only) if isinstance(only, dict) else fields
    return fields_of(given) or dict(getattr(given, "__dict__", None) or {"": given})


def _varying_keys(one: Any, other: Any) -> tuple[str, ...]:
    """Return the fields in which two inputs differ; all other fields cannot distinguish them."""
    first, second = _fields(one), _fields(other)
    return tuple(key for key in list(first)[:MAX_FIELDS] if not _is_equal(first[key], second.get(key)))


def _is_equal(one: Any, other: Any) -> bool:
    try:
        return one is other or bool(one == other)
    except Exception:  # arrays, and other values that cannot be compared
        return False


def _plain(value: Any) -> Any:
    """Return a value for a title: text, a number, a list of these or an object's fields; None for a conversation."""
    if isinstance(value, SCALARS):
        return value
    if items := items_of(value):
        return value if all(isinstance(item, SCALARS) for item in items) else None
    if hasattr(value, "additional_kwargs"):  # a message
        return str(value.content)
    plain = json_value(value)
    return plain if isinstance(plain, dict | str) else None
