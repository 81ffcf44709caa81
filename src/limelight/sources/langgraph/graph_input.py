"""A question in the form that a graph takes: as messages, as one text among its keys, or as a plain text.

Knows LangChain, so it is loaded only once there is a graph.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast, get_origin, get_type_hints
from uuid import uuid4

from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage

from limelight.errors import AgentFailed
from limelight.messages import Message
from limelight.sources.langgraph.history import INSTRUCTIONS

TEXT_KEYS = ("input", "question", "query", "task", "prompt", "topic", "text", "message")
"""Under which keys a graph without `messages` takes its question, the likeliest first."""


def graph_input(graph: Any, question: Message, before: Sequence[AnyMessage], instructions: str) -> Any:
    """The input of this turn."""
    told = [SystemMessage(instructions, id=f"{INSTRUCTIONS}{uuid4().hex}")] if instructions else []
    messages = [*before, *told, HumanMessage(question.get("content") or "")]
    text = "\n\n".join(filter(None, (instructions, question.text)))
    keys = input_keys(graph)
    if not keys:
        return _function_input(graph, messages, text)
    return {"messages": messages} if "messages" in keys else {text_key(keys): text}


def _function_input(graph: Any, messages: list[Any], text: str) -> Any:
    """For a function with `@entrypoint`: in the type of its first parameter, and as text if it says none."""
    kind = _parameter(graph)
    if not isinstance(kind, type) or issubclass(kind, str):
        return text
    if kind is Sequence or issubclass(kind, list | tuple):
        return messages
    if keys := get_type_hints(cast("type[Any]", kind)):
        return kind(**({"messages": messages} if "messages" in keys else {text_key(keys): text}))
    return {"messages": messages} if issubclass(kind, Mapping) else text


def _parameter(graph: Any) -> object:
    channel = graph.channels.get(graph.input_channels) if isinstance(graph.input_channels, str) else None
    kind = getattr(channel, "typ", None)
    if not isinstance(kind, str):
        return get_origin(kind) or kind
    name = kind.partition("[")[0].rpartition(".")[2]  # written as text: what it begins with says enough
    return {"list": list, "List": list, "Sequence": list, "dict": dict, "Dict": dict}.get(name)


def remembers(graph: Any) -> bool:
    """Whether what is kept of a conversation reaches its next turn. A function has to ask for it, by `previous`."""
    if input_keys(graph):
        return _reducer(graph) != "LastValue"
    nodes = getattr(graph, "nodes", {}).values()
    return any("previous" in (getattr(node.bound, "func_accepts", None) or ()) for node in nodes)


def removes(graph: Any) -> bool:
    """Whether messages can be taken out of what is kept: only LangGraph's own reducers know how."""
    channel = graph.channels.get("messages")
    reducer = getattr(channel, "reducer", None) or getattr(channel, "operator", None)
    return str(getattr(reducer, "__module__", "")).partition(".")[0] in ("langgraph", "deepagents")


def _reducer(graph: Any) -> str:
    return type(graph.channels.get("messages")).__name__


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
            f"this graph takes {', '.join(keys) or 'nothing'}: Limelight needs a key `messages`, or a text under one "
            f"of {', '.join(TEXT_KEYS)}; an async function can translate (see docs/your-own-agent.md)"
        )
    return key
