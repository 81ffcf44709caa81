"""The demo agent: an async generator that searches the session's files, without a model and without a framework.

It is written like a user's function agent: it yields text, events and a file, and uses `ctx` only.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from typing import Any

from limelight.builtin.agent_config import AgentConfig
from limelight.builtin.demo import tools
from limelight.events import (
    AgentFinished,
    AgentStarted,
    AnyEvent,
    Plan,
    Status,
    TextDelta,
    TextFinished,
    Todo,
    TodoStatus,
    ToolFinished,
    ToolStarted,
)
from limelight.messages import Message
from limelight.sources.base import Context, FileMade, Item

SECONDS_PER_WORD = 0.012
"""Pause between two words of streamed text; about the speed of a model."""
REPORT = "report.md"
MAX_QUESTION_CHARACTERS = 100
"""Length limit for the user's question where the demo quotes it."""
WAIT_SECONDS = 3
STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a about an and are can do does for have how i in is it me my of on show tell that the there they this to was"
        " were what when where which who why with you your file files please",
    )
)


async def demo(messages: list[Message], ctx: Context) -> AsyncIterator[str | Item]:
    """Looks things up in a few sample files: real tools, a sub-agent, a report. Needs no model and no key."""
    question = next(message.text for message in reversed(messages) if message.role == "user")
    words = [w for w in re.findall(r"\w+", question.lower()) if w not in STOP_WORDS][:8]
    folder = ctx.workspace
    await asyncio.to_thread(tools.copy_sample_files, folder)

    async for word in _words("Let me look at what is there."):
        yield word
    yield _plan(0)
    async for event in _call("list", "list_files", {}, lambda: tools.list_files(folder)):
        yield event
    yield _plan(1)

    hits: list[dict[str, Any]] = []
    async for event in _research(question, words, ctx, hits):
        yield event
    yield _plan(2)

    if "error" in question.lower():
        yield Status(text="Reading a file that does not exist, as you asked for an error")
        async for event in _call(
            "oops", "read_file", {"name": "nowhere.md"}, lambda: tools.read_file(folder, "nowhere.md")
        ):
            yield event

    if "a slow tool" in question.lower():
        yield ToolStarted(call_id="slow", name="wait", args={"seconds": WAIT_SECONDS})
        await asyncio.sleep(WAIT_SECONDS)
        yield ToolFinished(call_id="slow", result=f"waited for {WAIT_SECONDS} seconds")

    async for item in _write_report(_report_text(question, hits), ctx, asks="an approval" in question.lower()):
        yield item
    yield _plan(3)
    async for word in _words(_answer(question, hits)):
        yield word


async def _write_report(report: str, ctx: Context, *, asks: bool) -> AsyncIterator[Item]:
    """Write the demo's report file; with `asks`, only after a person's approval."""
    args = {"name": REPORT}
    yield ToolStarted(call_id="note", name="write_file", args=args)
    if asks and not (answer := await ctx.approve("write_file", args, call_id="note", decisions=("approve", "reject"))):
        error = f"a person said no{answer.reason and f': {answer.reason}'}"
        yield ToolFinished(call_id="note", result=f"Error: {error}", error=error)
        return
    yield await _run_tool("note", lambda: tools.write_file(ctx.workspace, REPORT, report))
    yield FileMade(name=REPORT, data=report.encode(), media_type="text/markdown", call_id="note")


