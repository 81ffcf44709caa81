"""The agents that these tests serve. The first runs the script that the question names, and waits at gates.

A gate is a file that the test creates. The agent waits for it, so that the test sees a stable state.
"""

import asyncio
import os
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
    SourceCited,
    TextDelta,
    TextFinished,
    Todo,
    ToolFinished,
    ToolOutputDelta,
    ToolStarted,
    Usage,
)
from limelight.sources.base import FileMade

HOSTILE = (
    """<script>alert("x")</script> <img src=x onerror=alert(1)> **bold** [link](javascript:alert(1)) `code` $y$""",
    """<u>line</u> a<br>b <status title="Approved" done="true"/> <@ann> <#room> <!--n--> <file type="html" id="7"/>""",
    """<iframe src="https://example.org/f"></iframe> <video src="https://example.org/v"></video> """
    """![](https://example.org/x.png)""",
    r"""[4, 8, 15] rows[3] [1] [2][3] [^1] {{user}} {{HTML_FILE_ID_abc}} \begin{equation}x\end{equation} \ce{H}\(z\)""",
    """# head > quote | a | b | ```html <b>fence</b> ``` ~~~ &lt;i&gt; ::: 1. x""",
)
"""Texts with markup that Open WebUI would render. Each is short enough for a preview."""
GATES = Path(os.environ.get("LIMELIGHT_GATES", "/nonexistent"))


async def gate(name: str) -> None:
    """Wait until the test opens the gate."""
    while not (GATES / name).exists():  # noqa: ASYNC110 - the test is another process
        await asyncio.sleep(0.05)


async def call(name: str, args: dict[str, Any], result: Any, until: str = "") -> AsyncIterator[AnyEvent]:
    yield ToolStarted(call_id=name, name=name, args=args)
    if until:
        await gate(until)
    yield ToolFinished(call_id=name, result=result)


async def one_tool(ctx: Any) -> AsyncIterator[str | AnyEvent]:
    yield ReasoningDelta(message_id="r", text="The user wants **bees**. ")
    yield ReasoningFinished(message_id="r")
    yield "Let me look."
    async for event in call("search_docs", {"query": "bees", "limit": 3}, "Bees dance on page 7.", until="search"):
        yield event
    yield SourceCited(title="The book of bees", url="https://example.org/bees", text="Bees dance.")
    yield Usage(model="m", input_tokens=120, output_tokens=30)
    yield "Bees **dance** to tell the way."
    await gate("answer")
    yield " That is all."


async def helpers(ctx: Any) -> AsyncIterator[str | AnyEvent]:
    for who in ("reader", "critic"):
        yield ToolStarted(call_id=f"task-{who}", name="task", args={"to": who})
        yield AgentStarted(agent_id=who, name=who, call_id=f"task-{who}")
    for who, tool in (("reader", "read_page"), ("critic", "check_facts")):
        yield ToolStarted(agent_id=who, call_id=tool, name=tool, args={"page": 7})
    await gate("helpers")
    yield TextDelta(agent_id="critic", message_id="c", text="SECRET WHISPER")
    yield TextFinished(agent_id="critic", message_id="c")
    for who, tool in (("critic", "check_facts"), ("reader", "read_page")):
        yield ToolFinished(agent_id=who, call_id=tool, result=f"{tool} is done")
        yield AgentFinished(agent_id=who)
        yield ToolFinished(call_id=f"task-{who}", result=f"The report of the {who}.")
    yield "Both have reported."


async def broken(ctx: Any) -> AsyncIterator[str | AnyEvent]:
    yield ToolStarted(call_id="open", name="open_file", args={"name": "missing.txt"})
    yield ToolFinished(call_id="open", result="Error: no such file", error="no such file")
    yield "There is no such file."


async def large(ctx: Any) -> AsyncIterator[str | AnyEvent]:
    text = "BEGIN " + "honey " * 8_500 + "END"
    async for event in call("read_all", {"name": "honey.txt"}, text):
        yield event
    yield "It is about honey."


async def hostile(ctx: Any) -> AsyncIterator[str | AnyEvent]:
    for number, text in enumerate(HOSTILE):
        async for event in call(f"fetch_{number}", {"url": text}, text):
            yield event
    yield "It was fetched."


