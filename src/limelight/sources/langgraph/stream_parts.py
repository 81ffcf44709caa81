"""Reads the items of LangGraph's stream by attribute and key, because the translator must not import LangGraph."""

from functools import lru_cache
from typing import Any, NamedTuple, cast

from limelight.json_values import fields_of, items_of, json_text

MODES = ("messages", "tools", "tasks", "custom")
"""The stream modes requested from LangGraph's `astream`. `DROPS` in the translator explains why others are not."""

HOOKS = (".before_agent", ".before_model", ".after_model", ".after_agent")
"""Suffixes of the names of the nodes that run a LangChain middleware's hooks."""

STRUCTURED = "limelight_structured_output"
"""The key with which `structured_output_marker` marks the metadata of a model run."""

Namespace = tuple[str, ...]
"""Path of a subgraph in LangGraph: for each level the node and its task, such as `tools:1234`. The main graph's is
empty."""

ID_KEYS = ("id", "tool_call_id", "call_id")
ARGUMENT_KEYS = ("args", "arguments", "function")
"""A dict with one of ID_KEYS and one of ARGUMENT_KEYS is a tool call in the input of a graph task."""
MAX_DEPTH = 5
MAX_VALUES = 200
"""Limits of the search for tool calls in the input of a graph task: nesting depth, and values on each level."""


class Part(NamedTuple):
    """One item of a graph's stream: its type, the namespace of the graph that sent it, and its data."""

    type: str
    ns: Namespace
    data: Any


class Written(NamedTuple):
    """What the code of a graph has written to the stream, with the id of the task in which it ran."""

    task_id: str
    data: Any


def part_of(item: Any) -> Part:
    """Convert an item of LangGraph's stream to a Part, which has a type, a namespace and data."""
    ns = item["ns"]
    return Part(item["type"], _namespace(tuple(ns)) if ns else (), item["data"])


@lru_cache(maxsize=256)
def _namespace(ns: Namespace) -> Namespace:
    """Append the number of a task's second graph to the namespace element before it.

    For example, `tools:1234`, `1` becomes `tools:1234:1`.
    """
    steps: list[str] = []
    for step in ns:
        if step.isdigit() and steps:
            steps[-1] += f":{step}"
        else:
            steps.append(step)
    return tuple(steps)


def parent_namespace(checkpoint_ns: str) -> Namespace:
    """Return the namespace of the graph that contains a task: `tools:1234|model:5` -> (`tools:1234`,)."""
    return _namespace(tuple(checkpoint_ns.split("|")[:-1]))


def node_of(step: str) -> str:
    """Return the node's name in an element of a namespace: `tools:1234` -> `tools`."""
    return step.partition(":")[0]


def task_of(step: str) -> str:
    """Return the task id in an element of a namespace: `tools:1234` and `tools:1234:1` -> `1234`."""
    return step.partition(":")[2].partition(":")[0]


def task_in(metadata: dict[str, Any]) -> str:
    """Return the id of the graph task in which a message was made, from the message's metadata."""
    checkpoint_ns = metadata.get("langgraph_checkpoint_ns") or ""
    return task_of(checkpoint_ns.rpartition("|")[2])


def is_internal(metadata: dict[str, Any]) -> bool:
    """Whether a message answers a model call that a middleware makes for itself, such as a summary."""
    return "lc_internal_call" in metadata or "lc_source" in metadata or is_hook(metadata.get("langgraph_node") or "")


def is_model_run(metadata: dict[str, Any]) -> bool:
    """Whether a message was streamed by a model. Otherwise a node has returned it."""
    return "ls_model_type" in metadata or "ls_model_name" in metadata


def is_structured(metadata: dict[str, Any]) -> bool:
    """Whether a message is the reply to `with_structured_output`, which the code of a node reads as data."""
    return STRUCTURED in metadata


def is_hook(node: str) -> bool:
    return node.endswith(HOOKS)


def calls_in(task_input: Any) -> list[dict[str, Any]]:
    """Return the tool calls in the input of a node that runs tools: a list of calls, or one call under `tool_call`."""
    calls = items_of(task_input) or [fields_of(task_input).get("tool_call")]
    return [fields for call in calls if _is_call(fields := fields_of(call))]


def _is_call(fields: dict[str, Any]) -> bool:
    """Whether a dict is a tool call in LangChain's form. An input may also contain other dicts with names and ids."""
    return (
        isinstance(fields.get("id"), str)
        and isinstance(fields.get("name"), str)
        and isinstance(fields.get("args"), dict)
        and fields.get("type", "tool_call") == "tool_call"
    )


