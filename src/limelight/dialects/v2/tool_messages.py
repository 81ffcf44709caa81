"""Tool calls: the badge, the code or arguments, what was printed, what came back."""

from typing import Any

from limelight.dialects.base import cut_of, encode, seen_of, text_of
from limelight.dialects.v2.message import Metadata, args_summary, error_type, numbered
from limelight.dialects.v2.text_stream import Stream
from limelight.events import ToolFinished, ToolStarted

PYTHON_TOOLS = frozenset({"python_interpreter", "python", "execute_python", "run_python"})
CODE_KEYS = ("code", "source", "script")


class OpenCall:
    """One call, from its start to its end."""

    def __init__(self, event: ToolStarted, step: int | None, python_tools: frozenset[str]) -> None:
        self.call_id = event.call_id
        self.name = event.name
        self.agent_id = event.agent_id
        self.step = step
        self.is_python = event.name in python_tools
        self.announced = False
        self.logs: Stream | None = None

    @property
    def about(self) -> Metadata:
        return {"step_type": "action", **numbered(self.step), "tool_name": self.name, "tool_id": self.call_id}

    def badge(self, args: dict[str, Any] | str) -> Metadata:
        running = {"agent_status": "coding" if self.is_python else "actions_running", "is_active": True}
        return {
            **self.about,
            "tool_args_summary": args_summary(args),
            "is_python_interpreter": self.is_python,
            **running,
        }

    def invocation(self, args: dict[str, Any] | str) -> tuple[str, Metadata]:
        """What goes in: code as code, other arguments as JSON."""
        shared = {**self.about, "title": f"🛠️ Used tool {self.name}", "is_active": False}
        if not self.is_python:
            content = args if isinstance(args, str) else encode(args).decode()
            return content, {**shared, "agent_status": "actions_running", "tool_args": args}
        code = code_in(args)
        more: Metadata = {"code": code, "language": "python", "code_lines": len(code.splitlines())}
        more["has_imports"] = any(line.lstrip().startswith(("import ", "from ")) for line in code.splitlines())
        return fenced(code, "python"), {**shared, "agent_status": "coding", **more}

    def observation(self, event: ToolFinished) -> tuple[str, Metadata]:
        metadata: Metadata = {**self.about, "title": f"Result of {self.name}", "has_error": event.error is not None}
        if event.error is not None:
            metadata |= {"error": True, "error_type": error_type(event.error, "ToolError")}
        if event.duration_ms is not None:
            metadata["execution_duration"] = event.duration_ms / 1000
        text = text_of(event.result)
        return text, {**metadata, "output_lines": len(text.splitlines()), **seen_of(event), **cut_of(event)}


def code_in(args: dict[str, Any] | str) -> str:
    """The code among the arguments of a Python tool; all of them if none looks like it."""
    if isinstance(args, str):
        return args
    found = next((args[key] for key in CODE_KEYS if isinstance(args.get(key), str)), None)
    return found if found is not None else encode(args).decode()


def fenced(code: str, language: str) -> str:
    """In a fence that is longer than any in the code."""
    fence = "```"
    while fence in code:
        fence += "`"
    return f"{fence}{language}\n{code}\n{fence}"
