"""Converts a history to LangChain messages for a new conversation, and repairs the messages in a saved state.

This module imports LangChain, so it is imported only when there is a graph.
"""

from collections.abc import Sequence
from itertools import takewhile
from typing import Any
from uuid import uuid4

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, RemoveMessage, ToolMessage, convert_to_messages

from limelight.json_values import fields_of, items_of
from limelight.messages import Message
from limelight.sources.history import CUT_OFF, normalized

INSTRUCTIONS = "limelight-instructions-"
"""Id prefix of the system messages that carry the instructions of one turn and are removed in the next."""


def langchain_messages(history: Sequence[Message]) -> list[AnyMessage]:
    """Convert a history to LangChain messages."""
    messages: list[Any] = convert_to_messages([_plain(message) for message in normalized(history)])
    for message in messages:
        message.id = uuid4().hex
    return messages


def _plain(message: Message) -> dict[str, Any]:
    """Return a message as a dict with only the fields that LangChain accepts."""
    fields = {key: message[key] for key in ("role", "tool_calls", "tool_call_id") if key in message}
    if isinstance(message.get("name"), str):
        fields["name"] = message["name"]
    if message.get("status") == "error":
        fields["status"] = "error"
    return {**fields, "content": message.get("content") or ""}


def repair_messages(state: Any, can_remove: bool = True) -> list[AnyMessage]:
    """Return the messages to add to a saved state so that models accept it in the next turn.

    They are results for calls that were cut off at the end of the state, and removals of an earlier turn's
    instructions.
    """
    messages = messages_of(state.values)
    instructions = [m for m in messages if can_remove and str(m.id).startswith(INSTRUCTIONS)]
    removals: list[Any] = [RemoveMessage(id=message.id) for message in instructions]
    last = next((at for at in reversed(range(len(messages))) if not isinstance(messages[at], ToolMessage)), None)
    if last is None or not isinstance(messages[last], AIMessage):
        return removals
    return [*removals, *(_cut_off(call) for call in _unanswered(messages[last], messages[last + 1 :]))]


def _unanswered(message: AIMessage, after: Sequence[AnyMessage]) -> list[Any]:
    """Return the tool calls of a message that have no result directly after the message."""
    results = takewhile(lambda m: isinstance(m, ToolMessage), after)
    answered = {result.tool_call_id for result in results if isinstance(result, ToolMessage)}
    return [call for call in message.tool_calls if call["id"] not in answered]


def _cut_off(call: Any) -> ToolMessage:
    return ToolMessage(CUT_OFF, id=uuid4().hex, name=call["name"], tool_call_id=call["id"], status="error")


def messages_of(values: Any) -> list[Any]:
    """Return the messages in a graph's state, which may itself be a message or a list of messages."""
    listed = [values] if isinstance(values, BaseMessage) else items_of(values)
    found = listed or items_of(fields_of(values).get("messages"))
    return [message for message in found if isinstance(message, BaseMessage)]


def is_new(state: Any) -> bool:
    """Whether the checkpointer has no saved state for the conversation yet."""
    return state.created_at is None and not state.values
