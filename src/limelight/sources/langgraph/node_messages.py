"""Messages that nodes return as dicts or tuples, in every form that LangChain takes for a message. Pure.

LangGraph streams the messages that are objects. The others appear only in the results of tasks, as the node wrote them.
A result may also repeat messages: those of the state that the node was given, and those of a subgraph that ran in it.
"""

from typing import Any, NamedTuple, cast

import msgspec

from limelight.sources.langgraph.stream_parts import Namespace, task_of, text_in
from limelight.sources.values import fields_of, items_of

ROLES = frozenset({"ai", "assistant", "tool"})
"""The roles of messages that are shown."""
CLASSES = frozenset({"AIMessage", "AIMessageChunk", "ToolMessage"})
"""Their classes, in LangChain's serialized form."""
MESSAGES = "messages"
RETURN = "__return__"
"""The key under which LangGraph keeps what a function with `@task` returns."""
PLAIN_KEYS = frozenset({RETURN, "__root__", "__end__"})
"""The keys of results that are not part of a state with keys."""


class Returned(NamedTuple):
    """A message in the result of a task."""

    message: Any
    is_said: bool
    """Whether the key holds messages of the conversation. Other keys may hold prompts or examples."""


class RunningTask(msgspec.Struct):
    ns: Namespace
    given: dict[str, list[Any]]
    """The lists in its input, by key, as they were at its start."""
    nested: list[Any]
    """What tasks inside it have returned."""
    nested_said: list[tuple[str, list[str]]]
    """The messages of the assistant among that: their texts, and the ids of their calls."""


class NodeUpdates:
    """Follows the tasks of one run."""

    def __init__(self) -> None:
        self._tasks: dict[str, RunningTask] = {}

    def began(self, ns: Namespace, task_id: str, given: Any) -> None:
        self._tasks[task_id] = RunningTask(ns, _lists_in(given), [], [])

    def ended(self, ns: Namespace, task_id: str, result: Any) -> list[Returned]:
        """The messages that the task returned as dicts or tuples, without those that are known already."""
        task = self._tasks.pop(task_id, None) or RunningTask(ns, {}, [], [])
        returned: list[Returned] = []
        for key, value in fields_of(result).items():
            known = [*task.given.get(key, ()), *task.nested]
            new = [item for item in _items_in(value) if is_message_form(item) and not _taken(item, known)]
            is_said = _is_conversation(key, task)
            messages = [(item, message) for item in new if (message := _converted(item)) is not None]
            returned += [Returned(message, is_said) for _, message in messages]
            self._note(ns, key, messages)
        return returned

    def repeats(self, task_id: str, message: Any) -> bool:
        """Whether a message object is one that a task inside this task returned in another form."""
        task = self._tasks.get(task_id)
        said = _said(message)
        if task is None or said not in task.nested_said:
            return False
        task.nested_said.remove(said)
        return True

    def _note(self, ns: Namespace, key: str, messages: list[tuple[Any, Any]]) -> None:
        """Record in the enclosing tasks which messages their results will repeat."""
        for task_id, task in self._tasks.items():
            inside = ns[: len(task.ns)] == task.ns and len(ns) > len(task.ns) and task_of(ns[len(task.ns)]) == task_id
            if inside or (key == RETURN and ns == task.ns):
                task.nested += [item for item, _ in messages]
                task.nested_said += [_said(message) for _, message in messages if message.type == "ai"]


def is_message_form(item: Any) -> bool:
    """Whether this is a message of the assistant or of a tool, as a dict or a pair."""
    if isinstance(item, dict):
        fields = fields_of(cast("object", item))
        if fields.get("lc") == 1 and isinstance(fields.get("kwargs"), dict):
            return str(next(iter(items_of(fields.get("id"))[-1:]), "")) in CLASSES
        role = fields.get("role", fields.get("type"))
        return isinstance(role, str) and role in ROLES and "content" in fields
    pair = cast("tuple[Any, ...] | list[Any]", item) if isinstance(item, tuple | list) else ()
    return len(pair) == 2 and isinstance(pair[0], str) and pair[0] in ROLES and isinstance(pair[1], str | list)


def _converted(item: Any) -> Any:
    """The message object; None if LangChain does not take it. A result may lack the id of its call: it is "" then."""
    from langchain_core.messages import convert_to_messages

    if isinstance(item, tuple | list):
        role, content = cast("tuple[str, Any]", item)
        item = {"role": role, "content": content}
    if item.get("role", item.get("type")) == "tool":
        item = {"tool_call_id": "", **item}
    try:
        (message,) = convert_to_messages([item])
    except Exception:  # the graph meets the same error, where it uses the message
        return None
    return message


def _said(message: Any) -> tuple[str, list[str]]:
    return text_in(message.content), [str(call.get("id") or "") for call in message.tool_calls]


def _lists_in(given: Any) -> dict[str, list[Any]]:
    """Copies of the lists: a node may change those of its state."""
    if items := items_of(given):
        return {key: list(items) for key in PLAIN_KEYS}
    state = fields_of(given) or getattr(given, "__dict__", {})
    return {key: list(items) for key, value in state.items() if (items := items_of(value))}


def _items_in(value: Any) -> list[Any]:
    """What was written under a key, one by one. LangGraph joins several writes in one object."""
    if type(value).__name__ == "Overwrite":
        return _items_in(value.value)
    fields = fields_of(value)
    if "__overwrite__" in fields:
        return _items_in(fields["__overwrite__"])
    if isinstance(fields.get("$writes"), list):
        return [item for write in fields["$writes"] for item in _items_in(write)]
    return cast("list[Any]", value) if isinstance(value, list) else [value]


def _is_conversation(key: str, task: RunningTask) -> bool:
    if key in PLAIN_KEYS or key.endswith(MESSAGES):
        return True
    return any(hasattr(item, "additional_kwargs") for item in task.given.get(key, ()))


def _taken(item: Any, known: list[Any]) -> bool:
    """Whether the item is among those that are known; it is taken out of them then."""
    for at, other in enumerate(known):
        try:
            same = other is item or (type(other) is type(item) and bool(other == item))
        except Exception:  # values that cannot be compared
            same = False
        if same:
            del known[at]
            return True
    return False
