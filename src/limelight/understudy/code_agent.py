"""Agents that act by writing Python, as smolagents' CodeAgent does: their tools stand in the system prompt.

Pure. Recognises such a prompt, reads the tools out of it, and writes calls as a code block. The improviser uses it.
"""

import re
from collections.abc import Iterable
from typing import Any

from limelight.understudy.conversation import Request, Said, Tool
from limelight.understudy.programs import call, is_program
from limelight.understudy.situation import Scene

SIGNATURE = re.compile(r"^\s*def (\w+)\((.*?)\) ?->\s*(\w*)", re.MULTILINE)
TYPES = {"str": "string", "int": "integer", "float": "number", "bool": "boolean", "list": "array", "dict": "object"}


def expects_code(request: Request) -> bool:
    return not request.tools and "final_answer" in request.system and "Thought:" in request.system


def code_scene(request: Request) -> Scene:
    """The scene with the tools of the prompt; calls are found in the code that was written so far."""
    tools = tuple(_tool(*found) for found in SIGNATURE.findall(request.system) if found[0] != "final_answer")
    code = "\n".join(f"{e.text} {e.calls}" for e in request.since if isinstance(e, Said))
    made = [(tool.name, "") for tool in tools for _ in re.findall(rf"\b{tool.name}\(", code)]
    return Scene(request, tools, tuple(made))


def has_run_program(request: Request) -> bool:
    """Whether code of our own was written since the user's last message."""
    return any(is_program(f"{entry.text} {entry.calls}") for entry in request.since if isinstance(entry, Said))


def code_block(request: Request, thought: str, code: str) -> str:
    """The reply, between the marks that the prompt asks for."""
    opened, closed = ("<code>", "</code>") if "<code>" in request.system else ("```python", "```")
    return f"Thought: {thought}\n{opened}\n{code.replace(closed, '(code)')}\n{closed}"


def written(calls: Iterable[tuple[str, dict[str, Any]]], scene: Scene) -> str:
    """Calls as Python that prints what they return."""
    tools = {tool.name: tool for tool in scene.tools}
    return "\n".join(call(tools.get(name, Tool(name)), name, args) for name, args in calls)


def _tool(name: str, signature: str, returns: str = "") -> Tool:
    """`query: string, limit: int` as a schema; what has a default or is nullable is not required."""
    properties: dict[str, Any] = {}
    required: list[str] = []
    for part in re.split(r",\s*(?![^\[]*\])", signature):
        field, _, kind = part.partition(":")
        word = (re.findall(r"\w+", kind) or ["string"])[0]
        if field.strip().isidentifier():
            properties[field.strip()] = {"type": TYPES.get(word, word)}
            if "=" not in kind and field.strip() != "additional_args":
                required.append(field.strip())
    return Tool(name, "", {"type": "object", "properties": properties, "required": required}, returns)
