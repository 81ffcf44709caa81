"""`deep`: a deep agent with todos, files and a researcher, which asks a person before tools that are named.

It has `execute` only if somebody has asked for it: there is no sandbox to run it in.
"""

from importlib import import_module
from typing import Any

from limelight.builtin.agent_config import EXECUTE, Kit
from limelight.builtin.chat_model import chat_model
from limelight.builtin.deep_files import SessionFiles
from limelight.builtin.wait_tool import wait
from limelight.builtin.web_fetch import Refused

PROMPT = """You are a careful assistant with a workspace of files and a researcher.
Write down a short plan with write_todos if a question needs more than one step, and keep it up to date.
Look at the files that are there before you answer. Give questions about the world to the researcher.
{approval}Say in the answer where it comes from."""
RESEARCH = """You look things up. Search first, read the best page with readurl, then report in a few sentences,
with the address of each page that you used."""


def deep(kit: Kit) -> Any:
    create: Any = import_module("deepagents").create_deep_agent
    todos: Any = import_module("langchain.agents.middleware").TodoListMiddleware
    researcher = {
        "name": "researcher",
        "description": "Looks things up in the library or on the web, and reports what it says",
        "system_prompt": RESEARCH,
        "tools": _lookup_tools(kit),
    }
    asked = tuple(name for name in kit.approve if kit.execute or name != EXECUTE)
    return create(
        name="deep",
        model=chat_model(kit),
        system_prompt=PROMPT.format(approval=_approval(asked)),
        tools=[_wait_tool()],
        middleware=[todos()],
        subagents=[researcher],
        interrupt_on=dict.fromkeys(asked, True),
        backend=_backend(kit),
    )


def _backend(kit: Kit) -> Any:
    if not kit.execute:
        return SessionFiles(samples=kit.samples)
    shell: Any = import_module("limelight.builtin.deep_shell").SessionShell
    return shell(samples=kit.samples)


def _approval(names: tuple[str, ...]) -> str:
    if not names:
        return ""
    return f"A person is asked for approval before {' or '.join(names)} does anything; take a no for an answer.\n"


def _wait_tool() -> Any:
    base: Any = import_module("langchain_core.tools")
    return base.StructuredTool.from_function(coroutine=wait, parse_docstring=True)


def _lookup_tools(kit: Kit) -> list[Any]:
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
