"""Agents for streams that are cut: one with pauses, one without."""

from collections.abc import AsyncIterator
from typing import Any

from limelight.events import AnyEvent
from tests.system.processes.agents import work


async def steady(messages: Any, ctx: Any) -> AsyncIterator[str | AnyEvent]:
    """150 steps with short pauses."""
    async for item in work(150, 0.001):
        yield item


async def burst(messages: Any, ctx: Any) -> AsyncIterator[str | AnyEvent]:
    """600 steps without a pause: more than the queue of a socket holds."""
    async for item in work(600, None):
        yield item
