"""Agents of the server processes."""

import asyncio
import gc
import logging
import sys
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, TypedDict

from limelight.events import (
    AgentFinished,
    AgentStarted,
    AnyEvent,
    Status,
    StepFinished,
    StepStarted,
    TextDelta,
    ToolFinished,
    ToolOutputDelta,
    ToolStarted,
    Usage,
)


async def work(n: int, pause: float | None) -> AsyncIterator[str | AnyEvent]:
    """About n events: text, and sometimes a tool with output and a sub-agent."""
    for number in range(n):
        if number % 25 == 10:
            yield ToolStarted(call_id=f"t{number}", name="step", args={"number": number})
            yield AgentStarted(agent_id=f"a{number}", name="helper", call_id=f"t{number}")
            yield TextDelta(agent_id=f"a{number}", message_id=f"m{number}", text="hélp")
            yield AgentFinished(agent_id=f"a{number}")
            yield ToolOutputDelta(call_id=f"t{number}", text=f"line {number}\n")
            yield ToolFinished(call_id=f"t{number}", result=f"done {number}")
        yield f"{number} "
        if number % 3:
            yield Status(text=f"step {number}")  # keeps two texts apart, so that they are never joined
        if pause is not None:
            await asyncio.sleep(pause)


async def steady(messages: Any, ctx: Any) -> AsyncIterator[str | AnyEvent]:
    """Emits 400 steps at the pace of a fast model."""
    async for item in work(400, 0.002):
        yield item


async def burst(messages: Any, ctx: Any) -> AsyncIterator[str | AnyEvent]:
    """Emits 2,000 steps without yielding to the event loop."""
    async for item in work(2000, None):
        yield item


async def endless(messages: Any, ctx: Any) -> AsyncIterator[str | AnyEvent]:
    """Never ends."""
    async for item in work(10**9, 0.001):
        yield item


async def dump(messages: Any, ctx: Any) -> AsyncIterator[str | AnyEvent]:
    """Prints 50 MB, in pieces of 10 kB."""
    yield ToolStarted(call_id="d", name="dump", args={})
    for number in range(5000):
        yield ToolOutputDelta(call_id="d", text=f"{number:09}\n" * 1000)
        if number % 20 == 0:
            await asyncio.sleep(0)
    yield ToolFinished(call_id="d", result="printed")
    yield "done"


async def chatty(messages: Any, ctx: Any) -> AsyncIterator[str | AnyEvent]:
    """Prints 2 MB at a steady pace: more than fits into the buffers between server and client."""
    yield ToolStarted(call_id="c", name="chat", args={})
    for number in range(500):
        yield ToolOutputDelta(call_id="c", text=f"{number:09}\n" * 400)
        await asyncio.sleep(0.002)
    yield ToolFinished(call_id="c", result="said")
    yield "done"


async def hello(messages: Any, ctx: Any) -> AsyncIterator[str]:
    """Says hello."""
    yield "hello"


async def raising(messages: Any, ctx: Any) -> AsyncIterator[str]:
    """Raises an error that contains the message."""
    yield "well"
    raise ValueError(f"{messages[-1].text} is not what I wanted")


async def telling(messages: Any, ctx: Any) -> AsyncIterator[str]:
    """Logs like a library, also in a thread; raises if the message begins with "break"."""
    logger = logging.getLogger("beekeeper")
    logger.info("smoke")
    await asyncio.to_thread(logger.warning, "the hive says %s", messages[-1].text)
    yield "told"
    if messages[-1].text.startswith("break"):
        raise ValueError(f"two\nlines of {messages[-1].text}")


async def quiet(messages: Any, ctx: Any) -> AsyncIterator[str]:
    """Emits one word, then nothing."""
    yield "…"
    await asyncio.sleep(3600)


async def pausing(messages: Any, ctx: Any) -> AsyncIterator[str]:
    """Is silent between two words, for the number of seconds in the message."""
    yield "before "
    await asyncio.sleep(float(messages[-1].text))
    yield "after"


async def mailing(messages: Any, ctx: Any) -> AsyncIterator[str | AnyEvent]:
    """Calls a tool that a person has to approve."""
    yield ToolStarted(call_id="m", name="send_mail", args={"to": "ann"})
    approval = await ctx.approve("send_mail", {"to": "ann"}, call_id="m")
    if approval.decision == "reject":
        yield ToolFinished(call_id="m", result="Error: rejected", error="rejected")
    else:
        yield ToolFinished(call_id="m", result="sent")
    yield "Done."


