"""A smolagents agent with custom tools. Serve it: limelight serve examples/smolagents_notes.py:agent
It uses the model at OPENAI_BASE_URL with OPENAI_API_KEY; `limelight understudy` serves a stand-in and prints both."""

import time
from os import getenv

from smolagents import OpenAIModel, ToolCallingAgent, tool

from limelight import status

NOTES = {"bees.md": "Bees dance to tell where the flowers are.", "tides.md": "The moon pulls the sea twice a day."}


@tool
def list_notes() -> list[str]:
    """List the notes that there are, and one that is missing."""
    return [*NOTES, "lost.md"]


@tool
def read_note(name: str) -> str:
    """Read one note.
    Args:
        name: The note's name, as listed."""
    if name not in NOTES:
        raise FileNotFoundError(f"there is no file {name}")
    return NOTES[name]


@tool
def compile_notes(title: str) -> str:
    """Compile all notes into one text. Takes a while.
    Args:
        title: The title of the text."""
    status(f"Compiling {len(NOTES)} notes into “{title}” …")
    time.sleep(1)
    return "\n\n".join([f"# {title}", *NOTES.values()])


agent = ToolCallingAgent([list_notes, read_note, compile_notes], OpenAIModel(getenv("LIMELIGHT_MODEL", "understudy")))
