"""Derives event fields that clients display, such as a one-line summary of a tool call. Pure.

A call gets a `summary`, and a `language` and `code_key` if it runs code. A call that failed after its approval was
rejected gets the `outcome` `rejected`. A sub-agent gets the `task` of the call that started it. The title and sources
of an answer become fields. The engine adds these fields before an event is truncated and stored; dialects add them to
events of logs that an older version has written, and change no others. No dialect, page, pipe or terminal derives them
again.
"""

from itertools import chain
from typing import Any, NamedTuple, TypeVar, cast, get_args

from msgspec.structs import replace

from limelight.events import (
    AgentFinished,
    AgentStarted,
    AnyEvent,
    ApprovalRequested,
    ApprovalResolved,
    FinalAnswer,
    JsonValue,
    RunStarted,
    StepFinished,
    ToolFinished,
    ToolReady,
    ToolStarted,
)
from limelight.grammar import RUN_ENDED, RUN_STOPPED
from limelight.streamed_json import FirstFieldDecoder, StringFieldDecoder
from limelight.structured_answers import to_text, with_parts

PYTHON_TOOLS = frozenset({"python_interpreter", "python", "execute_python", "run_python"})
"""Usual names of tools that run Python code, for agents whose settings do not name theirs."""
PYTHON_KEYS = ("code", "source", "script")
"""Names of the arguments that contain the code of Python tools."""
CODE_KEY = "code"
"""Name of the argument that contains the code of other tools. `source` or `script` may be a URL there."""
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
"""Names of arguments that describe a tool call well, best first."""
TASK_KEYS = ("description", "task", "question", "request", "prompt", "query", "instructions")
"""Names of arguments that describe the task of a sub-agent, best first."""
TASK_CHARS = 2_000
SUMMARY_CHARS = 80
SUMMARY_ITEMS = 20
"""How many items of a list a summary uses."""
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
"""Parts of tool names, with the language of the code that such tools run. The first match counts."""

OLD_CLOSING_TEXTS = frozenset(
    {RUN_STOPPED, RUN_ENDED, "the server stopped while the run was going on", "the server was shut down"}
)
"""Error texts with which older versions have closed what was open at the end of a run, without an `outcome`.

If the agent failed or exceeded a limit, the text was the message of `run_failed`, which comes later in the log. What
such an end has closed is shown as failed.
"""

Args = dict[str, Any] | str


class Code(NamedTuple):
    """The language of a call's code, and the name of the argument with the code; "" if all arguments are the code."""

    language: str
    key: str = ""


class DisplayFields:
    """Adds display fields to the events of one run, which must be passed in order."""

    def __init__(self) -> None:
        self._python_tools = PYTHON_TOOLS
        self._calls: dict[str, _OpenCall] = {}
        self._approvals: dict[str, ApprovalRequested] = {}
        """The open approvals, without their arguments."""
        self._rejected_calls: set[str] = set()
        """The ids of the open calls whose last approval was rejected or has expired."""

    def add_to(self, event: AnyEvent) -> AnyEvent:
        """Return an event with its display fields; an event that already has them is returned unchanged."""
        if type(event) not in _TYPES:
            return event
        match event:
            case RunStarted():
                self._python_tools = frozenset(event.python_tools) or PYTHON_TOOLS
            case ToolStarted():
                self._calls[event.call_id] = _OpenCall(event.name)
                return self._present_call(event, event.name, event.call_id)
            case ToolReady():
                call = self._calls.get(event.call_id)
                return self._present_call(event, "" if call is None else call.name, event.call_id)
            case ApprovalRequested():
                self._approvals[event.approval_id] = replace(event, args="")
                return self._present_call(event, event.name)
            case ApprovalResolved():
                request = self._approvals.pop(event.approval_id, None)
                name, call_id = ("", "") if request is None else (request.name, request.call_id)
                self._note_decision(event, call_id)
                return event if event.args is None else self._present_call(event, name, call_id)
            case ToolFinished():
                self._calls.pop(event.call_id, None)
                return _with_failure(self._with_rejection(event))
            case StepFinished() | AgentFinished():
                return _with_failure(event)
            case AgentStarted():
                call = self._calls.get(event.call_id)
                return event if event.task or call is None or not call.task else replace(event, task=call.task)
            case FinalAnswer():
                return with_parts(event)
            case _:
                pass
        return event

    def _note_decision(self, event: ApprovalResolved, call_id: str) -> None:
        is_withdrawn = event.by == "system" and event.reason != "expired"  # the call or its run has ended
        if event.decision == "reject" and call_id and not is_withdrawn:
            self._rejected_calls.add(call_id)
        else:
            self._rejected_calls.discard(call_id)

    def _with_rejection(self, event: ToolFinished) -> ToolFinished:
        is_rejected = event.call_id in self._rejected_calls
        self._rejected_calls.discard(event.call_id)
        if not is_rejected or event.error is None or event.outcome:
            return event
        return replace(event, outcome="rejected")

    def _present_call(self, event: "CallT", name: str, call_id: str = "") -> "CallT":
        """Add the display fields to an event with arguments. The arguments become those of the open call `call_id`."""
        args = event.args
        if event.truncated and isinstance(args, str):
            args = _fields_in(args)
        if not (event.summary or event.language):
            code, summary = code_in(name, event.args, self._python_tools), summarize(args)
            if code is not None:
                event = replace(event, summary=summary, language=code.language, code_key=code.key)
            elif summary:
                event = replace(event, summary=summary)
        if call_id in self._calls:
            self._calls[call_id].task = task_in(args) or event.summary
        return event


