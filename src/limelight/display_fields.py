"""Derives the fields of events that clients show for tool calls and answers. Pure.

A call gets a `summary`, and a `language` and `code_key` if it runs code. The title and sources of an answer become
fields. The engine adds these fields before an event is truncated and stored; dialects add them to events of logs that
an older version has written. No dialect, page, pipe or terminal derives them again.
"""

from itertools import chain
from typing import Any, NamedTuple, cast, get_args

from msgspec.structs import replace

from limelight.events import (
    AnyEvent,
    ApprovalRequested,
    ApprovalResolved,
    FinalAnswer,
    JsonValue,
    RunStarted,
    ToolFinished,
    ToolReady,
    ToolStarted,
)
from limelight.structured_answers import to_text, with_parts

PYTHON_TOOLS = frozenset({"python_interpreter", "python", "execute_python", "run_python"})
"""The usual names of tools that run Python code, for agents whose settings name no such tools."""
PYTHON_KEYS = ("code", "source", "script")
"""Names of the argument in which Python tools take their code."""
CODE_KEY = "code"
"""Name of the argument in which other tools take their code. Their `source` or `script` may be a URL."""
SUMMARY_KEYS = (
    "path",
    "file_path",
    "filename",
    "file",
    "name",
    "url",
    "query",
    "q",
    "question",
    "command",
    "expression",
    "pattern",
    "description",
    "task",
    "request",
    "prompt",
    "title",
    "code",
    "text",
    "content",
)
"""Names of arguments that describe a call well, the best first."""
SUMMARY_CHARS = 80
SUMMARY_ITEMS = 20
"""The most items of a list that a summary uses."""
LANGUAGE_NAMES = {
    "py": "python",
    "sql": "sql",
    "shell": "bash",
    "bash": "bash",
    "command": "bash",
    "exec": "bash",
    "js": "javascript",
    "javascript": "javascript",
    "node": "javascript",
}
"""Parts of tool names, and the language of the code of such tools. The first match counts."""

Args = dict[str, Any] | str


class Code(NamedTuple):
    """The language of a call's code, and the name of the argument with the code; "" if all arguments are the code."""

    language: str
    key: str = ""


class DisplayFields:
    """Adds the derived fields to the events of one run. The events must be passed in order."""

    def __init__(self) -> None:
        self._python_tools = PYTHON_TOOLS
        self._tool_names: dict[str, str] = {}
        self._approval_names: dict[str, str] = {}

    def add_to(self, event: AnyEvent) -> AnyEvent:
        """Return the event with its derived fields. An event that already has these fields is returned unchanged."""
        if type(event) not in _TYPES:
            return event
        match event:
            case RunStarted():
                self._python_tools = frozenset(event.python_tools) or PYTHON_TOOLS
            case ToolStarted():
                self._tool_names[event.call_id] = event.name
                return self._present_call(event, event.name)
            case ToolReady():
                return self._present_call(event, self._tool_names.get(event.call_id, ""))
            case ApprovalRequested():
                self._approval_names[event.approval_id] = event.name
                return self._present_call(event, event.name)
            case ApprovalResolved():
                name = self._approval_names.pop(event.approval_id, "")
                return event if event.args is None else self._present_call(event, name)
            case ToolFinished():
                self._tool_names.pop(event.call_id, None)
            case FinalAnswer():
                return with_parts(event)
            case _:
                pass
        return event

    def _present_call(self, event: "Call", name: str) -> "Call":
        if event.summary or event.language:
            return event
        code = code_in(name, event.args, self._python_tools)
        summary = summarize(event.args)
        if code is None:
            return replace(event, summary=summary) if summary else event
        return replace(event, summary=summary, language=code.language, code_key=code.key)


Call = ToolStarted | ToolReady | ApprovalRequested | ApprovalResolved
_TYPES = frozenset({RunStarted, FinalAnswer, ToolFinished, *get_args(Call)})


def summarize(args: Args | None) -> str:
    """Return the argument that describes a call best, as one line; "" if there is none."""
    if not args:
        return ""
    if isinstance(args, str):
        return _first_line(args)
    keys = [*(key for key in SUMMARY_KEYS if key in args), *args]
    objects = (to_text(args[key]) for key in args if isinstance(args[key], dict) and args[key])
    texts = chain((_words(args[key]) for key in keys), objects)  # lazy: an object may be large
    return next((line for text in texts if (line := _first_line(text))), "")


def code_in(name: str, args: Args | None, python_tools: frozenset[str]) -> Code | None:
    """Return where the code of a call is; None if it runs no code. `args` is None while the arguments stream."""
    is_python = name in python_tools
    if not isinstance(args, dict):
        return Code("python") if is_python else None
    keys = PYTHON_KEYS if is_python else (CODE_KEY,)
    key = next((key for key in keys if isinstance(args.get(key), str)), None)
    if key is None:
        return Code("python") if is_python else None
    return Code("python" if is_python else _language(name, args), key)


def _language(name: str, args: dict[str, Any]) -> str:
    """Return the language that the arguments name, or that the name of the tool suggests; "text" if neither does."""
    named = args.get("language") or args.get("lang")
    if isinstance(named, str):
        return named.lower()
    return next((language for part, language in LANGUAGE_NAMES.items() if part in name.lower()), "text")


def _words(value: JsonValue) -> str:
    """Return a value as text for a summary: the items of a list joined, and "" for an object or None."""
    if isinstance(value, list):
        items = cast("list[JsonValue]", value[:SUMMARY_ITEMS])
        is_texts = all(isinstance(item, str) for item in items)
        return (" " if is_texts else ", ").join(filter(None, (_item(item) for item in items)))
    return "" if value is None or isinstance(value, dict) else to_text(value)


def _item(value: JsonValue) -> str:
    return summarize(value) if isinstance(value, dict | str) else to_text(value)


def _first_line(text: str) -> str:
    """Return the first line that is not blank, shortened to the length of a summary."""
    line = text.strip().split("\n", 1)[0].strip()
    return line if len(line) <= SUMMARY_CHARS else line[: SUMMARY_CHARS - 1] + "…"
