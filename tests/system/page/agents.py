"""The agent of these tests. It plays the scene that the question names, and waits at gates.

A gate is a file that the test creates. Until then the agent waits, so that the test sees a stable state.
"""

import asyncio
import os
import struct
import zlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from limelight.events import (
    AgentFinished,
    AgentStarted,
    AnyEvent,
    FinalAnswer,
    Plan,
    ReasoningDelta,
    ReasoningFinished,
    Status,
    TextDelta,
    TextFinished,
    Todo,
    ToolFinished,
    ToolOutputDelta,
    ToolStarted,
    Usage,
)
from limelight.sources.base import FileMade

GATES = Path(os.environ.get("LIMELIGHT_GATES", "/nonexistent"))
LONG = "BEGIN " + "honey " * 12_000 + "needleword END"
Item = str | AnyEvent | FileMade


async def gate(name: str) -> None:
    """Wait until the test opens this gate."""
    while not (GATES / name).exists():  # noqa: ASYNC110 - the test is another process
        await asyncio.sleep(0.03)


async def tools(ctx: Any) -> AsyncIterator[Item]:
    """A thought, a plan, a call that waits, one that fails and one with a long result."""
    yield ReasoningDelta(message_id="r", text="They want **bees**, so I look for bees.")
    yield ReasoningFinished(message_id="r")
    yield Plan(text="1. Search\n2. Read\n3. Answer")
    yield ToolStarted(call_id="s", name="search_docs", args={"query": "bees", "limit": 3})
    await gate("search")
    yield ToolFinished(call_id="s", result="Bees dance on page 7.")
    yield ToolStarted(call_id="f", name="open_file", args={"path": "missing.txt"})
    yield ToolFinished(call_id="f", result="", error="no such file: missing.txt")
    yield ToolStarted(call_id="l", name="read_all", args={"path": "honey.txt"})
    yield ToolFinished(call_id="l", result=LONG)
    yield Usage(model="m", input_tokens=1200, output_tokens=30)
    await gate("answer")
    yield "Bees **dance** to tell the way."


async def todos(ctx: Any) -> AsyncIterator[Item]:
    yield Plan(items=(Todo("Look it up", "in_progress"), Todo("Answer")))
    await gate("todos")
    yield Plan(items=(Todo("Look it up", "completed"), Todo("Answer", "in_progress")), update=True)
    await gate("answer")
    yield "Done as planned."


async def helpers(ctx: Any) -> AsyncIterator[Item]:
    """Two parallel sub-agents, one of which has a sub-agent."""
    for who in ("reader", "critic"):
        yield ToolStarted(call_id=f"task-{who}", name="task", args={"to": who, "task": f"Be the {who} of page 7"})
        yield AgentStarted(agent_id=who, name=who, call_id=f"task-{who}")
    yield ToolStarted(agent_id="reader", call_id="read", name="read_page", args={"page": 7})
    yield ToolStarted(agent_id="critic", call_id="check", name="check_facts", args={"page": 7})
    yield ToolStarted(agent_id="reader", call_id="sub", name="delegate", args={"task": "Count the bees"})
    yield AgentStarted(agent_id="counter", name="counter", parent_id="reader", call_id="sub")
    yield ToolStarted(agent_id="counter", call_id="count", name="count_bees", args={})
    await gate("helpers")
    yield TextDelta(agent_id="critic", message_id="c", text="The facts are right.")
    yield TextFinished(agent_id="critic", message_id="c")
    yield ToolFinished(agent_id="counter", call_id="count", result=41)
    yield AgentFinished(agent_id="counter")
    yield ToolFinished(agent_id="reader", call_id="sub", result="41 bees")
    for who, call in (("critic", "check"), ("reader", "read")):
        yield ToolFinished(agent_id=who, call_id=call, result=f"{call} is done")
        yield AgentFinished(agent_id=who)
        yield ToolFinished(call_id=f"task-{who}", result=f"The report of the {who}.")
    yield "Both have reported."


async def document(ctx: Any) -> AsyncIterator[Item]:
    yield FinalAnswer(
        title="On bees",
        content="## How they dance\n\nThey **waggle** [1].\n\n| dance | distance |\n|---|---|\n| round | near |\n",
        sources=("https://example.org/bees", "The book of bees"),
    )


