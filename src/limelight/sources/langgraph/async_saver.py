"""Checkpointers that have no async methods, such as `SqliteSaver`: the same ones, each call in a thread.

Graphs are streamed by `astream`, which asks for the async methods. Knows LangGraph's savers, so it is loaded only once
there is a graph.
"""

import asyncio
import copy
from collections.abc import AsyncIterator
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver

NEEDED = ("aget_tuple", "aput", "aput_writes")
"""What a graph that is streamed asks of its checkpointer."""


def is_blocking(saver: Any) -> bool:
    """Whether a checkpointer cannot be awaited: it has left one of these methods as the base class has it."""
    kind: Any = saver.__class__
    return any(getattr(kind, name, None) is getattr(BaseCheckpointSaver, name) for name in NEEDED)


def in_threads(saver: Any) -> Any:
    """A twin of the checkpointer, on the same connection, that can be awaited. The given object stays as it is."""
    twin = copy.copy(saver)
    methods = {name: method for name, method in vars(_InThreads).items() if name.startswith("a")}
    kind: Any = saver.__class__
    twin.__class__ = type(f"Awaitable{kind.__name__}", (kind,), methods)
    return twin


class _InThreads:
    """The async methods, by way of the others."""

    async def aget_tuple(self: Any, config: Any) -> Any:
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(self: Any, config: Any, **which: Any) -> AsyncIterator[Any]:
        for one in await asyncio.to_thread(lambda: list(self.list(config, **which))):
            yield one

    async def aput(self: Any, *given: Any, **named: Any) -> Any:
        return await asyncio.to_thread(self.put, *given, **named)

    async def aput_writes(self: Any, *given: Any, **named: Any) -> None:
        await asyncio.to_thread(self.put_writes, *given, **named)

    async def adelete_thread(self: Any, thread_id: str) -> None:
        await asyncio.to_thread(self.delete_thread, thread_id)
