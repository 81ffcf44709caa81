"""The answer that a graph has left in its state.

Knows LangChain, so it is loaded only once there is a graph.
"""

from typing import Any

from langchain_core.messages import AIMessage

from limelight.sources.langgraph.inputs import input_keys, text_key
from limelight.sources.langgraph.parts import text_in
from limelight.sources.langgraph.past import messages_of
from limelight.sources.values import fields_of


def answer_in(graph: Any, state: Any) -> tuple[Any, str | None]:
    """The answer, and the id of the message that it is, if it is one."""
    values = fields_of(state.values)
    if not values:
        return (state.values or None), None
    if values.get("structured_response") is not None:
        return values["structured_response"], None
    messages = messages_of(state)
    if messages:
        last = messages[-1]
        is_answer = isinstance(last, AIMessage) and not last.tool_calls
        return (text_in(last.content), last.id) if is_answer else (None, None)
    return _output(graph, values), None


def _output(graph: Any, values: dict[str, Any]) -> Any:
    """What the graph puts out beside what was put in; a single text is just that."""
    channels = graph.output_channels
    asked = text_key(input_keys(graph))
    wanted = [channels] if isinstance(channels, str) else list(channels)
    outputs = {key: values[key] for key in wanted if values.get(key) is not None and key != asked}
    texts = [value for value in outputs.values() if isinstance(value, str)]
    return texts[0] if len(outputs) == len(texts) == 1 else outputs or None
