"""The shapes in which LangGraph streams, by their names: this package's pure files know no framework class."""

from typing import Any, NamedTuple

from limelight.sources.values import fields_of, items_of

MODES = ("messages", "tools", "tasks", "custom")
"""What is asked of `astream`. `updates` would repeat every message; interrupts are in `tasks` too."""

HOOKS = (".before_agent", ".before_model", ".after_model", ".after_agent")
"""How LangChain names the nodes of a middleware."""

Namespace = tuple[str, ...]


class Part(NamedTuple):
    """One item of `astream(version="v2")`."""

    type: str
    ns: Namespace
    data: Any


def part_of(item: Any) -> Part:
    """The item with its place in the graph. A number in it only counts calls of one subgraph, so it is left out."""
    ns: Namespace = tuple(item["ns"])
    if ns and any(step.isdigit() for step in ns):
        ns = tuple(step for step in ns if not step.isdigit())
    return Part(item["type"], ns, item["data"])


def node_of(step: str) -> str:
    """`tools:1234` -> `tools`."""
    return step.partition(":")[0]


def task_of(step: str) -> str:
    """`tools:1234` -> `1234`, the id of the task that runs there."""
    return step.partition(":")[2]


def is_hook(node: str) -> bool:
    return node.endswith(HOOKS)


def calls_in(task_input: Any) -> list[dict[str, Any]]:
    """The tool calls that a task of a tools node was given: a list of them, or one under `tool_call`."""
    calls = items_of(task_input) or [fields_of(task_input).get("tool_call")]
    return [fields for call in calls if (fields := fields_of(call)).keys() >= {"id", "name"}]


def messages_in(output: Any) -> list[Any]:
    """The messages in what a tool or node returned: a message, a Command with some, or a list of these."""
    if several := items_of(output):
        return [message for one in several for message in messages_in(one)]
    if hasattr(output, "tool_call_id"):
        return [output]
    return items_of(fields_of(getattr(output, "update", None)).get("messages"))


def todos_in(output: Any) -> list[dict[str, Any]] | None:
    """The plan that a tool has written into the state, if it has."""
    update = fields_of(getattr(output, "update", None))
    return [fields_of(todo) for todo in items_of(update["todos"])] if "todos" in update else None


def text_in(content: Any) -> str:
    """The text of a message's content, which is a text or a list of blocks."""
    if isinstance(content, str):
        return content
    return "".join(_text_block(block) for block in items_of(content))


def _text_block(block: Any) -> str:
    if isinstance(block, str):
        return block
    fields = fields_of(block)
    return str(fields.get("text") or "") if fields.get("type") == "text" else ""


def reasoning_in(message: Any) -> str:
    """The thinking in a message, in the places where providers put it."""
    kept = message.additional_kwargs.get("reasoning_content")
    if isinstance(kept, str) and kept:
        return kept
    if isinstance(message.content, str):
        return ""
    return "".join(_thought(fields_of(block)) for block in message.content)


def _thought(block: dict[str, Any]) -> str:
    match block.get("type"):
        case "reasoning":
            told = "".join(str(fields_of(part).get("text") or "") for part in items_of(block.get("summary")))
            return told or str(block.get("reasoning") or "")
        case "thinking":
            return str(block.get("thinking") or "")
        case _:
            return ""
