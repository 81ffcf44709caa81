"""What goes on in a thread although its run is over, said in a line before the run ends.

LangGraph and Agno run ordinary functions in the event loop's pool of threads, and nobody can break off a thread. Each
thread there works in the context of the run that it was started for; that, and the code on its stack, tell what it
does for whom. smolagents knows its tools itself. Called by sources when their framework's stream has ended.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextvars import Context as Variables
from functools import partial
from types import FrameType
from typing import Any

from limelight.events import Status
from limelight.sources.base import CURRENT, UNSTOPPABLE, Context

Naming = Callable[[FrameType], str | None]
"""Which tool a frame runs: its name, "" if it is another step of the agent, None if it is neither."""


def tell_what_goes_on(run: Context, naming: Naming) -> None:
    """Say which tools of a run are still at work in threads, if any are."""
    names = [name for stack in _stacks_of(run) if (name := _name(stack, naming)) is not None]
    if names:
        run.emit(Status(text=unstoppable(names)))


def unstoppable(names: Iterable[str]) -> str:
    """The line for people. Names that are not known are ""."""
    known = sorted({name for name in names if name})
    if not known:
        return UNSTOPPABLE
    one = len(known) == 1
    tools, are, they = ("tool", "is", "it returns") if one else ("tools", "are", "they return")
    return f"The {tools} {', '.join(known)} cannot be interrupted and {are} still running; what {they} will be dropped."


def _name(stack: list[FrameType], naming: Naming) -> str | None:
    """What a thread does: the outermost tool on its stack."""
    found = [name for frame in reversed(stack) if (name := naming(frame)) is not None]
    return next((name for name in found if name), "" if found else None)


def _stacks_of(run: Context) -> Iterator[list[FrameType]]:
    """The stacks of the threads that work for this run, the innermost frame first."""
    for innermost in sys._current_frames().values():  # pyright: ignore[reportPrivateUsage]
        frame: FrameType | None = innermost
        stack: list[FrameType] = []
        while frame is not None:
            stack.append(frame)
            if _run_of(_work_of(frame)) is run:
                yield stack
                break
            frame = frame.f_back


def _work_of(frame: FrameType) -> Any:
    """What a thread of a pool was given to do, if this frame is where that begins: in Python's pool, or in ours."""
    if frame.f_code.co_qualname == "_WorkItem.run":
        work = frame.f_locals.get("self")
        return getattr(work, "fn", None) or next(iter(getattr(work, "task", ())), None)  # `task` from Python 3.14 on
    return frame.f_locals.get("fn") if "fn" in frame.f_code.co_freevars else None


def _run_of(work: Any) -> Context | None:
    """The run that it belongs to: it is the `run` of the context in which it was asked for, with what is to be done."""
    function: Any = work.func if isinstance(work, partial) else work
    variables = getattr(function, "__self__", None)
    return variables.get(CURRENT) if isinstance(variables, Variables) else None
