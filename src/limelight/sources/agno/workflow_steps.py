"""Copies a workflow for each turn, and instruments the copy so that Agno's stream shows each execution of a step.

The user's workflow is never changed, and serves many turns at once. In the copy

- every step puts marks into the stream (`step_marks`), also if it fails;
- the texts that a function yields are streamed; Agno would only join them;
- ordinary functions run in threads; Agno would call them on the event loop.

This module imports Agno, so it is imported only when a workflow runs.
"""

import asyncio
import functools
import inspect
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from copy import copy, deepcopy
from typing import Any, cast

from agno.run.agent import RunContentEvent
from agno.run.workflow import WORKFLOW_RUN_OUTPUT_EVENT_TYPES, CustomEvent
from agno.workflow.step import Step
from agno.workflow.steps import Steps
from agno.workflow.types import StepOutput
from agno.workflow.workflow import Workflow

from limelight.json_values import items_of
from limelight.sources.agno.instrument import (
    added_instructions,
    copy_executor,
    iterate_in_thread,
    reporting_model,
    run_in_thread,
    skip_own_events,
)
from limelight.sources.agno.step_marks import (
    CARRIED,
    CONTAINERS,
    FUNCTION,
    STEP_ENDED,
    STEP_STARTED,
    TAG,
    WORKFLOW,
    StepExecution,
    StepMark,
    tag,
)
from limelight.sources.agno.tool_calls import OwnEvent

CHILDREN = ("steps", "else_steps", "choices")
"""Fields of Agno's containers that contain steps."""
CONDITIONS = ("evaluator", "end_condition", "selector")
"""Fields of Agno's containers that may contain a function of the user."""
BRANCH = "Parallel.aexecute_stream.<locals>"
"""Qualified name of the coroutine in which Agno runs one of several parallel steps, as far as it is needed."""
PLAIN_TYPES = (str, int, float, bool, dict, list)
"""Types of values that a function yields as parts of its text."""
DEFAULT_HISTORY_RUNS = 3
"""Agno's default for the setting `num_history_runs` of workflows and steps."""
ALL_RUNS = None
CALL = "__call__"


class Carrier(CustomEvent):
    """An event of Agno that carries a mark, or an event of an agent, through a `WorkflowAgent`.

    The tool by which such an agent runs its workflow, and Agno's code around it, pass on only Agno's own events, and of
    agents only texts.
    """

    event: str = OwnEvent.NAME.value

    def __init__(self, carried: Any) -> None:
        super().__init__()  # pyright: ignore[reportUnknownMemberType]
        setattr(self, CARRIED, carried)


