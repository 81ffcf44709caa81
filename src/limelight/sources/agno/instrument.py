"""Copies an agent for each turn, and reads internals of Agno, such as running tools, that its API does not expose.

The user's agent is never changed, and serves many turns at once. The model of the copy reports the calls that it
rejects, makes the texts that tools yield visible, and ordinary functions that Agno would call on the event loop run in
threads.

Agno does not expose the run that a tool belongs to, nor the tasks that it starts. Both are found by the names of Agno's
functions, in stack frames and in the tasks of the event loop.
"""

import asyncio
import functools
import inspect
import re
import sys
import time
from collections.abc import AsyncGenerator, Callable, Collection, Iterator
from contextlib import aclosing, suppress
from contextvars import ContextVar
from copy import copy as shallow_copy
from types import FrameType
from typing import Any, cast

from limelight.json_values import items_of
from limelight.sources.agno.tool_calls import OwnEvent, Rejection, rejected_calls

SHARED = ("tools", "dependencies", "tool_hooks", "pre_hooks", "post_hooks", "knowledge_retriever")
"""Fields that a copied agent shares with the original, because they may contain state of the user. Agno itself copies
tools for each run."""
CALLABLE_FIELDS = ("instructions", "system_message", "knowledge_retriever")
HOOK_FIELDS = ("pre_hooks", "post_hooks")
ALL_RUNS = None
"""Value of Agno's setting `num_history_runs` that includes every earlier turn."""
DEFAULT_HISTORY_RUNS = 3
"""Agno's default for the setting `num_history_runs`."""
SELECT_CALLS = "get_function_calls_to_run"
"""Name of the method of Agno's models that decides which calls to execute and which to reject."""
RUN_CALLS = "arun_function_calls"
"""Name of the method of Agno's models that executes calls."""
SYNC_TOOL = "FunctionCall.execute"
"""Qualified name of Agno's function that executes a sync tool in a thread."""
TOOL_FUNCTIONS = (SYNC_TOOL, "FunctionCall.aexecute")
ASYNC_GENERATOR_TOOL = re.compile(r"arun_function_calls\.<locals>\.process_async_generator$")
"""Qualified name of the coroutine in which Agno runs tools that are async generators, such as delegations."""
PERSIST_CANCELLED = re.compile(r"_persist_cancelled_\w*run_in_background\.<locals>\._persist$")
"""Qualified name of the coroutine in which Agno saves a cancelled run."""

OWN_TOOLS = ("agno.team", "agno.workflow")
"""Packages whose generator tools are Agno's own: they start members and workflows, and yield their events."""

REJECTIONS: ContextVar[list[Rejection] | None] = ContextVar("limelight_agno_rejections", default=None)
"""Calls of the current turn that Agno has rejected and that were not reported yet. The turn's models append to this
list."""
TOOL_RUN_ID: ContextVar[str] = ContextVar("limelight_agno_tool_run_id", default="")
"""Agno's id of the run whose generator tool runs in the current context; "" elsewhere."""


# Copies


def copy_for_turn(target: Any, db: Any, instructions: str) -> Any:
    """Copy an agent or team for one turn, with added instructions, and with this database if it has none."""
    changes: dict[str, Any] = {}
    if not target.id and not target.name:
        changes["id"] = "agent"  # otherwise Agno generates a new id for each copy
    if target.db is None:
        changes |= {"db": db, "add_history_to_context": True}
    if instructions:
        changes |= added_instructions(target, instructions)
    copy = copy_executor(target, **changes)
    if target.db is None:
        _use_all_history(copy)
    copy.set_id()
    return copy


def enable_history(copy: Any) -> None:
    """Make a copied agent use its whole history, if its setting is to use none."""
    if not copy.add_history_to_context:
        copy.add_history_to_context = True
        _use_all_history(copy)


