"""The past of a conversation as a graph keeps it: LangChain's messages, given to it or repaired.

Knows LangChain, so it is loaded only once there is a graph.
"""

from collections.abc import Sequence
from itertools import takewhile
from typing import Any
from uuid import uuid4

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    RemoveMessage,
    ToolMessage,
    convert_to_messages,
)

from limelight.messages import Message
from limelight.sources.history import put_right
from limelight.sources.values import fields_of, items_of

CUT_OFF = "This call was cut off before it returned."
INSTRUCTIONS = "limelight-instructions-"
"""How the ids of messages begin that are for one turn only."""


def messages_from(history: Sequence[Message]) -> list[AnyMessage]:
    """A past in OpenAI's form as LangChain's messages. Calls that nobody answered get an answer."""
    made: list[Any] = convert_to_messages([_plain(message) for message in put_right(history)])
    for message in made:
        message.id = uuid4().hex
    return with_answers(made)


def _plain(message: Message) -> dict[str, Any]:
    fields = {key: message[key] for key in ("role", "tool_calls", "tool_call_id") if key in message}
    if isinstance(message.get("name"), str):
        fields["name"] = message["name"]
    return {**fields, "content": message.get("content") or ""}


def with_answers(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """The messages, with a result behind every call that has none: models refuse a past with open calls."""
    whole: list[AnyMessage] = []
    for at, message in enumerate(messages):
        whole.append(message)
        if isinstance(message, AIMessage):
            whole += [_cut_off(call) for call in _unanswered(message, messages[at + 1 :])]
    return whole


def _unanswered(message: AIMessage, after: Sequence[AnyMessage]) -> list[Any]:
    """The calls of a message that none of the results right behind it answers."""
    results = takewhile(lambda m: isinstance(m, ToolMessage), after)
    answered = {result.tool_call_id for result in results if isinstance(result, ToolMessage)}
    return [call for call in message.tool_calls if call["id"] not in answered]


def _cut_off(call: Any) -> ToolMessage:
    return ToolMessage(CUT_OFF, id=uuid4().hex, name=call["name"], tool_call_id=call["id"], status="error")


def repairs(state: Any, removes: bool = True) -> list[AnyMessage]:
    """What the next input has to bring along so that it is accepted: results of calls that were cut off at the end,
    and the removal of instructions that were for another turn."""
    kept = messages_of(state.values)
    gone: list[Any] = [RemoveMessage(id=m.id) for m in kept if removes and str(m.id).startswith(INSTRUCTIONS)]
    last = next((at for at in reversed(range(len(kept))) if not isinstance(kept[at], ToolMessage)), None)
    if last is None or not isinstance(kept[last], AIMessage):
        return gone
    return [*gone, *(_cut_off(call) for call in _unanswered(kept[last], kept[last + 1 :]))]


def messages_of(values: Any) -> list[Any]:
    """The messages in a state, which may consist of nothing else; none if it has no such thing."""
    listed = [values] if isinstance(values, BaseMessage) else items_of(values)
    kept = listed or items_of(fields_of(values).get("messages"))
    return [message for message in kept if isinstance(message, BaseMessage)]


def is_new(state: Any) -> bool:
    """Nothing was kept under this key yet."""
    return state.created_at is None and not state.values