class _OpenCall:
    """An open call: the name of its tool, and the task that its arguments describe, if it starts a sub-agent."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.task = ""


Call = ToolStarted | ToolReady | ApprovalRequested | ApprovalResolved
CallT = TypeVar("CallT", ToolStarted, ToolReady, ApprovalRequested, ApprovalResolved)
Ending = ToolFinished | StepFinished | AgentFinished
_TYPES = frozenset({RunStarted, AgentStarted, FinalAnswer, *get_args(Ending), *get_args(Call)})


def _fields_in(preview: str) -> Args:
    """Return the texts in a preview of truncated arguments that describe the call, or the preview if it is a text."""
    if not preview.startswith("{"):
        return preview
    fields: dict[str, str] = {}
    for key, text in StringFieldDecoder(*SUMMARY_KEYS, *TASK_KEYS).feed(preview):
        fields[key] = fields.get(key, "") + text
    return fields


def task_in(args: Args | None) -> str:
    """Return the argument that describes the task of a sub-agent; "" if there is none."""
    if not isinstance(args, dict):
        return ""
    texts = (args.get(key) for key in TASK_KEYS)
    task = next((text for text in texts if isinstance(text, str) and text.strip()), "")
    return task if len(task) <= TASK_CHARS else task[: TASK_CHARS - 1] + "…"


def restore_outcome(event: AnyEvent) -> AnyEvent:
    """Return an event of the log with the outcome `stopped`, if an older version has closed something with it."""
    is_old = isinstance(event, Ending) and not event.outcome and event.error in OLD_CLOSING_TEXTS
    return replace(event, outcome="stopped") if is_old else event


def _with_failure(event: Ending) -> Ending:
    """Return an event with the outcome `failed`, if `restore_outcome` would take its error for that of an old stop."""
    return replace(event, outcome="failed") if not event.outcome and event.error in OLD_CLOSING_TEXTS else event


def summarize(args: Args | None) -> str:
    """Return the argument that describes a tool call best, as one line; "" if there is none."""
    if not args:
        return ""
    if isinstance(args, str):
        return _first_line(args)
    keys = [*(key for key in SUMMARY_KEYS if key in args), *args]
    objects = (to_text(args[key]) for key in args if isinstance(args[key], dict) and args[key])
    texts = chain((_words(args[key]) for key in keys), objects)  # lazy: an object may be large
    return next((line for text in texts if (line := _first_line(text))), "")


def code_in(name: str, args: Args | None, python_tools: frozenset[str]) -> Code | None:
    """Return which argument of a call is code, and its language; None if the call runs no code.

    `args` is None while the arguments are streamed.
    """
    is_python = name in python_tools
    if not isinstance(args, dict):
        return Code("python") if is_python else None
    keys = PYTHON_KEYS if is_python else (CODE_KEY,)
    key = next((key for key in keys if isinstance(args.get(key), str)), None)
    if key is None:
        return Code("python") if is_python else None
    return Code("python" if is_python else _language(name, args), key)


def streamed_code() -> FirstFieldDecoder:
    """Return a decoder of the code of a Python tool, for arguments that are still arriving.

    The first of PYTHON_KEYS that has text is the code, until the arguments are complete and `code_key` names it.
    """
    return FirstFieldDecoder(*PYTHON_KEYS)


def _language(name: str, args: dict[str, Any]) -> str:
    """Return a code's language, as named by the arguments or suggested by the tool's name; "text" if it is unknown."""
    named = args.get("language") or args.get("lang")
    if isinstance(named, str):
        return named.lower()
    return next((language for part, language in LANGUAGE_NAMES.items() if part in name.lower()), "text")


def _words(value: JsonValue) -> str:
    """Return a value as text for a summary: a list's items joined, "" for an object or None."""
    if isinstance(value, list):
        items = cast("list[JsonValue]", value[:SUMMARY_ITEMS])
        is_texts = all(isinstance(item, str) for item in items)
        return (" " if is_texts else ", ").join(filter(None, (_item(item) for item in items)))
    return "" if value is None or isinstance(value, dict) else to_text(value)


def _item(value: JsonValue) -> str:
    return summarize(value) if isinstance(value, dict | str) else to_text(value)


def _first_line(text: str) -> str:
    """Return a text's first line that is not blank, cut to the length of a summary."""
    line = text.strip().split("\n", 1)[0].strip()
    return line if len(line) <= SUMMARY_CHARS else line[: SUMMARY_CHARS - 1] + "…"
