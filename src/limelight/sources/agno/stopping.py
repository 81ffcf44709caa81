"""Stop, down to members and tools that send events of their own.

Closing Agno's stream ends the agent and the tools that it awaits. But a delegation, and any tool that is an async
generator, runs in a task that Agno starts and does not cancel: it would go on without anybody. Such a task is found by
the code that it runs and the run that it works for.
"""

import asyncio
from collections.abc import Collection
from typing import Any

DRIVES_A_TOOL = "arun_function_calls.<locals>.process_async_generator"
"""The name of what Agno starts for a tool that is an async generator."""


def cancel_tools(run_ids: Collection[str]) -> None:
    """Cancel what still works for these runs of Agno's."""
    for task in asyncio.all_tasks():
        if _run_of(task) in run_ids:
            task.cancel()


def _run_of(task: "asyncio.Task[Any]") -> str | None:
    coroutine: Any = task.get_coro()
    if not getattr(coroutine, "__qualname__", "").endswith(DRIVES_A_TOOL) or coroutine.cr_frame is None:
        return None
    _, _, call, _ = coroutine.cr_frame.f_locals.get("result") or (None, None, None, None)
    context = getattr(getattr(call, "function", None), "_run_context", None)
    return getattr(context, "run_id", None)
