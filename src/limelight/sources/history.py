"""Repairs a message history from a client or from the log, so that every framework accepts it. Pure.

A history may contain calls without an id, arguments that are not an object, and results without a call. Frameworks
raise errors for these, and the conversation could not continue. Models require each result directly after the message
with its call: any other result is dropped, and a call without a result gets an error as its result.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from limelight.grammar import parse_args
from limelight.json_values import fields_of, items_of, json_text
from limelight.messages import Message

CUT_OFF = "This call was cut off before it had a result."
"""Text of the result that is added for a tool call without a result."""


def normalized(history: Sequence[Message]) -> list[Message]:
    """Return a history in which every tool call has an id, a name, an object as arguments, and a result."""
    messages: list[Message] = []
    open_calls: list[dict[str, Any]] = []
    """The calls without a result so far, among those of the last message that is not a result."""
    position = 0
    """The index in `messages` at which results for the open calls are inserted."""
    generated: list[str] = []
    """Ids that were generated for calls without one. Results without a call id are assigned to these calls in order."""
    for number, message in enumerate(history):
        if message.role == "tool":
            call_id = message.get("tool_call_id") or next(iter(generated), "")
            call = next((call for call in open_calls if call["id"] == call_id), None)
            if call is not None:
                open_calls.remove(call)
                generated = [other for other in generated if other != call_id]
                messages.append(Message({**message, "tool_call_id": call_id}))
            continue
        messages[position:position] = map(_cut_off, open_calls)
        calls = list(_calls(message, number))
        generated = [call["id"] for call, has_id in calls if not has_id]
        open_calls = [call for call, _ in calls]
        messages.append(_with_calls(message, [*open_calls]))
        position = len(messages)
    messages[position:position] = map(_cut_off, open_calls)
    return messages


def _cut_off(call: dict[str, Any]) -> Message:
    name = call["function"]["name"]
    return Message(role="tool", tool_call_id=call["id"], name=name, content=CUT_OFF, status="error")


def _with_calls(message: Message, calls: list[dict[str, Any]]) -> Message:
    rest = {key: value for key, value in message.items() if key != "tool_calls"}
    return Message(rest | ({"tool_calls": calls} if calls else {}))


def _calls(message: Message, number: int) -> Iterator[tuple[dict[str, Any], bool]]:
    """Yield the tool calls of a message, each with whether it had an id. Skip items that are not calls."""
    for at, sent in enumerate(items_of(message.get("tool_calls")), 1):
        function = fields_of(fields_of(sent).get("function"))
        if not function:
            continue
        call_id = sent.get("id")
        has_id = isinstance(call_id, str) and bool(call_id)
        call = {
            "id": call_id if has_id else f"call_{number}_{at}",
            "type": "function",
            "function": {
                "name": str(function.get("name") or "unknown"),
                "arguments": _arguments(function.get("arguments")),
            },
        }
        yield call, has_id


def _arguments(arguments: Any) -> str:
    """Return the arguments of a tool call as JSON text; "{}" if they are not an object."""
    if not isinstance(arguments, str):
        return json_text(fields_of(arguments))
    return arguments if isinstance(parse_args(arguments), dict) else "{}"
