"""Ordinary functions that Agno would call on the event loop, where they would hold up everybody: as coroutines that run
them in a thread. Agno awaits hooks, instructions and retrievers if they are coroutine functions."""

import asyncio
import functools
import inspect
from typing import Any

from limelight.sources.values import items_of

CALLED = ("instructions", "system_message", "knowledge_retriever")
HOOKS = ("pre_hooks", "post_hooks")


def off_loop(target: Any) -> dict[str, Any]:
    """The fields of an agent or team that have to change for that."""
    called = {name: _awaitable(getattr(target, name, None)) for name in CALLED}
    hooks = {name: _each(getattr(target, name, None)) for name in HOOKS}
    return {name: value for name, value in (called | hooks).items() if value is not getattr(target, name, None)}


def _each(hooks: Any) -> Any:
    listed = items_of(hooks)
    return [_awaitable(hook) for hook in listed] if listed else hooks


def _awaitable(function: Any) -> Any:
    """The function itself if there is nothing to be done; objects, such as guardrails, have ways of their own."""
    is_plain = inspect.isfunction(function) or inspect.ismethod(function)
    if not is_plain or inspect.iscoroutinefunction(function):
        return function

    @functools.wraps(function)
    async def in_thread(*args: Any, **kwargs: Any) -> Any:
        result = await asyncio.to_thread(function, *args, **kwargs)
        return await result if inspect.isawaitable(result) else result

    return in_thread
