"""What an agent's code must not do to the server: end it. `exit()` in a tool ends the run of that agent.

In a thread and in a task alike, SystemExit and KeyboardInterrupt would go through the event loop and end everybody's
runs. Here they become errors of the agent before the loop sees them.
"""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from limelight.errors import AgentFailed
from limelight.sources.base import CURRENT

P = ParamSpec("P")
T = TypeVar("T")


class AgentThreads(ThreadPoolExecutor):
    """Threads for the tools of agents."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        def contained() -> T:
            try:
                return fn(*args, **kwargs)
            except (SystemExit, KeyboardInterrupt) as error:
                raise _failed(error) from error

        return super().submit(contained)


def agent_task(loop: asyncio.AbstractEventLoop, coro: Any, **kwargs: Any) -> "asyncio.Task[Any]":
    """A factory for tasks: those that an agent's framework starts are contained, the server's own are as ever."""
    return asyncio.Task(coro if CURRENT.get() is None else _contained(coro), loop=loop, **kwargs)


async def _contained(coro: Coroutine[Any, Any, T]) -> T:
    try:
        return await coro
    except (SystemExit, KeyboardInterrupt) as error:
        raise _failed(error) from error


def _failed(error: BaseException) -> AgentFailed:
    return AgentFailed(f"{type(error).__name__}: {error}")
