"""Agents for tests: small functions, each with one habit."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

from limelight.events import (
    AgentFinished,
    AgentStarted,
    AnyEvent,
    FinalAnswer,
    TextDelta,
    TextFinished,
    ToolFinished,
    ToolOutputDelta,
    ToolStarted,
    Usage,
)
from limelight.messages import Message
from limelight.sources.base import Context, FileMade

WORDS = ["The ", "quick ", "brown ", "fox ", "jümps 🦊 ", "over."]


async def talker(messages: list[Message], ctx: Context) -> AsyncIterator[str]:
    """Says a sentence."""
    for word in WORDS:
        yield word
        await asyncio.sleep(0)


async def echo(messages: list[Message], ctx: Context) -> AsyncIterator[str]:
    """Repeats the messages, the user and the session."""
    yield "|".join(f"{m.role}:{m.text}" for m in messages)
    yield f" for {ctx.user.user_id}/{ctx.user.name} in {ctx.session_id}"


async def worker(messages: list[Message], ctx: Context) -> AsyncIterator[str | AnyEvent | FileMade]:
    """Uses tools, a sub-agent and a file."""
    yield "I begin. "
    yield ToolStarted(call_id="t1", name="search", args={"q": "bees"})
    yield ToolOutputDelta(call_id="t1", text="searching\n")
    yield ToolFinished(call_id="t1", result={"hits": 3})
    yield ToolStarted(call_id="t2", name="task", args={"to": "helper"})
    yield AgentStarted(agent_id="a1", name="helper", call_id="t2")
    yield TextDelta(agent_id="a1", message_id="m-a1", text="helping")
    yield TextFinished(agent_id="a1", message_id="m-a1")
    yield AgentFinished(agent_id="a1")
    yield ToolFinished(call_id="t2", result="helped")
    yield ToolStarted(call_id="t3", name="fail", args={})
    yield ToolFinished(call_id="t3", result="Error: no luck", error="no luck")
    yield Usage(model="none", input_tokens=3, output_tokens=4)
    yield FileMade(name="räport.txt", data=b"a report", media_type="text/plain")
    yield "Done."


async def scholar(messages: list[Message], ctx: Context) -> AsyncIterator[AnyEvent]:
    """Answers with a title and its sources; asked for numbers, with a value."""
    if messages[-1].text == "numbers":
        yield FinalAnswer(content={"numbers": [1, 2]})
    else:
        yield FinalAnswer(content="They **dance**.", title="Bees", sources=("https://example.org/bees", "A book"))


async def forgetful(messages: list[Message], ctx: Context) -> AsyncIterator[str | AnyEvent]:
    """Begins a tool call and never says how it ended."""
    yield ToolStarted(call_id="t1", name="send_mail", args={"to": "ann"})
    yield "Done."


async def big(messages: list[Message], ctx: Context) -> AsyncIterator[str | AnyEvent]:
    """Calls a tool whose arguments and result are large."""
    yield ToolStarted(call_id="big/1", name="dump", args={"text": "ä" * 60_000})
    yield ToolFinished(call_id="big/1", result="x" * 300_000)
    yield "Large."


async def patient(messages: list[Message], ctx: Context) -> AsyncIterator[str | AnyEvent]:
    """Talks, then waits in a tool until it is stopped."""
    yield "Working"
    yield ToolStarted(call_id="w", name="wait", args={})
    await asyncio.sleep(3600)
    yield ToolFinished(call_id="w", result="never")


stubborn_may_end = threading.Event()


def stubborn(messages: list[Message], ctx: Context) -> Iterator[str | AnyEvent]:
    """Blocks its thread in a tool that cannot be interrupted."""
    yield "Blocking"
    yield ToolStarted(call_id="b", name="block", args={})
    stubborn_may_end.wait(20)
    yield ToolFinished(call_id="b", result="late")


async def deaf(messages: list[Message], ctx: Context) -> AsyncIterator[str]:
    """Ignores that it is cancelled."""
    yield "Deaf"
    while not ctx.cancelled:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            await asyncio.sleep(2)
    yield "still here"


async def crasher(messages: list[Message], ctx: Context) -> AsyncIterator[str | AnyEvent]:
    """Breaks in the middle of a tool."""
    yield "So far so good"
    yield ToolStarted(call_id="c", name="crash", args={})
    raise ValueError("the wheel came off")


async def asker(messages: list[Message], ctx: Context) -> AsyncIterator[str | AnyEvent]:
    """Asks before it acts."""
    yield ToolStarted(call_id="d", name="delete", args={"path": "/tmp/x"})
    approval = await ctx.approve("delete", {"path": "/tmp/x"}, call_id="d")
    if approval:
        yield ToolFinished(call_id="d", result=f"deleted {approval.args['path']}")
    else:
        yield ToolFinished(call_id="d", result=f"Error: {approval.reason}", error=approval.reason)
    yield f"decision: {approval.decision} by {approval.by}"


def thread_asker(messages: list[Message], ctx: Context) -> Iterator[str | AnyEvent]:
    """Requests an approval from its thread, first in the wrong way."""
    try:
        _ = ctx.approve("delete", {})
    except RuntimeError as error:
        yield str(error)
    approval = ctx.approve_blocking("delete", {"path": "/tmp/x"})
    yield f"decision: {approval.decision}"


def counting(n: int, pause: float = 0) -> Any:
    """An agent that emits the numbers 0 … n-1."""

    async def counter(messages: list[Message], ctx: Context) -> AsyncIterator[str]:
        for number in range(n):
            yield f"{number} "
            await asyncio.sleep(pause)

    return counter


def bursting(n: int) -> Any:
    """The same, without yielding to the event loop."""

    async def burster(messages: list[Message], ctx: Context) -> AsyncIterator[str]:
        for number in range(n):
            yield f"{number} "

    return burster


def sleeper(messages: list[Message], ctx: Context) -> Iterator[str]:
    """Blocks its thread for a second."""
    yield "zzz"
    time.sleep(1)
    yield " awake"