async def question(ctx: Any) -> AsyncIterator[str | AnyEvent]:
    args = {"to": "ann", "text": "hello"}
    yield ToolStarted(call_id="mail", name="send_mail", args=args)
    answer = await ctx.approve("send_mail", args, call_id="mail")
    if answer:
        yield ToolFinished(call_id="mail", result=f"sent to {answer.args['to']}")
        yield f"It was sent to {answer.args['to']}."
    else:
        yield ToolFinished(call_id="mail", result=f"Error: rejected: {answer.reason}", error="rejected")
        yield f"It was not sent: {answer.reason}"


async def long_question(ctx: Any) -> AsyncIterator[str | AnyEvent]:
    args = {"script": "echo bees\n" * 6_000 + "echo and drop everything"}
    yield ToolStarted(call_id="sh", name="shell", args=args)
    answer = await ctx.approve("shell", args, call_id="sh")
    yield ToolFinished(call_id="sh", result=f"{answer.decision}, {len(answer.args['script'])}")
    yield f"It ran {len(answer.args['script'])} characters."


async def late_question(ctx: Any) -> AsyncIterator[str | AnyEvent]:
    async for event in call("prepare", {}, "ready", until="late"):
        yield event
    async for item in question(ctx):
        yield item


async def picture(ctx: Any) -> AsyncIterator[str | AnyEvent | FileMade]:
    yield ToolStarted(call_id="draw", name="draw", args={})
    yield FileMade(name="dot.png", data=png(), media_type="image/png", call_id="draw")
    yield FileMade(name="notes.txt", data=b"some notes", media_type="text/plain", call_id="draw")
    yield FileMade(name="data.bin", data=bytes(5_000), media_type="application/octet-stream", call_id="draw")
    yield ToolFinished(call_id="draw", result="drawn")
    yield "Here it is."


async def much(ctx: Any) -> AsyncIterator[str | AnyEvent]:
    for number in range(60):
        async for event in call(f"tool_{number}", {"n": number}, "x" * 5_000):
            yield event
    for number in range(2_000):
        yield f"word{number} "
        if number % 20 == 0:
            await asyncio.sleep(0.005)


async def plan(ctx: Any) -> AsyncIterator[str | AnyEvent]:
    yield Plan(items=(Todo("Look it up", "in_progress"), Todo("Answer")))
    await gate("plan")
    yield Plan(items=(Todo("Look it up", "completed"), Todo("Answer", "in_progress")), update=True)
    yield ToolStarted(call_id="py", name="python", args={"code": "print(1)"})
    yield ToolOutputDelta(call_id="py", text="line one\nline two\n")
    await gate("printed")
    yield ToolFinished(call_id="py", result="2")
    yield "Done as planned."


async def structured(ctx: Any) -> AsyncIterator[str | AnyEvent]:
    yield FinalAnswer(title="On bees", content="Bees dance.", sources=("https://example.org/1",))


SCRIPTS = {
    script.__name__: script
    for script in (
        one_tool,
        helpers,
        broken,
        large,
        hostile,
        question,
        long_question,
        late_question,
        picture,
        much,
        plan,
        structured,
    )
}


async def scripted(messages: Any, ctx: Any) -> AsyncIterator[str | AnyEvent | FileMade]:
    """Runs the script that the question names; without one, repeats the messages that it received."""
    text = messages[-1].text
    script = next((script for name, script in SCRIPTS.items() if f"script {name.replace('_', ' ')}" in text), None)
    if script is not None:
        async for item in script(ctx):
            yield item
        return
    received = " | ".join(f"{message.role}: {message.text}" for message in messages)
    tools = sum(len(message.get("tool_calls") or ()) for message in messages)
    yield f"Received: {received} ({tools} calls)"


async def second(messages: Any, ctx: Any) -> AsyncIterator[str | AnyEvent]:
    """The agent of a second model."""
    await gate("second")
    yield f"The second agent received: {messages[-1].text}"


def png() -> bytes:
    """A red square of 32 by 32 pixels."""
    import struct

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\x00" + b"\xff\x30\x30" * 32 for _ in range(32))
    head = struct.pack(">IIBBBBB", 32, 32, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
