"""An Agno workflow of an agent and a function. Serve it: limelight serve examples/agno_workflow.py:agent
It uses the model at OPENAI_BASE_URL with OPENAI_API_KEY; `limelight understudy` serves a stand-in and prints both."""

import os
import time

from agno.agent import Agent
from agno.models.openai import OpenAILike
from agno.workflow import Step, StepInput, Workflow

from limelight import status

NOTES = {"bees.md": "Bees dance to tell where the flowers are.", "tides.md": "The moon pulls the sea twice a day."}


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


def count_words(step_input: StepInput) -> str:
    text = str(step_input.previous_step_content)
    return f"{text}\n\n({len(text.split())} words)"


url, key = os.environ.get("OPENAI_BASE_URL"), os.environ.get("OPENAI_API_KEY")
model = OpenAILike(id=os.environ.get("LIMELIGHT_MODEL", "understudy"), base_url=url, api_key=key)
keeper = Agent(name="keeper", model=model, tools=[read_note, compile_notes])
agent = Workflow(name="notes", steps=[Step(name="collect", agent=keeper), count_words])
