"""The agents of two users: ben, who is measured, runs the standard workload; ann, the noisy neighbour, endless runs."""

import asyncio
import os
from collections.abc import AsyncIterator

from benchmarks.servers.limelight_agent import short, turn
from limelight.events import ToolFinished, ToolStarted
from limelight.messages import Message
from limelight.sources.base import Context, Item

__all__ = ["LINE", "MODES", "maker", "short", "talker", "turn"]

MODES = ("turn", "short", "talker", "maker")
TALK_SECONDS = 0.005
"""Time between two tokens of the neighbour's runs, less than that of models."""
MAKE_SECONDS = 1.0
"""Time between two results of the largest size."""
LINE = 'A line of a tool result: "some" text, 1234567 and a break.\n'


async def talker(messages: list[Message], ctx: Context) -> AsyncIterator[str]:
    """Stream two hundred tokens a second, forever."""
    while True:
        yield "word "
        await asyncio.sleep(TALK_SECONDS)


async def maker(messages: list[Message], ctx: Context) -> AsyncIterator[str | Item]:
    """Produce tool results of the largest size, forever."""
    size = int(os.environ["LIMELIGHT_RESULT_BYTES"])
    result = LINE * (size // len(LINE))
    number = 0
    while True:
        yield ToolStarted(call_id=f"call-{number}", name="dump", args={})
        yield ToolFinished(call_id=f"call-{number}", result=result)
        yield "word "
        number += 1
        await asyncio.sleep(MAKE_SECONDS)
