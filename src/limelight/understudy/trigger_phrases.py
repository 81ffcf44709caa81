"""Chooses the tool calls for trigger phrases in the user's message: an error, a slow tool, an approval, two helpers.

Pure. The answer names the phrases that no tool on offer can serve.
"""

import re
from collections.abc import Callable, Iterable

from limelight.understudy.chat_requests import Tool
from limelight.understudy.tool_arguments import (
    CONTENT_FIELDS,
    FAILING_CODE,
    Arguments,
    delegate,
    fill,
    forced_arguments,
    minimal_arguments,
    wait,
)
from limelight.understudy.tool_kinds import PATH_FIELDS, Kind, kind_of
from limelight.understudy.turn_context import TurnContext

MISSING_FILE = "/no/such/file.txt"
SLOW_DESCRIPTION = re.compile(r"\b(slow|slowly|sleeps?|waits?|takes (?:a while|long|time|seconds)|pauses?)\b", re.I)
APPROVAL_DESCRIPTION = re.compile(r"approv|confirm|permission|dangerous", re.IGNORECASE)
WRITE_ORDER = ("write", "create", "save", "send", "exec", "shell", "run", "delete", "remove", "edit")
"""Words in the names of writing tools, in the order in which such tools are tried for an approval."""
Calls = list[tuple[str, Arguments]]


def triggered_calls(context: TurnContext) -> Calls | None:
    """Return the calls for the trigger phrases in the user's message; None if no phrase leads to calls."""
    triggers = [trigger for phrase, trigger in TRIGGERS.items() if context.has_phrase(phrase)]
    return [call for trigger in triggers for call in trigger(context)] if triggers else None


def unserved_phrases(context: TurnContext, served: Iterable[str] = ()) -> list[str]:
    """Return the trigger phrases in the user's message that no offered tool can serve, except those in `served`."""
    phrases = [phrase for phrase in TRIGGERS if context.has_phrase(phrase) and phrase not in served]
    return [phrase for phrase in phrases if not TRIGGERS[phrase](context)]


def _of_kind(context: TurnContext, *kinds: Kind) -> list[Tool]:
    return [tool for tool in context.tools if kind_of(tool) in kinds]


def _has_field(tool: Tool, names: Iterable[str]) -> bool:
    return not tool.properties.keys().isdisjoint(names)


def _error(context: TurnContext) -> Calls:
    """Return a call that fails: of a missing file, failing code, a division by zero, or with invalid arguments."""
    for tool in _of_kind(context, "read"):
        texts = [name for name, schema in tool.properties.items() if schema.get("type") == "string"]
        if "url" not in tool.properties:
            return [(tool.name, minimal_arguments(tool, context) | dict.fromkeys(texts[:1], MISSING_FILE))]
    for tool in _of_kind(context, "code"):
        return [(tool.name, fill(tool, context, {"code": FAILING_CODE}))]
    for tool in _of_kind(context, "calculate"):
        if "divide" in tool.name:
            return [(tool.name, fill(tool, context, dict.fromkeys(tool.properties, 0)))]
    careful = [tool for tool in context.tools if tool.required and kind_of(tool) != "final"]
    careful.sort(key=lambda tool: kind_of(tool) in ("delegate", "plan", "write"))
    return [(tool.name, {"no_such_argument": True}) for tool in careful[:1]]


def _slow(context: TurnContext) -> Calls:
    """Return a call that takes seconds: of a tool that waits, or of code or a command that sleeps."""
    described = [tool for tool in context.tools if SLOW_DESCRIPTION.search(tool.description)]
    commands = [tool for tool in context.tools if "command" in tool.properties]
    tools = (*_of_kind(context, "wait"), *described, *_of_kind(context, "code"), *commands)
    return [(tool.name, wait(tool, context)) for tool in tools if kind_of(tool) != "final"][:1]


def _approval(context: TurnContext) -> Calls:
    """Return calls that lead to an approval request: of a tool that needs approval, or that writes or runs code.

    Before a tool that deletes, another tool writes the file to delete.
    """
    changing = sorted(_of_kind(context, "write"), key=_write_rank)
    writers = [tool for tool in changing if _has_field(tool, CONTENT_FIELDS) and _has_field(tool, PATH_FIELDS)]
    for tool in (*_approval_tools(context), *changing, *_of_kind(context, "code")):
        call = (tool.name, forced_arguments(tool, context))
        if not writers or writers[0] is tool or not re.search("delete|remove", tool.name.lower()):
            return [call]
        writer = writers[0]
        if context.count_calls(writer):
            return [(writer.name, context.first_arguments(writer)), call]
        return [(writer.name, forced_arguments(writer, context))]
    return []


def _approval_tools(context: TurnContext) -> list[Tool]:
    """Return the tools that need approval, according to their description or the system prompt."""
    sentences = re.split(r"(?<=[.!?])\s|\n", context.request.system)
    rules = " ".join(sentence for sentence in sentences if "approv" in sentence.lower())

    def asks(tool: Tool) -> bool:
        is_in_rules = kind_of(tool) == "write" and re.search(rf"\b{re.escape(tool.name)}\b", rules)
        return bool(APPROVAL_DESCRIPTION.search(tool.description) or is_in_rules)

    return [tool for tool in context.tools if kind_of(tool) != "final" and asks(tool)]


def _write_rank(tool: Tool) -> int:
    return next((at for at, word in enumerate(WRITE_ORDER) if word in tool.name.lower()), len(WRITE_ORDER))


def _two_helpers(context: TurnContext) -> Calls:
    """Return two parallel calls to sub-agents: of two sub-agent tools, or two of one delegating tool."""
    helpers = _of_kind(context, "delegate")
    managed = [tool for tool in helpers if "additional_args" in tool.properties]  # smolagents' managed agents
    pair = managed[:2] if len(managed) > 1 else helpers[:1] * 2
    return [(tool.name, delegate(tool, context, nth)) for nth, tool in enumerate(pair)]


TRIGGERS: dict[str, Callable[[TurnContext], Calls]] = {
    "try an error": _error,
    "a slow tool": _slow,
    "an approval": _approval,
    "two helpers at once": _two_helpers,
}