def copy_executor(target: Any, **changes: Any) -> Any:
    """Copy an agent or team with these changed fields; a copied team has copied members."""
    update = {name: getattr(target, name) for name in SHARED if getattr(target, name, None) is not None}
    update |= _threaded_functions(target)
    members = getattr(target, "members", None)
    if isinstance(members, list):
        listed = cast("list[Any]", members)
        update["members"] = [copy_executor(member) if hasattr(member, "deep_copy") else member for member in listed]
    copy = target.deep_copy(update={**update, **changes})
    copy.model = reporting_model(copy.model)
    skip_own_events(copy)
    return copy


def skip_own_events(copy: Any) -> None:
    """Make a copied agent, team or workflow store no events of Limelight, if it stores the events of its runs."""
    copy.events_to_skip = [*(copy.events_to_skip or ()), OwnEvent.NAME]


def _use_all_history(copy: Any) -> None:
    if copy.num_history_messages is None and copy.num_history_runs in (None, DEFAULT_HISTORY_RUNS):
        copy.num_history_runs = ALL_RUNS


def added_instructions(target: Any, instructions: str) -> dict[str, Any]:
    """Return the field of an agent (its system message or additional context) with instructions appended."""
    field = "system_message" if isinstance(target.system_message, str) else "additional_context"
    before = getattr(target, field) or ""
    return {field: f"{before}\n\n{instructions}" if before else instructions}


# Sync functions in threads


def _threaded_functions(target: Any) -> dict[str, Any]:
    """Return an agent's fields that contain sync functions, changed so that these functions run in threads.

    The new functions are coroutine functions, which Agno awaits.
    """
    functions = {name: _threaded(getattr(target, name, None)) for name in CALLABLE_FIELDS}
    hooks = {name: _threaded_hooks(getattr(target, name, None)) for name in HOOK_FIELDS}
    return {name: value for name, value in (functions | hooks).items() if value is not getattr(target, name, None)}


def _threaded_hooks(hooks: Any) -> Any:
    listed = items_of(hooks)
    return [_threaded(hook) for hook in listed] if listed else hooks


def _threaded(function: Any) -> Any:
    """Return a coroutine function that runs a sync function in a thread; return any other value unchanged."""
    is_function = inspect.isfunction(function) or inspect.ismethod(function)
    if not is_function or inspect.iscoroutinefunction(function):
        return function

    @functools.wraps(function)
    async def in_thread(*args: Any, **kwargs: Any) -> Any:
        result = await asyncio.to_thread(function, *args, **kwargs)
        return await result if inspect.isawaitable(result) else result

    return in_thread


async def run_in_thread(name: str, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Call a sync function of this name in a thread, where `tool_of_frame` recognises it."""
    return await asyncio.to_thread(_call_named, name, function, *args, **kwargs)


async def iterate_in_thread(name: str, items: Iterator[Any]) -> AsyncGenerator[Any, None]:
    """Yield the items of a sync generator of a function of this name; the generator runs in threads."""
    try:
        while (item := await run_in_thread(name, next, items, _END)) is not _END:
            yield item
    finally:
        close = getattr(items, "close", None)
        if close is not None and not getattr(items, "gi_running", False):  # it runs on after a cancellation
            close()


def _call_named(limelight_name: str, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    return function(*args, **kwargs)


_END = object()


# Rejected calls, and the output of tools


def reporting_model(model: Any) -> Any:
    """Return a model that shares the original's state and adds the calls it rejects to REJECTIONS."""
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

    def arun_function_calls(self: Any, function_calls: Any, *args: Any, **kwargs: Any) -> Any:
        calls = [_with_visible_output(call) for call in function_calls]
        return getattr(parent(subclass, self), RUN_CALLS)(calls, *args, **kwargs)

    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, SELECT_CALLS: get_function_calls_to_run}
    if hasattr(kind, RUN_CALLS):
        names[RUN_CALLS] = arun_function_calls
    subclass: Any = type(kind.__name__, (kind,), names)
    return subclass


