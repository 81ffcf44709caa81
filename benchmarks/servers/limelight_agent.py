"""The agents that `limelight serve` runs in the benchmark. A name is a mode."""

import asyncio
from collections.abc import AsyncIterator

from benchmarks.workload import IDLE_TOKENS, SHORT_TOKENS, TOKENS, items
from limelight.messages import Message
from limelight.sources.base import Context, Item


async def turn(messages: list[Message], ctx: Context) -> AsyncIterator[str | Item]:
    """One turn of the loop per event, as tokens of a real model arrive."""
    for item in items(TOKENS):
        await asyncio.sleep(0)
        yield item


async def burst(messages: list[Message], ctx: Context) -> AsyncIterator[str | Item]:
    """Never lets the loop go."""
    for item in items(TOKENS):
        yield item


async def short(messages: list[Message], ctx: Context) -> AsyncIterator[str | Item]:
    """A few tokens, to measure how soon the first event is there."""
    for item in items(SHORT_TOKENS):
        await asyncio.sleep(0)
        yield item


async def watched(messages: list[Message], ctx: Context) -> AsyncIterator[str | Item]:
    """As `turn`, once somebody says that all viewers are there."""
    await ctx.approve("begin", {})
    for item in items(TOKENS):
        await asyncio.sleep(0)
        yield item


async def idle(messages: list[Message], ctx: Context) -> AsyncIterator[str | Item]:
    """Says something, then waits."""
    for item in items(IDLE_TOKENS):
        await asyncio.sleep(0)
        yield item
    await asyncio.Event().wait()
