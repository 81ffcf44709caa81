"""The answer that a graph has left in its state.

Knows LangChain, so it is loaded only once there is a graph.
"""

from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from limelight.sources.langgraph.graph_input import input_keys, text_key
from limelight.sources.langgraph.history import messages_of
from limelight.sources.langgraph.stream_parts import text_in
from limelight.sources.values import fields_of

ANSWER_KEYS = ("answer", "output", "result", "response", "final_answer", "report")
"""Under which keys a graph without `messages` leaves its answer, the likeliest first."""


def answer_in(graph: Any, state: Any) -> tuple[Any, str | None]:
    """The answer, and the id of the message that it is, if it is one. None: the graph has left none."""
    values = fields_of(state)
    if values.get("structured_response") is not None:
        return values["structured_response"], None
    if messages := messages_of(state):
        return _said(messages[-1])
    if not values or not input_keys(graph):
        return (None if state == {} else state), None
    return _output(graph, values), None


def changed(before: Any, state: Any) -> Any:
    """What a turn has written of a state with keys; any other state as it is."""
    known, values = fields_of(before), fields_of(state)
    if not known or not values:
        return state
    return {key: value for key, value in values.items() if not _is_same(known.get(key), value)}


def _is_same(before: Any, value: Any) -> bool:
    try:
        return bool(before == value)
    except Exception:  # arrays, and whatever else does not want to be compared
        return before is value


def _said(last: BaseMessage) -> tuple[str | None, str | None]:
    """What the last message answers. The result of a tool does, if the graph has ended with it."""
    if isinstance(last, AIMessage) and not last.tool_calls:
        return text_in(last.content), last.id
    return (text_in(last.content), None) if isinstance(last, ToolMessage) else (None, None)


def _output(graph: Any, values: dict[str, Any]) -> Any:
    """What the graph puts out beside what was put in; a single text, or one that is called so, is the answer."""
    channels = graph.output_channels
    asked = text_key(input_keys(graph))
    wanted = [channels] if isinstance(channels, str) else list(channels)
    outputs = {key: values[key] for key in wanted if values.get(key) is not None and key != asked}
    named = next((outputs[key] for key in ANSWER_KEYS if isinstance(outputs.get(key), str)), None)
    if named is not None:
        return named
    texts = [value for value in outputs.values() if isinstance(value, str)]
    return texts[0] if len(outputs) == len(texts) == 1 else outputs or None