async def files(ctx: Any) -> AsyncIterator[Item]:
    yield ToolStarted(call_id="d", name="draw", args={})
    yield FileMade(name="dot.png", data=png(), media_type="image/png", call_id="d")
    yield FileMade(name="notes.txt", data=b"some notes", media_type="text/plain", call_id="d")
    yield ToolFinished(call_id="d", result="drawn")
    yield "Here it is."


async def stream(ctx: Any) -> AsyncIterator[Item]:
    """Text that grows until the test opens the gate."""
    yield ToolStarted(call_id="s", name="search_docs", args={"query": "bees"})
    yield ToolFinished(call_id="s", result="Bees dance.")
    yield "The first words stand.\n\n"
    number = 0
    while not (GATES / "enough").exists():
        number += 1
        yield f"word{number} " + ("\n\n" if number % 30 == 0 else "")
        await asyncio.sleep(0.01)
    yield "That was all."


async def words(ctx: Any) -> AsyncIterator[Item]:
    """A slow text that fits on a tall screen."""
    yield ToolStarted(call_id="s", name="search_docs", args={"query": "bees"})
    yield ToolFinished(call_id="s", result="Bees dance.")
    yield "The first words stand.\n\n"
    for number in range(1, 241):
        yield f"word{number} " + ("\n\n" if number % 30 == 0 else "")
        await asyncio.sleep(0.02)
    await gate("enough")
    yield "That was all."


async def code(ctx: Any) -> AsyncIterator[Item]:
    """Three programs: the second prints colours, the third many lines."""
    yield ToolStarted(call_id="p1", name="python", args={"code": "import math\nprint(math.pi)"})
    await gate("ran")
    yield ToolOutputDelta(call_id="p1", text="3.14159\n")
    await gate("second")
    yield ToolFinished(call_id="p1", result="None")
    yield ToolStarted(call_id="p2", name="python", args={"code": "print('in colours')"})
    yield ToolOutputDelta(call_id="p2", text="\x1b[31mred\x1b[0m and \x1b[32mgreen\x1b[0m\n")
    await gate("third")
    yield ToolFinished(call_id="p2", result="42")
    yield ToolStarted(call_id="p3", name="python", args={"code": "for n in range(300):\n    print(n)"})
    for number in range(300):
        yield ToolOutputDelta(call_id="p3", text=f"line {number}\n")
    await gate("printed")
    yield ToolOutputDelta(call_id="p3", text="the last line\n")
    yield ToolFinished(call_id="p3", result="ok")
    yield "Printed."


async def steps(ctx: Any) -> AsyncIterator[Item]:
    """Two programs, of which the second prints when the test has looked at the first."""
    yield ToolStarted(call_id="p1", name="python", args={"code": "first = 1"})
    yield ToolFinished(call_id="p1", result="None")
    yield ToolStarted(call_id="p2", name="python", args={"code": "print('second')"})
    await gate("ran")
    yield ToolOutputDelta(call_id="p2", text="in print\n")
    await gate("printed")
    yield ToolFinished(call_id="p2", result="None")
    yield "Both ran."


async def question(ctx: Any) -> AsyncIterator[Item]:
    args = {"to": "ann", "text": "hello"}
    yield ToolStarted(call_id="mail", name="send_mail", args=args)
    answer = await ctx.approve("send_mail", args, call_id="mail")
    if answer:
        yield ToolFinished(call_id="mail", result=f"sent to {answer.args['to']}")
        yield f"It was sent to {answer.args['to']}."
    else:
        yield ToolFinished(call_id="mail", result="", error="rejected")
        yield f"It was not sent: {answer.reason}"


TRIP = {
    "type": "object",
    "properties": {
        "town": {
            "oneOf": [{"const": "lyo", "title": "Lyon", "description": "two hours"}, {"const": "p", "title": "Paris"}]
        },
        "days": {"type": "integer", "title": "Days", "description": "Nights are included."},
        "by_train": {"type": "boolean", "title": "By train", "default": True},
        "note": {"type": "string", "title": "Note"},
    },
    "required": ["town", "days", "by_train"],
}


