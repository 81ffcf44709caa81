"""A past that a client or the log tells, in the one form that every framework takes. Pure.

Anything may be in it: calls without an id, arguments that are no object, results of calls that nobody made. Frameworks
raise on such things, and a conversation whose past is refused is over; so it is put right before they see it. A result
stays only right behind the message with its call, which is the order that models insist on.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from limelight.messages import Message
from limelight.sources.values import fields_of, items_of, json_value


def put_right(history: Sequence[Message]) -> list[Message]:
    """The messages, every call with an id, a name and an object as arguments, and every result with a call."""
    made: list[Message] = []
    waiting: list[str] = []
    nameless: list[str] = []
    """Ids that were made up, for results that name no call either."""
    for number, message in enumerate(history):
        if message.role == "tool":
            call_id = message.get("tool_call_id") or next(iter(nameless), "")
            if call_id in waiting:
                waiting.remove(call_id)
                nameless = [one for one in nameless if one != call_id]
                made.append(Message({**message, "tool_call_id": call_id}))
            continue
        calls = list(_calls(message, number))
        nameless = [call["id"] for call, is_named in calls if not is_named]
        waiting = [call["id"] for call, _ in calls]
        made.append(_with_calls(message, [call for call, _ in calls]))
    return made


def _with_calls(message: Message, calls: list[dict[str, Any]]) -> Message:
    rest = {key: value for key, value in message.items() if key != "tool_calls"}
    return Message(rest | ({"tool_calls": calls} if calls else {}))


def _calls(message: Message, number: int) -> Iterator[tuple[dict[str, Any], bool]]:
    """The calls of a message, each with whether it had an id. What is no call is left out."""
    for at, sent in enumerate(items_of(message.get("tool_calls")), 1):
        function = fields_of(fields_of(sent).get("function"))
        if not function:
            continue
        call_id = sent.get("id")
        is_named = isinstance(call_id, str) and bool(call_id)
        name = str(function.get("name") or "unknown")
        arguments = _arguments(function.get("arguments"))
        call = {
            "id": call_id if is_named else f"call_{number}_{at}",
            "type": "function",
            "function": {"name": name, "arguments": arguments},
        }
        yield call, is_named


def _arguments(sent: Any) -> str:
    """The JSON of the arguments, as it was sent if it is an object's; else that of none."""
    if not isinstance(sent, str):
        return msgspec.json.encode(json_value(fields_of(sent))).decode()
    try:
        return sent if isinstance(msgspec.json.decode(sent), dict) else "{}"
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return "{}"