class Branches:
    """The asyncio tasks in which parallel steps of one turn run. Agno leaves them running when its stream closes."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self.stopped = False
        self.needs_carriers = False
        """Whether a `WorkflowAgent` runs the workflow, or a workflow in it."""

    def add_current(self) -> None:
        task = asyncio.current_task()
        if task is not None and BRANCH in getattr(task.get_coro(), "__qualname__", ""):
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def stop(self) -> None:
        self.stopped = True
        for task in list(self._tasks):
            task.cancel()


# Copies


def copy_workflow(workflow: Any, db: Any, instructions: str, branches: Branches) -> Any:
    """Copy a workflow for one turn, with instructions for its agents, and with this database if it has none."""
    copied = _copy_workflow(workflow, instructions, branches)
    if not workflow.id and not workflow.name:
        copied.id = "workflow"  # otherwise Agno generates a new id for each copy
    if workflow.db is None:
        copied.db = db
    copied.set_id()
    steps = _prepare(copied)
    _instrument_all(steps, branches, is_main=True)
    if workflow.db is None:
        enable_history(copied)
    return copied


def enable_history(copied: Any) -> None:
    """Make a copied workflow give its agents the earlier turns, all of them unless it limits their number."""
    copied.add_workflow_history_to_steps = True
    if copied.num_history_runs == DEFAULT_HISTORY_RUNS:
        copied.num_history_runs = ALL_RUNS
        for step in _all_steps(items_of(copied.steps)):
            if isinstance(step, Step) and step.num_history_runs == DEFAULT_HISTORY_RUNS:
                cast("Any", step).num_history_runs = ALL_RUNS


def _all_steps(steps: list[Any]) -> list[Any]:
    """Return these steps and the steps in them, without those of nested workflows."""
    inner = [child for step in steps for name in CHILDREN for child in items_of(getattr(step, name, None))]
    return [*steps, *_all_steps(inner)] if steps else []


def _copy_workflow(workflow: Any, instructions: str, branches: Branches) -> Any:
    copied = copy(workflow)
    copied.stream_executor_events = True
    skip_own_events(copied)
    copied.session_state = _deep_copied(workflow.session_state)
    if workflow.agent is not None:
        copied.agent = _copy_workflow_agent(workflow.agent)
        branches.needs_carriers = True
    if callable(workflow.steps):
        copied.steps = _visible_function(workflow.steps)
    elif isinstance(workflow.steps, list):
        copied.steps = [_copy_step(step, instructions, branches) for step in cast("list[Any]", workflow.steps)]
    return copied


def _copy_workflow_agent(agent: Any) -> Any:
    """Copy the `WorkflowAgent` of a workflow, to which Agno gives a tool that runs the workflow."""
    copied = copy(agent)
    copied.model = reporting_model(agent.model)
    skip_own_events(copied)
    copied.id = agent.id or (None if agent.name else "workflow-agent")  # otherwise Agno generates an id
    run = agent.arun

    async def stream(events: Any) -> AsyncGenerator[Any, None]:
        async with aclosing(events):
            async for event in events:
                is_passed_on = isinstance(event, WORKFLOW_RUN_OUTPUT_EVENT_TYPES) or not hasattr(event, "event")
                yield event if is_passed_on else Carrier(event)

    def arun(*args: Any, **kwargs: Any) -> Any:
        events = run.__func__(copied, *args, **kwargs)
        return stream(events) if inspect.isasyncgen(events) else events

    copied.arun = arun
    return copied


def _deep_copied(value: Any) -> Any:
    try:
        return deepcopy(value)
    except Exception:  # values that cannot be copied
        return copy(value)


def _copy_step(step: Any, instructions: str, branches: Branches) -> Any:
    if isinstance(step, Workflow):
        return _copy_workflow(step, instructions, branches)
    if isinstance(step, Step):
        return _copy_executor_step(step, instructions, branches)
    if hasattr(step, "deep_copy") and hasattr(step, "model"):
        return _copy_agent(step, instructions)
    if type(step).__name__ not in CONTAINERS:
        return _visible_function(step) if callable(step) else step
    copied = copy(step)
    originals: dict[int, Any] = {}
    for name in CHILDREN:
        children = items_of(getattr(step, name, None))
        if children:
            copies = [_copy_child(child, instructions, branches, at) for at, child in enumerate(children)]
            originals |= {id(child): new for child, new in zip(children, copies, strict=True)}
            setattr(copied, name, copies)
    for name in CONDITIONS:
        function = getattr(step, name, None)
        if callable(function):
            setattr(copied, name, _threaded_condition(function, originals))
    return copied


def _copy_child(child: Any, instructions: str, branches: Branches, position: int) -> Any:
    """Copy a step in a container. A list among the choices of a router becomes Agno's `Steps`, as Agno itself does."""
    if not isinstance(child, list):
        return _copy_step(child, instructions, branches)
    steps = [_copy_step(step, instructions, branches) for step in cast("list[Any]", child)]
    return Steps(name=f"steps_group_{position}", steps=steps)


def _copy_executor_step(step: Any, instructions: str, branches: Branches) -> Any:
    copied = copy(step)
    for name in ("agent", "team"):
        if getattr(step, name, None) is not None:
            setattr(copied, name, _copy_agent(getattr(step, name), instructions, step.name))
    if step.workflow is not None:
        copied.workflow = _copy_workflow(step.workflow, instructions, branches)
    if step.executor is not None:
        copied.executor = _visible_function(step.executor)
    copied._set_active_executor()
    return copied


def _copy_agent(agent: Any, instructions: str, step_name: str | None = None) -> Any:
    if not hasattr(agent, "deep_copy"):  # an agent that runs elsewhere
        return agent
    changes = added_instructions(agent, instructions) if instructions else {}
    if not agent.id and not agent.name:
        changes["id"] = step_name or "agent"  # otherwise Agno generates a new id for each copy
    copied = copy_executor(agent, **changes)
    copied.set_id()
    run = copied.arun

    def arun(*args: Any, **kwargs: Any) -> Any:
        return _ended_before_its_output(run(*args, **kwargs))

    copied.arun = arun
    return copied


def _ended_before_its_output(events: Any) -> Any:
    """Return an agent's stream such that it has ended before Agno's step gets the record of the run, its last item.

    The step stops reading at the record. If the stream were still open, closing it would cancel a run that is paused.
    """

    async def stream() -> AsyncGenerator[Any, None]:
        output = None
        async with aclosing(events):
            async for event in events:
                if hasattr(event, "event"):
                    yield event
                else:
                    output = event
        if output is not None:
            yield output

    return stream() if inspect.isasyncgen(events) else events


# Functions


def _visible_function(function: Any) -> Any:
    """Return a function of a step such that it does not block the event loop, and the texts that it yields are shown.

    Agno joins these texts, and `RunContent` events likewise, so that the step's result remains the same.
    """
    name = str(getattr(function, "__name__", None) or type(function).__name__)
    if _is_kind(inspect.isasyncgenfunction, function):

        async def stream(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, None]:
            async with aclosing(function(*args, **kwargs)) as items:
                async for item in items:
                    yield _visible(item)

        return _wrapped(function, stream)
    if _is_kind(inspect.isgeneratorfunction, function):

        async def stream_from_thread(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, None]:
            async with aclosing(iterate_in_thread(name, function(*args, **kwargs))) as items:
                async for item in items:
                    yield _visible(item)

        return _wrapped(function, stream_from_thread)
    if _is_kind(inspect.iscoroutinefunction, function):
        return function

    async def in_thread(*args: Any, **kwargs: Any) -> Any:
        return await run_in_thread(name, function, *args, **kwargs)

    return _wrapped(function, in_thread)