async def form(ctx: Any) -> AsyncIterator[Item]:
    """Asks a question with a form, and then one with a text, as a graph with `interrupt` does."""
    text = "Where shall I book,\nand for how long?"
    trip = await ctx.approve("interrupt", {"value": text}, question=text, answer_schema=TRIP)
    yield f"Booked: {trip.answer['town']}, {trip.answer['days']} days. "
    name = await ctx.approve("interrupt", {"value": "What name?"}, question="What name?", answer_schema={})
    yield f"For {name.answer}."


async def booking(ctx: Any) -> AsyncIterator[Item]:
    """Requests an approval of arguments whose schema is known."""
    args = {"town": "p", "days": 2, "by_train": True, "note": "A quiet room,\nplease."}
    answer = await ctx.approve("book", args, args_schema=TRIP)
    yield f"Booked: {answer.args['town']}, {answer.args['days']} days."


async def hesitant(ctx: Any) -> AsyncIterator[Item]:
    """Requests an approval when the test opens the gate."""
    yield Status(text="Thinking about it")
    await gate("search")
    yield "Yes." if await ctx.approve("send_mail", {"to": "ann"}) else "No."


async def patient(ctx: Any) -> AsyncIterator[Item]:
    yield Status(text="Taking its time")
    yield ToolStarted(call_id="w", name="wait_long", args={})
    await gate("patience")
    yield ToolFinished(call_id="w", result="over")
    yield "It is over."


async def crash(ctx: Any) -> AsyncIterator[Item]:
    yield ToolStarted(call_id="c", name="steer", args={})
    raise ValueError("the wheel came off")


async def parallel(ctx: Any) -> AsyncIterator[Item]:
    """Two parallel calls, one after them, and a long page."""
    yield ToolStarted(call_id="a", name="first_call", args={})
    yield ToolStarted(call_id="b", name="second_call", args={})
    await asyncio.sleep(0.3)
    yield ToolFinished(call_id="a", result="a")
    yield ToolFinished(call_id="b", result="b")
    for number in range(30):
        yield ToolStarted(call_id=f"n{number}", name=f"small_{number}", args={"n": number})
        yield ToolFinished(call_id=f"n{number}", result="x")
    yield ToolStarted(call_id="z", name="last_call", args={})
    await asyncio.sleep(0.1)
    yield ToolFinished(call_id="z", result="z")
    yield "\n\n".join(f"Paragraph {number} of a long answer." for number in range(40))


async def many(ctx: Any) -> AsyncIterator[Item]:
    """150 calls, each with code, and an unstreamed answer that is longer than the window."""
    for number in range(150):
        yield ToolStarted(call_id=f"c{number}", name="python", args={"code": f"print({number})"})
        yield ToolFinished(call_id=f"c{number}", result=str(number))
    yield FinalAnswer(content="# The beginning\n\n" + "\n\n".join(f"Paragraph {n}." for n in range(80)))


async def brief(ctx: Any) -> AsyncIterator[Item]:
    """More calls than fit into the window, then a short unstreamed answer."""
    for number in range(60):
        yield ToolStarted(call_id=f"c{number}", name="look", args={"at": number})
        yield ToolFinished(call_id=f"c{number}", result="x")
    await gate("enough")
    yield FinalAnswer(content="There is nothing.")


SCENES = {
    scene.__name__: scene
    for scene in (
        *(tools, todos, helpers, document, files, stream, words, code, steps),
        *(question, form, booking, hesitant, patient, crash, parallel, many, brief),
    )
}


async def stage(messages: Any, ctx: Any) -> AsyncIterator[Item]:
    """Plays the scene that the question names; otherwise repeats the question."""
    asked = messages[-1].text
    scene = next((scene for name, scene in SCENES.items() if f"scene {name}" in asked), None)
    if scene is None:
        yield f"You said: {asked}"
        return
    async for item in scene(ctx):
        yield item


async def second(messages: Any, ctx: Any) -> AsyncIterator[str]:
    """Another agent to choose."""
    yield f"The second one heard: {messages[-1].text}"


def png() -> bytes:
    """A red square of 32 by 32."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\x00" + b"\xff\x30\x30" * 32 for _ in range(32))
    head = struct.pack(">IIBBBBB", 32, 32, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
