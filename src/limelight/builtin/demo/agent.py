"""The demo agent: a plain async generator that looks things up in the session's files. No model, no key.

It is written the way that anybody's function agent would be: it yields text, events and a file, and knows nothing else.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from typing import Any

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

PACE = 0.012
"""Seconds between two words, about as fast as a model talks."""
REPORT = "report.md"
LONGEST = 100
"""Characters of a question that are said again."""
SLOW = 3
"""Seconds."""
COMMON = frozenset(
    re.findall(
        r"\w+",
        "a about an and are can do does for have how i in is it me my of on show tell that the there they this to was"
        " were what when where which who why with you your file files please",
    )
)


async def demo(messages: list[Message], ctx: Context) -> AsyncIterator[str | Item]:
    """Looks things up in a few sample files: real tools, a sub-agent, a report. Needs no model and no key."""
    question = next(message.text for message in reversed(messages) if message.role == "user")
    words = [w for w in re.findall(r"\w+", question.lower()) if w not in COMMON][:8]
    folder = ctx.workspace
    await asyncio.to_thread(tools.seed, folder)

    async for word in _spoken("Let me look at what is there."):
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
        yield ToolStarted(call_id="slow", name="wait", args={"seconds": SLOW})
        await asyncio.sleep(SLOW)
        yield ToolFinished(call_id="slow", result=f"waited for {SLOW} seconds")

    async for item in _reported(_report(question, hits), ctx, asks="an approval" in question.lower()):
        yield item
    yield _plan(3)
    async for word in _spoken(_answer(question, hits)):
        yield word


async def _reported(report: str, ctx: Context, *, asks: bool) -> AsyncIterator[Item]:
    """Write the report, after a person has agreed to it if somebody wants to see that."""
    args = {"name": REPORT}
    yield ToolStarted(call_id="note", name="write_file", args=args)
    if asks and not (answer := await ctx.approve("write_file", args, call_id="note", decisions=("approve", "reject"))):
        error = f"a person said no{answer.reason and f': {answer.reason}'}"
        yield ToolFinished(call_id="note", result=f"Error: {error}", error=error)
        return
    yield await _end_of("note", lambda: tools.write_file(ctx.workspace, REPORT, report))
    yield FileMade(name=REPORT, data=report.encode(), media_type="text/markdown", call_id="note")


async def _research(
    question: str, words: list[str], ctx: Context, hits: list[dict[str, Any]]
) -> AsyncIterator[AnyEvent]:
    """The sub-agent: it searches, reads the best file, and reports."""
    who = "librarian-1"
    yield ToolStarted(call_id="research", name="task", args={"agent": "librarian", "question": _short(question)})
    yield AgentStarted(agent_id=who, name="librarian", call_id="research")
    yield Status(agent_id=who, text="Searching the files")
    async for event in _call("search", "search", {"words": words}, lambda: tools.search(ctx.workspace, words), who):
        yield event
        if isinstance(event, ToolFinished) and isinstance(event.result, list):
            hits += event.result
    if hits:
        best = hits[0]["file"]
        async for event in _call(
            "read", "read_file", {"name": best}, lambda: tools.read_file(ctx.workspace, best), who
        ):
            yield event
    count = "1 line that fits" if len(hits) == 1 else f"{len(hits)} lines that fit"
    said = f"Found {count}; the best one is in {hits[0]['file']}." if hits else "Found nothing that fits."
    async for word in _spoken(said):
        yield TextDelta(agent_id=who, message_id="librarian-says", text=word)
    yield TextFinished(agent_id=who, message_id="librarian-says")
    yield AgentFinished(agent_id=who)
    yield ToolFinished(call_id="research", result=said)


async def _call(
    call_id: str, name: str, args: dict[str, Any], work: Callable[[], Any], agent_id: str = ""
) -> AsyncIterator[AnyEvent]:
    """Run a tool in a thread, so that a slow disk blocks nobody, and say how it went."""
    yield ToolStarted(agent_id=agent_id, call_id=call_id, name=name, args=args)
    yield await _end_of(call_id, work, agent_id)


async def _end_of(call_id: str, work: Callable[[], Any], agent_id: str = "") -> ToolFinished:
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


async def _spoken(text: str) -> AsyncIterator[str]:
    """A text as a model would say it: word by word."""
    for piece in re.findall(r"\s*\S+|\s+$", text):
        yield piece
        await asyncio.sleep(PACE)


def _report(question: str, hits: list[dict[str, Any]]) -> str:
    lines = [f"- {hit['file']}, line {hit['line']}: {hit['text']}" for hit in hits]
    return "\n".join([f"# {question.strip()[:80]}", "", *(lines or ["- nothing found"]), ""])


def _short(question: str) -> str:
    """In one line, of which there is no more than fits into a sentence."""
    line = " ".join(question.split())
    return line if len(line) <= LONGEST else f"{line[:LONGEST].rpartition(' ')[0] or line[:LONGEST]}…"


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
