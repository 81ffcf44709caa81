"""A question in the form that a graph takes: as messages, as one text among its keys, or as a plain text.

Knows LangChain, so it is loaded only once there is a graph.
"""

from collections.abc import Sequence
from typing import Any, get_type_hints
from uuid import uuid4

from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage

from limelight.errors import AgentFailed
from limelight.messages import Message
from limelight.sources.langgraph.past import INSTRUCTIONS

TEXT_KEYS = ("input", "question", "query", "task", "prompt", "topic", "text", "message")
"""Under which keys a graph without `messages` takes its question, the likeliest first."""


def graph_input(graph: Any, question: Message, before: Sequence[AnyMessage], instructions: str) -> Any:
    """The input of this turn."""
    keys = input_keys(graph)
    takes_list = not keys and _plain_type(graph) == "array"
    if "messages" in keys or takes_list:
        told = [SystemMessage(instructions, id=f"{INSTRUCTIONS}{uuid4().hex}")] if instructions else []
        messages = [*before, *told, HumanMessage(question.get("content") or "")]
        return messages if takes_list else {"messages": messages}
    text = "\n\n".join(filter(None, (instructions, question.text)))
    return {text_key(keys): text} if keys else text


def input_keys(graph: Any) -> dict[str, Any]:
    """The keys of a graph's input with their types; none for a graph that takes a plain value."""
    builder = getattr(graph, "builder", None)
    return {} if builder is None else get_type_hints(builder.input_schema)


def text_key(keys: dict[str, Any]) -> str:
    """The key for the question, in a graph without `messages`."""
    texts = [key for key, kind in keys.items() if kind in (str, str | None)]
    key = next((key for key in TEXT_KEYS if key in texts), texts[0] if len(texts) == 1 else None)
    if key is None:
        raise AgentFailed(
            f"this graph takes {', '.join(keys)}: Limelight needs a key `messages`, or a text under one of "
            f"{', '.join(TEXT_KEYS)}; an async function can translate (see docs/your-own-agent.md)"
        )
    return key


def _plain_type(graph: Any) -> str:
    """What a graph without keys takes, as far as it says: a function with `@entrypoint`, for instance."""
    return str(graph.get_input_jsonschema().get("type") or "")
