"""`deep`: a deep agent with todos, files and a researcher. No `execute`: there is no sandbox to run it in."""

from importlib import import_module
from typing import Any

from limelight.builtin.chat_model import chat_model
from limelight.builtin.deep_files import SessionFiles
from limelight.builtin.kit import Kit
from limelight.builtin.web import Refused

PROMPT = """You are a careful assistant with a workspace of files and a researcher.
Write down a short plan with write_todos if a question needs more than one step, and keep it up to date.
Look at the files that are there before you answer. Give questions about the world to the researcher.
Say in the answer where it comes from."""
RESEARCH = """You look things up. Search first, read the best page with readurl, then report in a few sentences,
with the address of each page that you used."""


def deep(kit: Kit) -> Any:
    create: Any = import_module("deepagents").create_deep_agent
    todos: Any = import_module("langchain.agents.middleware").TodoListMiddleware
    researcher = {
        "name": "researcher",
        "description": "Looks things up in the library or on the web, and reports what it says",
        "system_prompt": RESEARCH,
        "tools": _tools(kit),
    }
    return create(
        name="deep",
        model=chat_model(kit),
        system_prompt=PROMPT,
        middleware=[todos()],
        subagents=[researcher],
        backend=SessionFiles(samples=kit.samples),
    )


def _tools(kit: Kit) -> list[Any]:
    """A tool that raises ends a graph's run, so what is refused is told as the tool's result."""
    base: Any = import_module("langchain_core.tools")

    def search(query: str) -> list[dict[str, Any]]:
        """Find pages about something. Gives titles, addresses and a few words of each, the best first."""
        return _told(lambda: kit.lookup.search(query))

    def readurl(url: str) -> str:
        """Read the text of a page, by an address that search gave."""
        return _told(lambda: kit.lookup.readurl(url))

    def _told(look: Any) -> Any:
        try:
            return look()
        except Refused as error:
            raise base.ToolException(str(error)) from error

    return [
        base.StructuredTool.from_function(function, handle_tool_error=True, parse_docstring=False)
        for function in (search, readurl)
    ]