def _wrapped(function: Any, wrapper: Any) -> Any:
    """Give a wrapper the name, the parameters and the attributes of the function that it calls."""
    wrapper = functools.wraps(function)(wrapper)
    if not hasattr(function, "__name__"):  # a callable object
        wrapper.__name__ = type(function).__name__
    return wrapper


def _is_kind(is_kind: Callable[[Any], bool], function: Any) -> bool:
    """Whether a function, or the method by which an object is called, is of a kind, such as a generator function."""
    method: Any = getattr(function, CALL, None)
    return is_kind(function) or is_kind(method)


def _visible(item: Any) -> Any:
    return RunContentEvent(content=item if isinstance(item, str) else str(item)) if _is_plain(item) else item


def _is_plain(item: Any) -> bool:
    return type(item) in PLAIN_TYPES


def _threaded_condition(function: Any, originals: dict[int, Any]) -> Any:
    """Return an async function for a container's condition.

    A router's selector may return steps of the user's workflow; these are replaced by their copies.
    """
    name = str(getattr(function, "__name__", None) or type(function).__name__)
    is_async = inspect.iscoroutinefunction(function)

    async def decide(*args: Any, **kwargs: Any) -> Any:
        result = await (function(*args, **kwargs) if is_async else run_in_thread(name, function, *args, **kwargs))
        return _replaced(result, originals)

    return _wrapped(function, decide)


def _replaced(result: Any, originals: dict[int, Any]) -> Any:
    if isinstance(result, list):
        listed = cast("list[Any]", result)
        return originals.get(id(listed)) or [_replaced(one, originals) for one in listed]
    return originals.get(id(result), result)


# Marks


def _prepare(container: Any) -> list[Any]:
    """Make Agno turn the agents and functions of a workflow or a container into steps, and return all of its steps."""
    if callable(getattr(container, "steps", None)):  # a function that is the whole workflow
        return []
    container._prepare_steps()
    if hasattr(container, "choices"):
        container.choices = container.steps
        return items_of(container.steps)
    return [*items_of(container.steps), *items_of(getattr(container, "else_steps", None))]


def _instrument_all(steps: list[Any], branches: Branches, *, is_main: bool = False) -> None:
    for step in steps:
        if TAG in vars(step):  # a step that is in several places
            continue
        setattr(step, TAG, True)
        _instrument(step, branches, is_last=is_main and step is steps[-1])
        if isinstance(step, Step):
            if step.workflow is not None:
                _instrument_all(_prepare(step.workflow), branches)
        elif hasattr(step, "_prepare_steps"):
            _instrument_all(_prepare(step), branches)


def _instrument(step: Any, branches: Branches, *, is_last: bool) -> None:
    execute = step.aexecute_stream

    def mark(event: str, execution: StepExecution) -> Any:
        made = StepMark(event, execution)
        return Carrier(made) if branches.needs_carriers else made

    async def aexecute_stream(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, None]:
        if branches.stopped:
            return
        branches.add_current()
        execution = _execution_of(step, is_last)
        yield mark(STEP_STARTED, execution)
        is_open = True
        try:
            async with aclosing(execute(*args, **kwargs)) as events:
                async for event in events:
                    if isinstance(event, StepOutput):
                        # The workflow may stop reading after the output, so the end is marked before it.
                        execution.output = event
                        if is_open and not event.is_paused:
                            yield mark(STEP_ENDED, execution)
                        is_open = False
                    else:
                        tag(event, execution)
                        if branches.needs_carriers and type(event) is RunContentEvent and not event.run_id:
                            event = Carrier(event)  # otherwise Agno appends a function's text to the tool's result
                    yield event
        except Exception as error:
            execution.error = str(error) or type(error).__name__
            if is_open:
                yield mark(STEP_ENDED, execution)
            raise
        if is_open:  # a condition that is not met has no output
            yield mark(STEP_ENDED, execution)

    step.aexecute_stream = aexecute_stream


def _execution_of(step: Any, is_last: bool) -> StepExecution:
    kind = next((base.__name__ for base in type(step).__mro__ if base.__name__ in CONTAINERS), "Step")
    executor = str(getattr(step, "executor_type", "") or "") if kind == "Step" else ""
    name = str(getattr(step, "name", None) or "")
    with suppress(AttributeError):
        if not name and executor == FUNCTION:
            name = str(step.executor_name)
    execution = StepExecution(name or kind.lower(), kind, executor, is_last=is_last)
    if executor == WORKFLOW:
        execution.inner_name = str(step.workflow.name or name or "workflow")
    return execution
