"""Copies an agent for each turn, and reads Agno's internals while the agent runs.

The user's agent is never changed, and serves many turns at once. The model of the copy reports the calls that it
rejects, and ordinary functions that Agno would call on the event loop run in threads.

Agno does not expose the run that a tool belongs to, nor the tasks that it starts. Both are found by the names of Agno's
functions, in stack frames and in the tasks of the event loop.
"""

import asyncio
import functools
import inspect
import re
import sys
from collections.abc import Collection
from contextvars import ContextVar
from types import FrameType
from typing import Any, cast

from limelight.sources.agno.tool_calls import Rejection, rejected_calls
from limelight.sources.tool_results import items_of

SHARED = ("tools", "dependencies", "tool_hooks", "pre_hooks", "post_hooks", "knowledge_retriever")
"""Fields that the copy shares with the original, because they may contain state of the user. Agno itself copies tools
for each run."""
CALLABLE_FIELDS = ("instructions", "system_message", "knowledge_retriever")
HOOK_FIELDS = ("pre_hooks", "post_hooks")
ALL_RUNS = None
"""The value of `num_history_runs` that includes every earlier turn."""
DEFAULT_HISTORY_RUNS = 3
"""Agno's default value of `num_history_runs`."""
SELECT_CALLS = "get_function_calls_to_run"
"""Name of the method of Agno's models that separates the calls to execute from those to reject."""
SYNC_TOOL = "FunctionCall.execute"
"""Qualified name of Agno's function that executes an ordinary tool in a thread."""
TOOL_FUNCTIONS = (SYNC_TOOL, "FunctionCall.aexecute")
ASYNC_GENERATOR_TOOL = re.compile(r"arun_function_calls\.<locals>\.process_async_generator$")
"""Qualified name of the coroutine in which Agno runs a tool that is an async generator, delegations included."""
PERSIST_CANCELLED = re.compile(r"_persist_cancelled_\w*run_in_background\.<locals>\._persist$")
"""Qualified name of the coroutine in which Agno saves a cancelled run."""

REJECTIONS: ContextVar[list[Rejection] | None] = ContextVar("limelight_agno_rejections", default=None)
"""The rejected calls of the current turn that were not shown yet. The models of the turn append to this list."""


# Copies


def copy_for_turn(target: Any, db: Any, instructions: str) -> Any:
    """Copy an agent or team for a turn, with added instructions. A copy without a database gets this one."""
    changes: dict[str, Any] = {}
    if not target.id and not target.name:
        changes["id"] = "agent"  # otherwise Agno generates a new id for each copy
    if target.db is None:
        changes |= {"db": db, "add_history_to_context": True}
    if instructions:
        changes |= _added_instructions(target, instructions)
    copy = _copy(target, **changes)
    if target.db is None:
        _use_all_history(copy)
    copy.set_id()
    return copy


def enable_history(copy: Any) -> None:
    """Make a copied agent use all of its history, if its setting is to use none."""
    if not copy.add_history_to_context:
        copy.add_history_to_context = True
        _use_all_history(copy)


def _copy(target: Any, **changes: Any) -> Any:
    update = {name: getattr(target, name) for name in SHARED if getattr(target, name, None) is not None}
    update |= _threaded_functions(target)
    members = getattr(target, "members", None)
    if isinstance(members, list):
        listed = cast("list[Any]", members)
        update["members"] = [_copy(member) if hasattr(member, "deep_copy") else member for member in listed]
    copy = target.deep_copy(update={**update, **changes})
    copy.model = _reporting_model(copy.model)
    return copy


def _use_all_history(copy: Any) -> None:
    if copy.num_history_messages is None and copy.num_history_runs in (None, DEFAULT_HISTORY_RUNS):
        copy.num_history_runs = ALL_RUNS


def _added_instructions(target: Any, instructions: str) -> dict[str, Any]:
    """Return the changed field of an agent: its own system message or its additional context, plus instructions."""
    field = "system_message" if isinstance(target.system_message, str) else "additional_context"
    before = getattr(target, field) or ""
    return {field: f"{before}\n\n{instructions}" if before else instructions}


# Ordinary functions in threads


def _threaded_functions(target: Any) -> dict[str, Any]:
    """Return the fields of an agent that contain ordinary functions, changed so that the functions run in threads.

    The new functions are coroutine functions, which Agno awaits.
    """
    functions = {name: _threaded(getattr(target, name, None)) for name in CALLABLE_FIELDS}
    hooks = {name: _threaded_hooks(getattr(target, name, None)) for name in HOOK_FIELDS}
    return {name: value for name, value in (functions | hooks).items() if value is not getattr(target, name, None)}


