"""The agents that the flooding user and the measured user run: endless, short, long, with large values or approvals."""

import asyncio
from collections.abc import AsyncIterator

from limelight.events import Status, ToolFinished, ToolStarted
from limelight.messages import Message
from limelight.sources.base import Context, FileMade, Item

MODES = ("endless", "short", "long", "maker", "asker")
EVENTS = 10_000
"""Number of events of a long run."""
LARGE = 10_000_000
"""Size of a result and of a file, in bytes."""
TOKEN_SECONDS = 0.02
LINE = 'A line of a tool result: "some" text, 1234567 and a break.\n'


async def endless(messages: list[Message], ctx: Context) -> AsyncIterator[str]:
    """Stream text at the pace of a model until the run is stopped."""
    while True:
        yield "word "
        await asyncio.sleep(TOKEN_SECONDS)


async def short(messages: list[Message], ctx: Context) -> AsyncIterator[str]:
    """Answer with one word."""
    yield "word"


async def long(messages: list[Message], ctx: Context) -> AsyncIterator[str | Item]:
    """Emit 10,000 events that cannot be joined."""
    for number in range(EVENTS // 2):
        yield f"word {number} "
        yield Status(text=f"status {number}")


async def maker(messages: list[Message], ctx: Context) -> AsyncIterator[str | Item]:
    """Make a large tool result and a large file."""
    yield ToolStarted(call_id="result", name="dump", args={})
    yield ToolFinished(call_id="result", result=LINE * (LARGE // len(LINE)))
    yield FileMade(name="large.bin", data=bytes(LARGE))
    yield "made"


async def asker(messages: list[Message], ctx: Context) -> AsyncIterator[str]:
    """Request an approval, and wait for the decision."""
    await ctx.approve("delete", {"path": "notes.txt"})
    yield "decided"
