"""Finds the answer in the final state of a graph.

This module imports LangChain, so it is imported only when there is a graph.
"""

from collections.abc import Mapping
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from limelight.json_values import fields_of, items_of
from limelight.sources.langgraph.history import messages_of
from limelight.sources.langgraph.schemas import GraphInput
from limelight.sources.langgraph.stream_parts import text_in
from limelight.sources.langgraph.tasks import converted_message, is_message_form

ANSWER_KEYS = ("answer", "output", "result", "response", "final_answer", "report")
"""State keys that may contain the answer of a graph without `messages`, most likely first."""


def answer_in(
    graph: Any, found: GraphInput, state: Any, given: Mapping[str, Any], earlier: Mapping[str, Any]
) -> tuple[Any, str | None]:
    """Return the answer in a graph's final state, and the id of the message that contains the answer.

    `given` is the input of the turn, and `earlier` are values of earlier turns that count only if nothing else does.
    The id is None if the answer is not a message. Both are None if there is no answer.
    """
    values = fields_of(state)
    if values.get("structured_response") is not None:
        return values["structured_response"], None
    if message := _last_message(state):
        return _message_answer(message, given)
    if not values or found.is_function:
        return (None if state == {} else state), None
    output = _output(graph, values, given, earlier)
    return _message_answer(output, given) if isinstance(output, AIMessage) else (output, None)


def changed_values(before: Any, state: Any) -> Any:
    """Return the values of a state that a turn has changed. A state that is not a dict is returned unchanged."""
    known, values = fields_of(before), fields_of(state)
    if not known or not values:
        return state
    return {key: value for key, value in values.items() if not _is_same(known.get(key), value)}


def _is_same(before: Any, value: Any) -> bool:
    try:
        return bool(before == value)
    except Exception:  # arrays, and other values that cannot be compared
        return before is value


def _last_message(state: Any) -> BaseMessage | None:
    """Return the last message in a graph's state as an object, although it may be a dict or a pair; None if none."""
    last = next(reversed(items_of(state) or items_of(fields_of(state).get("messages"))), None)
    if is_message_form(last):
        return converted_message(last)
    messages = messages_of(state)
    return messages[-1] if messages else None


def _message_answer(last: BaseMessage, given: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Return the answer in the last message, and its id if it is a model's text.

    It may also be a tool's result that ended the graph, or the report of a worker, which supervisors often get as a
    human message. The question itself is no answer, and neither is a model's message that has only calls.
    """
    text = text_in(last.content)
    if isinstance(last, AIMessage):
        return (text, last.id) if text or not last.tool_calls else (None, None)
    is_report = isinstance(last, HumanMessage) and text not in _questions(given)
    return (text, None) if is_report or isinstance(last, ToolMessage) else (None, None)


def _questions(given: Mapping[str, Any]) -> list[str]:
    """Return the texts of the messages in the input of a turn."""
    messages = given.get("messages")
    if isinstance(messages, str):
        return [messages]
    return [
        text_in(getattr(message, "content", None) or fields_of(message).get("content"))
        for message in items_of(messages)
    ]


def _output(graph: Any, values: dict[str, Any], given: Mapping[str, Any], earlier: Mapping[str, Any]) -> Any:
    """Return the graph's output: a text or a model's message under one of ANSWER_KEYS, the only one, or all values.

    Values that are still those of the input are not output, except if the graph has no others.
    """
    channels = graph.output_channels
    wanted = [channels] if isinstance(channels, str) else list(channels)
    outputs = {
        key: values[key]
        for key in wanted
        if values.get(key) is not None and not (key in given and _is_same(given[key], values[key]))
    }
    changed = {key: value for key, value in outputs.items() if not (key in earlier and _is_same(earlier[key], value))}
    outputs = changed or outputs
    texts = {key: value for key, value in outputs.items() if _is_text(value)}
    named = next((texts[key] for key in ANSWER_KEYS if key in texts), None)
    if named is not None:
        return named
    return next(iter(texts.values())) if len(outputs) == len(texts) == 1 else outputs or None


def _is_text(value: Any) -> bool:
    """Whether a value of a state is a text, or a model's message that says one."""
    return isinstance(value, str) or (isinstance(value, AIMessage) and not value.tool_calls)
