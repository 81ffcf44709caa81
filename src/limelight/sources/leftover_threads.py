"""Reports tools and functions that still run in threads after their run has ended.

LangGraph and Agno run ordinary functions in the thread pool of the event loop, as `asyncio.to_thread` does in a
function agent, and a thread cannot be interrupted. The contextvars context of such a thread identifies its run, and the
stack of the thread identifies the tool. Sources call `report_running_tools` or `report_running_functions` when the
stream of their agent has ended. The source for smolagents tracks its tools itself and uses only `still_running_text`.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextvars import Context as Variables
from functools import partial
from types import FrameType
from typing import Any

from limelight.events import Status
from limelight.sources.base import CURRENT, UNSTOPPABLE, Context

ToolOfFrame = Callable[[FrameType], str | None]
"""Type of a function that returns the name of the tool that a stack frame runs, "" for another step of the agent, or
None for any other frame."""


def report_running_tools(run: Context, tool_of_frame: ToolOfFrame) -> None:
    """Emit a status that names the tools of a run that still run in threads. Emit nothing if there are none."""
    names = [name for stack in _stacks_of(run) if (name := _outermost_tool(stack, tool_of_frame)) is not None]
    if names:
        run.emit(Status(text=still_running_text(names)))


def report_running_functions(run: Context) -> None:
    """Emit a status that names the functions of a run that still run in threads, if there are any."""
    names = [_outermost_function(stack) for stack in _stacks_of(run)]
    if names:
        run.emit(Status(text=still_running_text(names, "function")))


def still_running_text(names: Iterable[str], noun: str = "tool") -> str:
    """Return the status text about tools that still run and cannot be interrupted; an unknown name is ""."""
    known = sorted({name for name in names if name})
    if not known:
        return UNSTOPPABLE
    one = len(known) == 1
    tools, are, they = (noun, "is", "it returns") if one else (f"{noun}s", "are", "they return")
    return f"The {tools} {', '.join(known)} cannot be interrupted and {are} still running; what {they} will be dropped."


def _outermost_tool(stack: list[FrameType], tool_of_frame: ToolOfFrame) -> str | None:
    found = [name for frame in reversed(stack) if (name := tool_of_frame(frame)) is not None]
    return next((name for name in found if name), "" if found else None)


def _outermost_function(stack: list[FrameType]) -> str:
    """Return the name of the function that the thread pool called; "" for a lambda or non-Python code."""
    name = stack[-2].f_code.co_name if len(stack) > 1 else ""  # the last frame is the pool's
    return "" if name.startswith("<") else name


def _stacks_of(run: Context) -> Iterator[list[FrameType]]:
    """Yield the stack of each thread that works for a run, innermost frame first."""
    for innermost in sys._current_frames().values():  # pyright: ignore[reportPrivateUsage]
        frame: FrameType | None = innermost
        stack: list[FrameType] = []
        while frame is not None:
            stack.append(frame)
            if _run_of(_work_item(frame)) is run:
                yield stack
                break
            frame = frame.f_back


def _work_item(frame: FrameType) -> Any:
    """Return the function that a thread pool's thread executes, if the frame is the pool's call of it; else None.

    Recognizes Python's thread pool and Limelight's.
    """
    if frame.f_code.co_qualname == "_WorkItem.run":
        work = frame.f_locals.get("self")
        return getattr(work, "fn", None) or next(iter(getattr(work, "task", ())), None)  # `task` from Python 3.14 on
    return frame.f_locals.get("fn") if "fn" in frame.f_code.co_freevars else None


def _run_of(work: Any) -> Context | None:
    """Return the run to which the function of a thread pool's thread belongs; None if there is none.

    The function is the method `run` of a contextvars context, maybe in a partial.
    """
    function: Any = work.func if isinstance(work, partial) else work
    variables = getattr(function, "__self__", None)
    return variables.get(CURRENT) if isinstance(variables, Variables) else None
