"""Tools that are coroutine functions: smolagents would take the coroutine for the result; here it is run to its end.

It runs in an event loop of its own in the thread of the call, so that a tool that blocks after all blocks nobody else.
Unlike other tools, these can be broken off.
"""

import asyncio
import copy
import functools
import inspect
from collections.abc import Coroutine
from typing import Any

from limelight.sources.smolagents.observer import Observer
from limelight.sources.threads import Left

LOOKS_SECONDS = 0.05
"""How often a running coroutine is looked at, whether its run was stopped."""


def awaited(tool: Any, observer: Observer) -> Any:
    """The tool itself, or a copy whose coroutine is awaited."""
    forward = getattr(tool, "forward", None)
    if not inspect.iscoroutinefunction(forward):
        return tool

    @functools.wraps(forward)
    def wait_for(*args: Any, **kwargs: Any) -> Any:
        return asyncio.run(_until_left(forward(*args, **kwargs), observer))

    made = copy.copy(tool)
    made.forward = wait_for
    return made


async def _until_left(work: Coroutine[Any, Any, Any], observer: Observer) -> Any:
    task = asyncio.ensure_future(work)
    while not task.done():
        await asyncio.wait({task}, timeout=LOOKS_SECONDS)
        if observer.left and not task.done():
            task.cancel()
            await asyncio.wait({task})
            raise Left
    return task.result()
