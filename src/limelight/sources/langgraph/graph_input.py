"""Builds the input, config and context of a graph for one turn.

The question is passed as messages, as text under one key, or as a plain value, depending on the graph. Values of an
input object go to the keys of their names. The ids of the run and of the user are in the config under `configurable`,
and in the context if its schema has fields with these names. This module imports LangChain, so it is imported only when
there is a graph.
"""

from collections.abc import Mapping, Sequence
from typing import Any, get_origin
from uuid import uuid4

from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage, convert_to_messages

from limelight.errors import AgentFailed
from limelight.json_values import items_of, safe_text
from limelight.sources.base import Context, Turn
from limelight.sources.langgraph.history import INSTRUCTIONS
from limelight.sources.langgraph.schemas import MESSAGES, TEXT_KEYS, GraphField, GraphInput, coerce


def graph_input(
    found: GraphInput,
    turn: Turn,
    before: Sequence[AnyMessage],
    *,
    defaults: Mapping[str, Any] | None = None,
    saved: Mapping[str, Any] | None = None,
) -> Any:
    """Return the input of a turn as the graph accepts it: messages `before`, instructions, question and input values.

    `defaults` are values of the settings, and `saved` those of the saved state, which count as given. Raises
    AgentFailed if the graph cannot take the question, or if required values are missing.
    """
    defaults = defaults or {}
    question = None if turn.input_is_question else turn.question
    system = [SystemMessage(turn.instructions, id=f"{INSTRUCTIONS}{uuid4().hex}")] if turn.instructions else []
    asked = [] if question is None else [HumanMessage(question.get("content") or "")]
    text = "\n\n".join(filter(None, (turn.instructions, "" if question is None else question.text)))
    if found.is_function and not (found.fields or turn.input is not None or defaults):
        return _function_input(found.kind, [*before, *system, *asked], text)
    given = turn.input or {}
    key = found.question_key
    values = coerce({**defaults, **given}, found.fields)
    if key == MESSAGES:
        own = _messages(given[MESSAGES]) if MESSAGES in given else asked
        if messages := [*before, *system, *own]:
            values[MESSAGES] = messages
    elif question is not None and key not in given:
        if key:
            values[key] = text
        elif not values:
            raise AgentFailed(_no_key_message(found))
    values |= _required_ids(found, values, turn.context)
    if turn.input is not None or found.is_strict:
        _check_complete(found, {**(saved or {}), **values}, turn.agent)
    return found.kind(**values) if found.is_function and found.fields else values


def _required_ids(found: GraphInput, values: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Return the ids of the run and the user that a graph requires as input, which no request may set."""
    ids = run_fields(context)
    return {key: ids[key] for key in found.required if key in ids and key not in values}


def _check_complete(found: GraphInput, values: Mapping[str, Any], agent: str) -> None:
    missing = [name for name in found.required if name not in values]
    if missing:
        example = ", ".join(f'"{name}": …' for name in missing)
        raise AgentFailed(
            f"this graph needs the input {', '.join(missing)}: send it as `input`, as JSON in the question, as in "
            f"{{{example}}}, or set defaults as `input` in its table {_table(agent)} of config.toml"
        )


def _no_key_message(found: GraphInput) -> str:
    keys = ", ".join(found.fields)
    example = ", ".join(f'"{name}": …' for name in list(found.fields)[:3])
    return (
        f"this graph takes {keys or 'nothing'}, and none of these can take a question: a question needs a key "
        f"`messages`, or a text under one of {', '.join(TEXT_KEYS)}. Send the values as `input`, or as JSON in the "
        f"question: {{{example}}} (see docs/frameworks.md)"
    )


def _messages(value: Any) -> list[Any]:
    """Return messages of an input object as LangChain messages. Raises AgentFailed."""
    try:
        return list(convert_to_messages(items_of(value)))
    except Exception as error:
        raise AgentFailed(f"`messages` of the input are not chat messages: {safe_text(error)}") from error


def _function_input(kind: Any, messages: list[Any], text: str) -> Any:
    """Return the input of an `@entrypoint` function in the type of its first parameter; text if that has no type."""
    kind = get_origin(kind) or kind
    if not isinstance(kind, type) or issubclass(kind, str):
        return text
    if kind is Sequence or issubclass(kind, list | tuple):
        return messages
    return {MESSAGES: messages} if issubclass(kind, Mapping) else text


def uses_state(graph: Any, found: GraphInput) -> bool:
    """Whether the graph reads the state that the previous turn saved; a function reads it as `previous`."""
    if not found.is_function:
        return type(graph.channels.get(MESSAGES)).__name__ != "LastValue"
    nodes = getattr(graph, "nodes", {}).values()
    return any("previous" in (getattr(node.bound, "func_accepts", None) or ()) for node in nodes)


def can_remove_messages(graph: Any) -> bool:
    """Whether messages can be removed from the graph's state. Only LangGraph's and deepagents' reducers allow it."""
    channel = graph.channels.get(MESSAGES)
    reducer = getattr(channel, "reducer", None) or getattr(channel, "operator", None)
    return str(getattr(reducer, "__module__", "")).partition(".")[0] in ("langgraph", "deepagents")


def graph_config(turn: Turn, context: Mapping[str, Any]) -> dict[str, Any]:
    """Return LangGraph's config of a turn: context values, and the ids of thread, session, run and user."""
    return {"configurable": {**context, "thread_id": turn.memory_key, **run_fields(turn.context)}}


def graph_context(
    schema: Any, fields: Mapping[str, GraphField], turn: Turn, values: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return the context for a graph with a context schema: context values and ids of the run, else None.

    Raises AgentFailed if values are missing without which LangGraph cannot make the context.
    """
    if not isinstance(schema, type):
        return None
    found = {**values, **run_fields(turn.context)}
    if missing := [name for name, field in fields.items() if field.is_required and name not in found]:
        raise AgentFailed(_missing_context(missing, turn.agent))
    return coerce({name: value for name, value in found.items() if name in fields}, fields)


def _missing_context(names: Sequence[str], agent: str) -> str:
    """Return the error message for context values that a graph needs and that are not set."""
    example = ", ".join(f"{name} = …" for name in names)
    return (
        f"this agent needs the context {', '.join(names)}, which is not set: set `context = {{ {example} }}` in its "
        f"table {_table(agent)} of config.toml, or allow requests to send it with `context_from_request`"
    )


def _table(agent: str) -> str:
    """Return the header of an agent's table in the settings. TOML requires quotes around a name with a point."""
    return f'[agents."{agent}"]' if "." in agent else f"[agents.{agent or 'NAME'}]"


def run_fields(context: Context) -> dict[str, str]:
    """Return the ids of the session, the run and the user, under the keys that graphs get."""
    return {
        "session_id": context.session_id,
        "run_id": context.run_id,
        "user_id": context.user.user_id,
        "user_name": context.user.name,
    }
