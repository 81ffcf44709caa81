"""The agents that `limelight serve` runs in the benchmark, one for each mode."""

import asyncio
from collections.abc import AsyncIterator

from benchmarks.workload import IDLE_TOKENS, SHORT_TOKENS, TOKENS, items
from limelight.messages import Message
from limelight.sources.base import Context, Item


async def turn(messages: list[Message], ctx: Context) -> AsyncIterator[str | Item]:
    """Send the workload, yielding to the event loop once per event, as with tokens of a real model."""
    for item in items(TOKENS):
        await asyncio.sleep(0)
        yield item


async def burst(messages: list[Message], ctx: Context) -> AsyncIterator[str | Item]:
    """Send the workload without yielding to the event loop."""
    for item in items(TOKENS):
        yield item


async def short(messages: list[Message], ctx: Context) -> AsyncIterator[str | Item]:
    """Send a few tokens, to measure the latency of the first event."""
    for item in items(SHORT_TOKENS):
        await asyncio.sleep(0)
        yield item


async def watched(messages: list[Message], ctx: Context) -> AsyncIterator[str | Item]:
    """Send the workload after an approval, which the client gives when all viewers are connected."""
    await ctx.approve("begin", {})
    for item in items(TOKENS):
        await asyncio.sleep(0)
        yield item


async def idle(messages: list[Message], ctx: Context) -> AsyncIterator[str | Item]:
    """Send some tokens, then wait forever."""
    for item in items(IDLE_TOKENS):
        await asyncio.sleep(0)
        yield item
    await asyncio.Event().wait()
