"""Calls that Agno refused without an event: of tools that there are not, and with arguments that are no JSON. Pure.

They are found in the messages that Agno keeps of a run, so they are known only when it has ended.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from limelight.sources.values import args_value, safe_text


class Refused(NamedTuple):
    raw_id: str
    name: str
    args: dict[str, Any] | str
    error: str


def refused_calls(output: Any, known: set[str]) -> Iterator[Refused]:
    """The calls of this run that have an answer, but are not known."""
    messages = [m for m in getattr(output, "messages", None) or () if not getattr(m, "from_history", False)]
    replies = {m.tool_call_id: safe_text(m.content or "") for m in messages if m.role == "tool"}
    for message in messages:
        for call in message.tool_calls or ():
            raw_id = str(call.get("id") or "")
            if raw_id in known or raw_id not in replies:
                continue
            function: dict[str, Any] = call.get("function") or {}
            error = replies[raw_id].removeprefix("Error: ")
            yield Refused(raw_id, str(function.get("name") or ""), _parsed(function.get("arguments")), error)


def _parsed(arguments: Any) -> dict[str, Any] | str:
    """Arguments as the model sent them: an object if they are one, else the text."""
    if not isinstance(arguments, str):
        return args_value(arguments)
    try:
        return msgspec.json.decode(arguments, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return arguments
