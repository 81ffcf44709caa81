"""Wraps the agent of a function source: a function, or an object with a method and optional hooks.

The method is `__call__` or `run`. The hooks `open`, `close` and `forget` are optional, and may be async or not. Code
that is not async runs on the event loop, so that a connection it opens belongs to the thread of the agent's methods.
"""

import inspect
from collections.abc import Callable
from typing import Any

from limelight.errors import AgentFailed, SetupError
from limelight.sources.base import first_line

METHODS = ("__call__", "run")
"""Names of the methods that may be the agent of an object, in the order in which they are looked up."""


def is_agent_function(value: object) -> bool:
    """Whether a value is an async generator function, a coroutine function or a generator function."""
    return inspect.isasyncgenfunction(value) or inspect.iscoroutinefunction(value) or inspect.isgeneratorfunction(value)


def agent_method(target: object) -> Callable[..., Any] | None:
    """Return the first method of an object that can be an agent, taking `messages` and `ctx`; None if there is none."""
    if isinstance(target, type):
        return None
    for name in METHODS:
        function = getattr(type(target), name, None)
        if is_agent_function(function) and _accepts(function, 3):  # self, messages, ctx
            return getattr(target, name)
    return None


class FunctionAgent:
    """A function that serves as an agent, with the hooks `open`, `close` and `forget` of its object, if it has one."""

    def __init__(self, target: object) -> None:
        function = target if is_agent_function(target) else agent_method(target)
        if not callable(function):
            raise TypeError(f"{target!r} is not a function")
        self.function: Callable[..., Any] = function
        """The function or method that is called for each turn."""
        self._target = target
        self._has_hooks = function is not target

    @property
    def description(self) -> str:
        return first_line(inspect.getdoc(self._target)) or first_line(inspect.getdoc(self.function))

    async def open(self) -> None:
        """Call the object's hook `open`, if it has one. Raises SetupError if the hook fails."""
        try:
            await self._call("open")
        except Exception as error:
            raise SetupError(f"{self._described('open', error)}; the agent is not served without it") from error

    async def close(self) -> None:
        """Call the object's hook `close`, if it has one."""
        await self._call("close")

    async def forget(self, user_id: str, session_id: str) -> None:
        """Call the hook `forget` with the id of a deleted session and, if the hook takes it, the user's id.

        Raises AgentFailed if the hook fails.
        """
        hook = self._hook("forget")
        ids = (session_id, user_id) if hook is not None and _accepts(hook, 2) else (session_id,)
        try:
            await self._call("forget", *ids)
        except Exception as error:
            raise AgentFailed(self._described("forget", error)) from error

    def _hook(self, name: str) -> Callable[..., Any] | None:
        return getattr(self._target, name, None) if self._has_hooks else None

    async def _call(self, name: str, *arguments: str) -> None:
        hook = self._hook(name)
        result = hook(*arguments) if hook is not None else None
        if inspect.isawaitable(result):
            await result

    def _described(self, name: str, error: Exception) -> str:
        return f"{type(self._target).__name__}.{name}() has failed: {type(error).__name__}: {error}"


def _accepts(function: Any, count: int) -> bool:
    """Whether a function can be called with this number of positional arguments."""
    try:
        inspect.signature(function).bind(*[None] * count)
    except (TypeError, ValueError):  # ValueError: the function has no signature
        return False
    return True