async def until_file_exists(messages: Any, ctx: Any) -> AsyncIterator[str]:
    """Works until the file that the message names exists."""
    yield "begun "
    may_end = Path(messages[-1].text)
    while not await asyncio.to_thread(may_end.exists):  # noqa: ASYNC110 - the test is another process
        await asyncio.sleep(0.01)
    yield "ended"


async def blocks(messages: Any, ctx: Any) -> AsyncIterator[str]:
    """Blocks the event loop as soon as the file `go` is in the folder that the message names."""
    yield "…"
    folder = Path(messages[-1].text)
    while not await asyncio.to_thread((folder / "go").exists):  # noqa: ASYNC110 - the test is another process
        await asyncio.sleep(0.01)
    block(folder)


async def hangs(messages: Any, ctx: Any) -> AsyncIterator[str]:
    """Waits for a thread that does not end."""
    yield "…"
    await asyncio.to_thread(block, Path(messages[-1].text))


def block(folder: Path) -> None:
    (folder / "blocked").touch()
    time.sleep(3600)


async def quits(messages: Any, ctx: Any) -> AsyncIterator[str]:
    """Calls `exit` in a task."""
    yield "I go."
    await asyncio.create_task(_leave())


async def _leave() -> None:
    sys.exit(3)


async def busy(messages: Any, ctx: Any) -> AsyncIterator[str | AnyEvent]:
    """A step with two parallel calls, one of which is a sub-agent; with the message "wait" it then waits."""
    yield StepStarted(number=1)
    yield Usage(model="understudy", input_tokens=11, output_tokens=7)
    yield ToolStarted(call_id="t1", name="search", args={"q": "honey"})
    yield ToolStarted(call_id="t2", name="task", args={})
    yield AgentStarted(agent_id="a1", name="helper", call_id="t2")
    yield ToolStarted(agent_id="a1", call_id="t3", name="read", args={})
    yield ToolFinished(agent_id="a1", call_id="t3", result="Error: torn", error="torn")
    yield AgentFinished(agent_id="a1")
    yield ToolFinished(call_id="t2", result="helped")
    yield ToolFinished(call_id="t1", result="bees")
    yield StepFinished(number=1)
    if messages[-1].text == "wait":
        yield ToolStarted(call_id="t4", name="wait", args={})
        await asyncio.sleep(3600)
    yield "done"


def quitting_graph() -> Any:
    """A graph with a node that calls `exit`; LangGraph runs it in a task."""
    from langgraph.graph import StateGraph  # pyright: ignore[reportMissingTypeStubs]

    class State(TypedDict):
        question: str

    async def leave(state: State) -> dict[str, str]:
        sys.exit(3)

    builder: Any = StateGraph(State)
    builder.add_node("leave", leave)
    builder.set_entry_point("leave")
    return builder.compile()


def asks() -> Any:
    """A graph that requests an approval and repeats the decision; LangGraph keeps its state on disk."""
    from langgraph.graph import StateGraph  # pyright: ignore[reportMissingTypeStubs]
    from langgraph.types import interrupt

    class State(TypedDict):
        question: str
        answer: str

    def ask(state: State) -> dict[str, str]:
        return {"answer": f"decided: {interrupt('May I?')}"}

    builder: Any = StateGraph(State)
    builder.add_node("ask", ask)
    builder.set_entry_point("ask")
    return builder.compile()


async def careless(messages: Any, ctx: Any) -> AsyncIterator[str]:
    """Raises in a thread and in `__del__`; its run finishes."""
    secret = str(messages[-1].text)

    class Swarm:
        def __del__(self) -> None:
            raise OSError(secret)

    def fly() -> None:
        raise ValueError(secret)

    thread = threading.Thread(target=fly, name="beehive")
    thread.start()
    thread.join()
    swarm = Swarm()
    del swarm
    yield "done"


async def counts_frozen_objects(messages: Any, ctx: Any) -> str:
    """Returns the number of objects that garbage collection does not examine."""
    return str(gc.get_freeze_count())