def _with_visible_output(call: Any) -> Any:
    """Return a call of a tool; if the tool is a generator, the texts that it yields become events of Agno.

    Agno itself joins the texts and shows the whole. A tool with `show_result` is left alone, because Agno shows what it
    yields as the agent's text.
    """
    tool = call.function
    entry: Any = getattr(tool, "entrypoint", None)
    if not _is_generator(entry) or tool.show_result or str(getattr(entry, "__module__", "")).startswith(OWN_TOOLS):
        return call
    from limelight.sources.agno.tool_output import ToolEnded, ToolText

    call_id = str(call.call_id or "")

    @functools.wraps(entry)
    async def visible(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, None]:
        previous = TOOL_RUN_ID.set(_run_id_of(call))
        started = time.monotonic()
        try:
            items = entry(*args, **kwargs)
            if inspect.isawaitable(items):  # Agno's decorator makes a coroutine function of an async generator
                items = await items
            async with aclosing(_iterated(tool.name, items)) as given:
                async for item in given:
                    yield ToolText(item, call_id) if type(item) is str and item else item
        except Exception:
            yield ToolEnded(time.monotonic() - started, call_id)
            raise
        finally:
            with suppress(ValueError):  # the generator is closed in another context
                TOOL_RUN_ID.reset(previous)
        yield ToolEnded(time.monotonic() - started, call_id)

    call.function = shallow_copy(tool)  # Agno may share the tool with other calls
    call.function.entrypoint = visible
    return call


def _iterated(name: str, items: Any) -> Any:
    """Return an async generator of what a tool has returned: an async generator, a generator, or another value."""
    if hasattr(items, "__anext__"):
        return items
    return iterate_in_thread(name, items if hasattr(items, "__next__") else iter([items]))


def _is_generator(entry: Any) -> bool:
    """Whether a tool is a generator or an async generator, maybe in a wrapper that checks its arguments."""
    unwrapped = inspect.unwrap(entry) if callable(entry) else entry
    return inspect.isasyncgenfunction(unwrapped) or inspect.isgeneratorfunction(unwrapped)


# Stack frames and tasks of Agno


def current_run_id() -> str:
    """Return Agno's id of the run whose tool is calling this function.

    The id is "" outside of tools, and in tasks and threads that a tool starts.
    """
    if run_id := TOOL_RUN_ID.get():
        return run_id
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
    """Return the name of the sync tool, or function of a workflow, that a stack frame executes; None for any other."""
    if frame.f_code is _call_named.__code__:
        return str(frame.f_locals.get("limelight_name") or "")
    if frame.f_code.co_qualname != SYNC_TOOL:
        return None
    function = getattr(frame.f_locals.get("self"), "function", None)
    return str(getattr(function, "name", "") or "")


def cancel_tools(run_ids: Collection[str]) -> None:
    """Cancel the asyncio tasks of tools that belong to these runs; Agno leaves them running when its stream closes."""
    for task, variables in _tasks_running(ASYNC_GENERATOR_TOOL):
        _, _, call, _ = variables.get("result") or (None, None, None, None)
        if _run_id_of(call) in run_ids:
            task.cancel()


def saving_tasks(session_id: str) -> "list[asyncio.Task[Any]]":
    """Return the asyncio tasks in which Agno saves a session's cancelled runs.

    A task that has not started yet is included, because its session is unknown.
    """
    tasks = _tasks_running(PERSIST_CANCELLED)
    return [task for task, held in tasks if "session" not in held or held["session"].session_id == session_id]


def _tasks_running(function_name: re.Pattern[str]) -> "list[tuple[asyncio.Task[Any], dict[str, Any]]]":
    """Return the asyncio tasks that run a function with this name, each with the function's local variables."""
    found: list[tuple[asyncio.Task[Any], dict[str, Any]]] = []
    for task in asyncio.all_tasks():
        coroutine: Any = task.get_coro()
        frame = getattr(coroutine, "cr_frame", None)
        if frame is not None and function_name.search(getattr(coroutine, "__qualname__", "")):
            found.append((task, frame.f_locals))
    return found
