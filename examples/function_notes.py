"""A plain function as an agent. Serve it: limelight serve examples/function_notes.py:agent
It needs no model."""

import asyncio

from limelight.events import Status, ToolFinished, ToolStarted

NOTES = {"bees.md": "Bees dance to tell where the flowers are.", "tides.md": "The moon pulls the sea twice a day."}


def read_note(name):
    if name not in NOTES:
        raise FileNotFoundError(f"there is no file {name}")
    return NOTES[name]


async def compile_notes(title):
    await asyncio.sleep(1)
    return "\n\n".join([f"# {title}", *NOTES.values()])


async def agent(messages, ctx):
    """Reads a few notes, one of which is missing, and compiles them."""
    yield "Let me look at the notes."
    for name in [*NOTES, "lost.md"]:
        yield ToolStarted(call_id=name, name="read_note", args={"name": name})
        try:
            yield ToolFinished(call_id=name, result=read_note(name))
        except FileNotFoundError as error:
            yield ToolFinished(call_id=name, error=str(error))
    title = messages[-1].text
    yield ToolStarted(call_id="compile", name="compile_notes", args={"title": title})
    yield Status(text=f"Compiling {len(NOTES)} notes …")
    text = await compile_notes(title)
    yield ToolFinished(call_id="compile", result=text)
    yield f"Here they are, under your title:\n\n{text}"
