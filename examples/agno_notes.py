"""An Agno agent with custom tools. Serve it: limelight serve examples/agno_notes.py:agent
It uses the model at OPENAI_BASE_URL with OPENAI_API_KEY; `limelight understudy` serves a stand-in and prints both."""

import os
import time

from agno.agent import Agent
from agno.models.openai import OpenAILike

from limelight import status

NOTES = {"bees.md": "Bees dance to tell where the flowers are.", "tides.md": "The moon pulls the sea twice a day."}


def list_notes() -> list[str]:
    """List the notes that there are, and one that is missing."""
    return [*NOTES, "lost.md"]


def read_note(name: str) -> str:
    """Read one note."""
    if name not in NOTES:
        raise FileNotFoundError(f"there is no file {name}")
    return NOTES[name]


def compile_notes(title: str) -> str:
    """Compile all notes into one text. Takes a while."""
    status(f"Compiling {len(NOTES)} notes into “{title}” …")
    time.sleep(1)
    return "\n\n".join([f"# {title}", *NOTES.values()])


model = OpenAILike(
    id=os.environ.get("LIMELIGHT_MODEL", "understudy"),
    api_key=os.environ.get("OPENAI_API_KEY"),
    base_url=os.environ.get("OPENAI_BASE_URL"),
)
agent = Agent(model=model, tools=[list_notes, read_note, compile_notes], description="You keep notes.")
