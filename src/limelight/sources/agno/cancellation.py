"""Stop, down to members and tools that send events of their own, and what Agno still has to write down then.

Closing Agno's stream ends the agent and the tools that it awaits. But a delegation, and any tool that is an async
generator, runs in a task that Agno starts and does not cancel: it would go on without anybody. And a run that is cut
off is written down by a task that Agno tells nobody of. Both are found by the code that they run and whom they work
for. An ordinary function runs in a thread, which nobody can break off; its name is found likewise.
"""

import asyncio
import re
from collections.abc import Collection
from types import FrameType
from typing import Any

DRIVES_A_TOOL = re.compile(r"arun_function_calls\.<locals>\.process_async_generator$")
"""What Agno starts for a tool that is an async generator."""
RUNS_A_TOOL = "FunctionCall.execute"
"""What Agno runs in a thread for a tool that is an ordinary function."""
WRITES_DOWN = re.compile(r"_persist_cancelled_\w*run_in_background\.<locals>\._persist$")
"""What Agno starts when a run is cut off."""


def cancel_tools(run_ids: Collection[str]) -> None:
    """Cancel what still works for these runs of Agno's."""
    for task, held in _tasks_that(DRIVES_A_TOOL):
        _, _, call, _ = held.get("result") or (None, None, None, None)
        context = getattr(getattr(call, "function", None), "_run_context", None)
        if getattr(context, "run_id", None) in run_ids:
            task.cancel()


def name_at_work(frame: FrameType) -> str | None:
    """The name of the tool that a frame runs, if it runs one."""
    if frame.f_code.co_qualname != RUNS_A_TOOL:
        return None
    function = getattr(frame.f_locals.get("self"), "function", None)
    return str(getattr(function, "name", "") or "")


def tasks_that_write(session_id: str) -> "list[asyncio.Task[Any]]":
    """The tasks in which Agno writes down what was cut off in a session. One that has not begun yet may be one."""
    writing = _tasks_that(WRITES_DOWN)
    return [task for task, held in writing if "session" not in held or held["session"].session_id == session_id]


def _tasks_that(work: re.Pattern[str]) -> "list[tuple[asyncio.Task[Any], dict[str, Any]]]":
    """The tasks that run this code, each with its variables."""
    found: list[tuple[asyncio.Task[Any], dict[str, Any]]] = []
    for task in asyncio.all_tasks():
        coroutine: Any = task.get_coro()
        frame = getattr(coroutine, "cr_frame", None)
        if frame is not None and work.search(getattr(coroutine, "__qualname__", "")):
            found.append((task, frame.f_locals))
    return found