def _threaded_hooks(hooks: Any) -> Any:
    listed = items_of(hooks)
    return [_threaded(hook) for hook in listed] if listed else hooks


def _threaded(function: Any) -> Any:
    """Return a coroutine function that runs an ordinary function in a thread. Return anything else unchanged."""
    is_function = inspect.isfunction(function) or inspect.ismethod(function)
    if not is_function or inspect.iscoroutinefunction(function):
        return function

    @functools.wraps(function)
    async def in_thread(*args: Any, **kwargs: Any) -> Any:
        result = await asyncio.to_thread(function, *args, **kwargs)
        return await result if inspect.isawaitable(result) else result

    return in_thread


# Rejected calls


def _reporting_model(model: Any) -> Any:
    """Return a model that shares the state of the original and adds the calls that it rejects to REJECTIONS."""
    if not callable(getattr(model, SELECT_CALLS, None)):
        return model
    kind: Any = model.__class__
    reporting = object.__new__(_reporting_class(kind))
    reporting.__dict__ = model.__dict__
    return reporting


@functools.lru_cache(maxsize=64)
def _reporting_class(kind: Any) -> Any:
    parent: Any = super

    def get_function_calls_to_run(self: Any, assistant_message: Any, messages: Any, functions: Any = None) -> Any:
        before = len(messages)
        calls = getattr(parent(subclass, self), SELECT_CALLS)(assistant_message, messages, functions)
        rejections, replies = REJECTIONS.get(), messages[before:]
        if rejections is not None and replies:
            output = sys._getframe(1).f_locals.get("run_response")  # pyright: ignore[reportPrivateUsage]
            run_id = str(getattr(output, "run_id", None) or "")
            asked = [m for m in messages[:before] if m.role == "assistant" and not getattr(m, "from_history", False)]
            requests = len(asked) + all(m is not assistant_message for m in asked)
            rejected = rejected_calls([assistant_message, *replies], set())
            rejections += [Rejection(run_id, requests, call) for call in rejected]
        return calls

    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, SELECT_CALLS: get_function_calls_to_run}
    subclass: Any = type(kind.__name__, (kind,), names)
    return subclass


# Stack frames and tasks of Agno


def current_run_id() -> str:
    """Return Agno's id of the run to which the calling tool belongs.

    The id is "" outside of tools, and in tasks and threads that a tool starts.
    """
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        if (call := _call_in(frame)) is not None:
            return _run_id_of(call)
        frame = frame.f_back
    return ""


def _call_in(frame: FrameType) -> Any:
    code = frame.f_code
    if code.co_qualname in TOOL_FUNCTIONS:
        return frame.f_locals.get("self")
    return frame.f_locals.get("function_call") if ASYNC_GENERATOR_TOOL.search(code.co_qualname) else None


def _run_id_of(call: Any) -> str:
    context = getattr(getattr(call, "function", None), "_run_context", None)
    return str(getattr(context, "run_id", None) or "")


def tool_of_frame(frame: FrameType) -> str | None:
    """Return the name of the ordinary tool that a stack frame executes; None for any other frame."""
    if frame.f_code.co_qualname != SYNC_TOOL:
        return None
    function = getattr(frame.f_locals.get("self"), "function", None)
    return str(getattr(function, "name", "") or "")


def cancel_tools(run_ids: Collection[str]) -> None:
    """Cancel the tasks of tools that belong to these runs. Agno does not cancel them when its stream is closed."""
    for task, variables in _tasks_running(ASYNC_GENERATOR_TOOL):
        _, _, call, _ = variables.get("result") or (None, None, None, None)
        if _run_id_of(call) in run_ids:
            task.cancel()


def saving_tasks(session_id: str) -> "list[asyncio.Task[Any]]":
    """Return the tasks in which Agno saves cancelled runs of a session.

    A task that has not started yet is included, because its session is unknown.
    """
    tasks = _tasks_running(PERSIST_CANCELLED)
    return [task for task, held in tasks if "session" not in held or held["session"].session_id == session_id]


def _tasks_running(function_name: re.Pattern[str]) -> "list[tuple[asyncio.Task[Any], dict[str, Any]]]":
    """Return the tasks of the event loop that run a function with this name, each with its local variables."""
    found: list[tuple[asyncio.Task[Any], dict[str, Any]]] = []
    for task in asyncio.all_tasks():
        coroutine: Any = task.get_coro()
        frame = getattr(coroutine, "cr_frame", None)
        if frame is not None and function_name.search(getattr(coroutine, "__qualname__", "")):
            found.append((task, frame.f_locals))
    return found
