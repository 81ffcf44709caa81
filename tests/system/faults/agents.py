"""Agents of the server processes of these tests, beside those of `tests/system/processes/agents.py`."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from limelight.events import AnyEvent, ReasoningDelta, Status, StepFinished, StepStarted, ToolFinished, ToolStarted

FLOOD = 100_000
SMALL_FLOOD = 20_000


async def flood(messages: object, ctx: object) -> AsyncIterator[AnyEvent]:
    """Emits 100,000 events that cannot be joined, without yielding to the event loop."""
    for number in range(FLOOD):
        yield Status(text=str(number))


def thread_flood(messages: object, ctx: object) -> Iterator[AnyEvent]:
    """Emits fewer events, from a thread."""
    for number in range(SMALL_FLOOD):
        yield Status(text=str(number))


async def talk_flood(messages: object, ctx: object) -> AsyncIterator[str | AnyEvent]:
    """Emits pieces of a text and of a thought alternately."""
    for number in range(SMALL_FLOOD):
        if number % 2:
            yield f"{number} "
        else:
            yield ReasoningDelta(message_id="r", text=f"{number} ")


async def timed(messages: object, ctx: object) -> AsyncIterator[str | AnyEvent]:
    """Emits steps and tools with durations, and text between them."""
    for number in range(1, 61):
        yield StepStarted(number=number)
        yield ToolStarted(call_id=f"c{number}", name="wait", args={})
        await asyncio.sleep(0.02)
        yield ToolFinished(call_id=f"c{number}", result="waited")
        yield f"{number} "
        yield StepFinished(number=number)


async def played(messages: object, ctx: object) -> AsyncIterator[str]:
    """Counts its runs, and never ends."""
    count_a_play()
    yield "played"
    await asyncio.sleep(3600)


def count_a_play() -> None:
    """Count the run in the file that the variable PLAYS names."""
    plays = Path(os.environ["PLAYS"])
    plays.write_text(str(int(plays.read_text() if plays.exists() else "0") + 1))


async def endless(messages: object, ctx: object) -> AsyncIterator[str]:
    """Speaks at the pace of a model until it is stopped."""
    while True:
        yield "word "
        await asyncio.sleep(0.02)
