"""The agents of server processes that these tests harm, beside those of `tests/system/processes/agents.py`."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from limelight.events import AnyEvent, ReasoningDelta, Status, StepFinished, StepStarted, ToolFinished, ToolStarted

FLOOD = 100_000
SMALL_FLOOD = 20_000


async def flood(messages: object, ctx: object) -> AsyncIterator[AnyEvent]:
    """A hundred thousand events that cannot be joined, without giving way."""
    for number in range(FLOOD):
        yield Status(text=str(number))


def thread_flood(messages: object, ctx: object) -> Iterator[AnyEvent]:
    """Fewer, from a thread."""
    for number in range(SMALL_FLOOD):
        yield Status(text=str(number))


async def talk_flood(messages: object, ctx: object) -> AsyncIterator[str | AnyEvent]:
    """Pieces of a text and of a thought, by turns."""
    for number in range(SMALL_FLOOD):
        if number % 2:
            yield f"{number} "
        else:
            yield ReasoningDelta(message_id="r", text=f"{number} ")


async def timed(messages: object, ctx: object) -> AsyncIterator[str | AnyEvent]:
    """Steps and tools that take a while, so that they have durations, with words in between."""
    for number in range(1, 61):
        yield StepStarted(number=number)
        yield ToolStarted(call_id=f"c{number}", name="wait", args={})
        await asyncio.sleep(0.02)
        yield ToolFinished(call_id=f"c{number}", result="waited")
        yield f"{number} "
        yield StepFinished(number=number)


async def played(messages: object, ctx: object) -> AsyncIterator[str]:
    """Counts how often it was played, and goes on until it is killed."""
    count_a_play()
    yield "played"
    await asyncio.sleep(3600)


def count_a_play() -> None:
    """In the file that PLAYS names."""
    plays = Path(os.environ["PLAYS"])
    plays.write_text(str(int(plays.read_text() if plays.exists() else "0") + 1))


async def endless(messages: object, ctx: object) -> AsyncIterator[str]:
    """Speaks at the pace of a model until it is stopped."""
    while True:
        yield "word "
        await asyncio.sleep(0.02)
