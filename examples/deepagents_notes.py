"""A deepagents agent with custom tools. Serve it: limelight serve examples/deepagents_notes.py:agent
It uses the model at OPENAI_BASE_URL with OPENAI_API_KEY; `limelight understudy` serves a stand-in and prints both."""

import os
import time

from deepagents import create_deep_agent
from langchain_core.tools import ToolException, tool
from langchain_openai import ChatOpenAI

from limelight import status

NOTES = {"bees.md": "Bees dance to tell where the flowers are.", "tides.md": "The moon pulls the sea twice a day."}


@tool
def list_notes() -> list[str]:
    """List the notes that there are, and one that is missing."""
    return [*NOTES, "lost.md"]


@tool
def read_note(name: str) -> str:
    """Read one note."""
    if name not in NOTES:
        raise ToolException(f"there is no file {name}")
    return NOTES[name]


@tool
def compile_notes(title: str) -> str:
    """Compile all notes into one text. Takes a while."""
    status(f"Compiling {len(NOTES)} notes into “{title}” …")
    time.sleep(1)
    return "\n\n".join([f"# {title}", *NOTES.values()])


read_note.handle_tool_error = True  # otherwise a tool error ends the run
model = ChatOpenAI(model=os.environ.get("LIMELIGHT_MODEL", "understudy"), stream_usage=True)
agent = create_deep_agent(model=model, tools=[list_notes, read_note, compile_notes], system_prompt="You keep notes.")
