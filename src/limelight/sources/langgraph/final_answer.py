"""Finds the answer in the final state of a graph.

This module imports LangChain, so it is imported only when there is a graph.
"""

from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from limelight.sources.langgraph.graph_input import input_keys, text_key
from limelight.sources.langgraph.history import messages_of
from limelight.sources.langgraph.stream_parts import text_in
from limelight.sources.tool_results import fields_of

ANSWER_KEYS = ("answer", "output", "result", "response", "final_answer", "report")
"""State keys that may contain the answer of a graph without `messages`, most likely first."""


def answer_in(graph: Any, state: Any) -> tuple[Any, str | None]:
    """Return the answer in a state, and the id of the message that contains the answer.

    The id is None if the answer is not a message. Both are None if there is no answer.
    """
    values = fields_of(state)
    if values.get("structured_response") is not None:
        return values["structured_response"], None
    if messages := messages_of(state):
        return _message_answer(messages[-1])
    if not values or not input_keys(graph):
        return (None if state == {} else state), None
    return _output(graph, values), None


def changed_values(before: Any, state: Any) -> Any:
    """Return the items of a state that a turn has changed. Return a state without keys unchanged."""
    known, values = fields_of(before), fields_of(state)
    if not known or not values:
        return state
    return {key: value for key, value in values.items() if not _is_same(known.get(key), value)}


def _is_same(before: Any, value: Any) -> bool:
    try:
        return bool(before == value)
    except Exception:  # arrays, and other values that cannot be compared
        return before is value


def _message_answer(last: BaseMessage) -> tuple[str | None, str | None]:
    """Return the answer in the last message, and its id: a model's text, or the result of a tool that ended the graph.

    The id is None for the result of a tool.
    """
    if isinstance(last, AIMessage) and not last.tool_calls:
        return text_in(last.content), last.id
    return (text_in(last.content), None) if isinstance(last, ToolMessage) else (None, None)


def _output(graph: Any, values: dict[str, Any]) -> Any:
    """Return the graph's output without the question: a text under one of ANSWER_KEYS, the only text, or all values."""
    channels = graph.output_channels
    question_key = text_key(input_keys(graph))
    wanted = [channels] if isinstance(channels, str) else list(channels)
    outputs = {key: values[key] for key in wanted if values.get(key) is not None and key != question_key}
    named = next((outputs[key] for key in ANSWER_KEYS if isinstance(outputs.get(key), str)), None)
    if named is not None:
        return named
    texts = [value for value in outputs.values() if isinstance(value, str)]
    return texts[0] if len(outputs) == len(texts) == 1 else outputs or None
