"""Builds the input, config and context of a graph for one turn.

The question is passed as messages, as text under one key, or as a plain value, depending on the graph. The ids of the
run and of the user are in the config under `configurable`, and in the context if its schema has fields with these
names. This module imports LangChain, so it is imported only when there is a graph.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast, get_origin, get_type_hints
from uuid import uuid4

from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage

from limelight.errors import AgentFailed
from limelight.messages import Message
from limelight.sources.base import Context, Turn
from limelight.sources.langgraph.history import INSTRUCTIONS

TEXT_KEYS = ("input", "question", "query", "task", "prompt", "topic", "text", "message")
"""Input keys that may take the question in a graph without `messages`, most likely first."""


def graph_input(graph: Any, question: Message, before: Sequence[AnyMessage], instructions: str) -> Any:
    """Return the input of a turn in the form that the graph accepts: messages `before`, instructions and question."""
    system = [SystemMessage(instructions, id=f"{INSTRUCTIONS}{uuid4().hex}")] if instructions else []
    messages = [*before, *system, HumanMessage(question.get("content") or "")]
    text = "\n\n".join(filter(None, (instructions, question.text)))
    keys = input_keys(graph)
    if not keys:
        return _function_input(graph, messages, text)
    return {"messages": messages} if "messages" in keys else {text_key(keys): text}


def _function_input(graph: Any, messages: list[Any], text: str) -> Any:
    """Return the input of an `@entrypoint` function in the type of its first parameter; text if that has no type."""
    kind = _parameter_type(graph)
    if not isinstance(kind, type) or issubclass(kind, str):
        return text
    if kind is Sequence or issubclass(kind, list | tuple):
        return messages
    if keys := get_type_hints(cast("type[Any]", kind)):
        return kind(**({"messages": messages} if "messages" in keys else {text_key(keys): text}))
    return {"messages": messages} if issubclass(kind, Mapping) else text


def _parameter_type(graph: Any) -> object:
    channel = graph.channels.get(graph.input_channels) if isinstance(graph.input_channels, str) else None
    kind = getattr(channel, "typ", None)
    if not isinstance(kind, str):
        return get_origin(kind) or kind
    name = kind.partition("[")[0].rpartition(".")[2]  # a string annotation: the name of the outer type is enough
    return {"list": list, "List": list, "Sequence": list, "dict": dict, "Dict": dict}.get(name)


def uses_state(graph: Any) -> bool:
    """Whether the graph reads the saved state of a conversation in the next turn. A function reads it as `previous`."""
    if input_keys(graph):
        return type(graph.channels.get("messages")).__name__ != "LastValue"
    nodes = getattr(graph, "nodes", {}).values()
    return any("previous" in (getattr(node.bound, "func_accepts", None) or ()) for node in nodes)


def can_remove_messages(graph: Any) -> bool:
    """Whether messages can be removed from the graph's state. Only reducers of LangGraph and deepagents allow it."""
    channel = graph.channels.get("messages")
    reducer = getattr(channel, "reducer", None) or getattr(channel, "operator", None)
    return str(getattr(reducer, "__module__", "")).partition(".")[0] in ("langgraph", "deepagents")


def input_keys(graph: Any) -> dict[str, Any]:
    """Return the keys of a graph's input with their types; an empty dict for a graph that takes a plain value."""
    builder = getattr(graph, "builder", None)
    return {} if builder is None else get_type_hints(builder.input_schema)


def text_key(keys: dict[str, Any]) -> str:
    """Return the input key for the question in a graph without `messages`. Raises AgentFailed if there is none."""
    texts = [key for key, kind in keys.items() if kind in (str, str | None)]
    key = next((key for key in TEXT_KEYS if key in texts), texts[0] if len(texts) == 1 else None)
    if key is None:
        raise AgentFailed(
            f"this graph takes {', '.join(keys) or 'nothing'}: Limelight needs a key `messages`, or a text under one "
            f"of {', '.join(TEXT_KEYS)}; an async function can translate (see docs/your-own-agent.md)"
        )
    return key


def graph_config(turn: Turn) -> dict[str, Any]:
    """Return the config of a turn, with the ids of the thread, the session, the run and the user."""
    return {"configurable": {"thread_id": turn.memory_key, **_run_fields(turn.context)}}


def graph_context(schema: Any, context: Context) -> dict[str, str] | None:
    """Return the context for a graph with a context schema, else None. Fields that are not set here need defaults."""
    if not isinstance(schema, type):
        return None
    fields = get_type_hints(schema)
    return {name: value for name, value in _run_fields(context).items() if name in fields}


def _run_fields(context: Context) -> dict[str, str]:
    return {
        "session_id": context.session_id,
        "run_id": context.run_id,
        "user_id": context.user.user_id,
        "user_name": context.user.name,
    }