def last_call_ids(task_input: Any) -> list[str]:
    """Return the ids of the tool calls in the last message of each list in a graph task's input.

    A node that executes tools takes its calls from there.
    """
    state = fields_of(task_input) or getattr(task_input, "__dict__", {})
    listed = [items for value in (task_input, *state.values()) if (items := items_of(value))]
    last = [items[-1] for items in listed]
    made = [getattr(message, "tool_calls", None) or fields_of(message).get("tool_calls") for message in last]
    return [str(fields_of(call).get("id") or "") for calls in made for call in items_of(calls)]


def call_ids_in(task_input: Any) -> list[str]:
    """Return the ids of single tool calls in a graph task's input, such as that of `Send("worker", {"call": call})`.

    The search is recursive, within limits. It skips messages, because a state may contain a long conversation.
    """
    found: list[str] = []
    level: list[Any] = [items_of(task_input) or fields_of(task_input) or getattr(task_input, "__dict__", None)]
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for value in level:
            if call_id := _call_id(fields_of(value)):
                found.append(call_id)
            elif len(below) < MAX_VALUES and not _is_message(fields_of(value)):
                below += (items_of(value) or [*fields_of(value).values()])[:MAX_VALUES]
        level = below[:MAX_VALUES]
    return list(dict.fromkeys(found))


def _call_id(fields: dict[str, Any]) -> str:
    """Return the id of a dict that is a tool call in the form of LangChain, OpenAI or similar; else ""."""
    if not any(key in fields for key in ARGUMENT_KEYS):
        return ""
    return next((value for key in ID_KEYS if isinstance(value := fields.get(key), str) and value), "")


def _is_message(fields: dict[str, Any]) -> bool:
    return "lc" in fields or ("content" in fields and ("role" in fields or "type" in fields))


def messages_in(output: Any) -> list[Any]:
    """Return the messages in a tool's return value: a message, a Command with messages, or a list of these."""
    if several := items_of(output):
        return [message for one in several for message in messages_in(one)]
    if hasattr(output, "tool_call_id"):
        return [output]
    return items_of(fields_of(getattr(output, "update", None)).get("messages"))


def is_command(output: Any) -> bool:
    """Whether a tool has returned a Command, which changes the graph's state and is not passed to the model."""
    return hasattr(output, "goto") and hasattr(output, "update")


def todos_in(output: Any) -> list[dict[str, Any]] | None:
    """Return the plan that a tool has written to `todos` in the graph's state; None if it has no known form."""
    todos: object = fields_of(getattr(output, "update", None)).get("todos")
    if not isinstance(todos, list):
        return None
    listed = [fields_of(todo) for todo in cast("list[object]", todos)]
    return listed if all(isinstance(todo.get("content"), str) for todo in listed) else None


def text_in(content: Any) -> str:
    """Return the text of a message's content, which may be a string or a list of blocks."""
    if isinstance(content, str):
        return content
    return "".join(_text_block(block) for block in items_of(content))


def _text_block(block: Any) -> str:
    if isinstance(block, str):
        return block
    fields = fields_of(block)
    return str(fields.get("text") or "") if fields.get("type") == "text" else ""


def arguments_in(message: Any) -> str:
    """Return the arguments of the calls in a model's chunk or message as JSON text."""
    chunks: list[Any] | None = getattr(message, "tool_call_chunks", None)
    if chunks is None:
        return "\n".join(json_text(call["args"]) for call in message.tool_calls)
    return "".join(chunk["args"] or "" for chunk in chunks)


def reasoning_in(message: Any) -> str:
    """Return a message's reasoning, from any of the fields in which model providers put it."""
    reasoning = message.additional_kwargs.get("reasoning_content")
    if isinstance(reasoning, str) and reasoning:
        return reasoning
    if isinstance(message.content, str):
        return ""
    return "".join(_reasoning_block(fields_of(block)) for block in message.content)


def _reasoning_block(block: dict[str, Any]) -> str:
    match block.get("type"):
        case "reasoning":
            summary = "".join(str(fields_of(part).get("text") or "") for part in items_of(block.get("summary")))
            return summary or str(block.get("reasoning") or "")
        case "thinking":
            return str(block.get("thinking") or "")
        case _:
            return ""