async def _research(
    question: str, words: list[str], ctx: Context, hits: list[dict[str, Any]]
) -> AsyncIterator[AnyEvent]:
    """Run the demo's sub-agent, which searches the files, reads the best one and reports. Adds its finds to `hits`."""
    agent_id = "librarian-1"
    yield ToolStarted(call_id="research", name="task", args={"agent": "librarian", "question": _short(question)})
    yield AgentStarted(agent_id=agent_id, name="librarian", call_id="research")
    yield Status(agent_id=agent_id, text="Searching the files")
    async for event in _call(
        "search", "search", {"words": words}, lambda: tools.search(ctx.workspace, words), agent_id
    ):
        yield event
        if isinstance(event, ToolFinished) and isinstance(event.result, list):
            hits += event.result
    if hits:
        best = hits[0]["file"]
        async for event in _call(
            "read", "read_file", {"name": best}, lambda: tools.read_file(ctx.workspace, best), agent_id
        ):
            yield event
    count = "1 line that fits" if len(hits) == 1 else f"{len(hits)} lines that fit"
    report = f"Found {count}; the best one is in {hits[0]['file']}." if hits else "Found nothing that fits."
    async for word in _words(report):
        yield TextDelta(agent_id=agent_id, message_id="librarian-says", text=word)
    yield TextFinished(agent_id=agent_id, message_id="librarian-says")
    yield AgentFinished(agent_id=agent_id)
    yield ToolFinished(call_id="research", result=report)


async def _call(
    call_id: str, name: str, args: dict[str, Any], work: Callable[[], Any], agent_id: str = ""
) -> AsyncIterator[AnyEvent]:
    """Yield the events of one tool call of the demo.

    The tool runs in a thread, so that a slow disk does not block the event loop.
    """
    yield ToolStarted(agent_id=agent_id, call_id=call_id, name=name, args=args)
    yield await _run_tool(call_id, work, agent_id)


async def _run_tool(call_id: str, work: Callable[[], Any], agent_id: str = "") -> ToolFinished:
    try:
        result = await asyncio.to_thread(work)
    except OSError as error:
        return ToolFinished(agent_id=agent_id, call_id=call_id, result=f"Error: {error}", error=str(error))
    return ToolFinished(agent_id=agent_id, call_id=call_id, result=result)


def _plan(done: int) -> Plan:
    steps = ("See which files there are", "Have the librarian search them", "Write a report")
    items: list[Todo] = []
    for number, step in enumerate(steps):
        status: TodoStatus = "completed" if number < done else "in_progress" if number == done else "pending"
        items.append(Todo(step, status))
    return Plan(items=tuple(items), update=done > 0)


async def _words(text: str) -> AsyncIterator[str]:
    """Yield a text word by word, with pauses, at about the speed of a model."""
    for piece in re.findall(r"\s*\S+|\s+$", text):
        yield piece
        await asyncio.sleep(SECONDS_PER_WORD)


def _report_text(question: str, hits: list[dict[str, Any]]) -> str:
    lines = [f"- {hit['file']}, line {hit['line']}: {hit['text']}" for hit in hits]
    return "\n".join([f"# {question.strip()[:80]}", "", *(lines or ["- nothing found"]), ""])


def _short(question: str) -> str:
    """Return the user's question on one line, cut to MAX_QUESTION_CHARACTERS."""
    line = " ".join(question.split())
    if len(line) <= MAX_QUESTION_CHARACTERS:
        return line
    start = line[:MAX_QUESTION_CHARACTERS]
    return f"{start.rpartition(' ')[0] or start}…"


def _answer(question: str, hits: list[dict[str, Any]]) -> str:
    if not hits:
        return (
            f"I found nothing for “{_short(question)}”. My files are about bees, lighthouses, limelight and rivers: "
            "ask me about one of them.\n\n"
            "I am the demo agent and work without a model; serve an agent of your own with "
            "`limelight serve my_module:agent`."
        )
    quoted = "\n".join(f"> {hit['text']}  \n> *{hit['file']}, line {hit['line']}*\n" for hit in hits[:3])
    return f"This is what the files say to “{_short(question)}”:\n\n{quoted}\nThe whole list is in `report.md`."


def create_demo_agent(_: AgentConfig) -> Callable[..., Any]:
    """Return the demo agent for the catalogue of built-in agents. It has no settings, so the argument is ignored."""
    return demo
