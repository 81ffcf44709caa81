"""The running tasks of a graph, and the messages that their nodes return as dicts or tuples. Pure.

A task is one execution of a node. LangGraph streams only message objects; messages in other forms that LangChain
accepts are read from the results of tasks. A result may repeat messages from the input of its node, or from a subgraph
that ran in the node.
"""

from typing import Any, NamedTuple, cast

import msgspec

from limelight.sources.langgraph.stream_parts import Namespace, call_ids_in, last_call_ids, task_of, text_in
from limelight.sources.tool_results import fields_of, items_of

ROLES = frozenset({"ai", "assistant", "tool"})
"""The roles of messages that are shown: those of models and tools."""
CLASSES = frozenset({"AIMessage", "AIMessageChunk", "ToolMessage"})
"""The classes of messages that are shown, in LangChain's serialized form."""
MESSAGES = "messages"
RETURN = "__return__"
"""LangGraph's key for what an `@task` function returns."""
PLAIN_KEYS = frozenset({RETURN, "__root__", "__end__"})
"""Keys of a task's result that LangGraph uses for values outside of a state with keys."""


class ReturnedMessage(NamedTuple):
    """A message in the result of a task."""

    message: Any
    is_shown: bool
    """Whether the message's key in the result is for the conversation. Other keys may contain prompts or examples."""


class Task(msgspec.Struct):
    """A running task."""

    task_id: str
    ns: Namespace
    input: Any = None
    started_at: float = 0.0
    """Time of the start in seconds, on the clock of the translator."""
    lists: dict[str, list[Any]] = {}
    """Copies of the lists in the task's input at its start, by key."""
    nested: list[Any] = []
    """The messages that tasks inside of this task have returned."""
    nested_replies: list[tuple[str, list[str]]] = []
    """The texts and call ids of the model messages in `nested`."""
    _call_ids: tuple[list[str], list[str]] | None = None

    @property
    def call_ids(self) -> tuple[list[str], list[str]]:
        """The ids of tool calls in the task's input: those of single calls, and those in the last messages."""
        if self._call_ids is None:
            self._call_ids = (call_ids_in(self.input), last_call_ids(self.input))
        return self._call_ids


class Tasks:
    """The running tasks of one run."""

    def __init__(self) -> None:
        self.running: dict[str, Task] = {}
        """Running tasks by task id."""

    def start(self, ns: Namespace, task_id: str, task_input: Any, now: float) -> None:
        self.running[task_id] = Task(task_id, ns, task_input, now, _lists_in(task_input))

    def running_in(self, ns: Namespace) -> list[Task]:
        """Return the running tasks of the graph at a namespace."""
        return [task for task in self.running.values() if task.ns == ns]

    def returned_messages(self, ns: Namespace, task_id: str, result: Any) -> list[ReturnedMessage]:
        """Return the messages that a task has returned as dicts or tuples, without those that repeat others."""
        task = self.running.get(task_id) or Task(task_id, ns)
        task.nested_replies = []  # no message follows the result, so none can repeat these
        returned: list[ReturnedMessage] = []
        for key, value in fields_of(result).items():
            known = [*task.lists.get(key, ()), *task.nested]
            new = [item for item in _items_in(value) if is_message_form(item) and not _take_equal(item, known)]
            is_shown = _is_conversation(key, task)
            messages = [(item, message) for item in new if (message := _converted(item)) is not None]
            returned += [ReturnedMessage(message, is_shown) for _, message in messages]
            self._add_nested(ns, task_id, key, messages)
        return returned

    def is_repeated(self, task_id: str, message: Any) -> bool:
        """Whether a message repeats one that a task inside of this task has returned as a dict or tuple.

        Each returned message counts as repeated only once.
        """
        task = self.running.get(task_id)
        reply = _text_and_calls(message)
        if task is None or reply not in task.nested_replies:
            return False
        task.nested_replies.remove(reply)
        return True

    def _add_nested(self, ns: Namespace, task_id: str, key: str, messages: list[tuple[Any, Any]]) -> None:
        """Add messages to the enclosing tasks, because the results of these tasks will repeat the messages."""
        for task in self.running.values():
            depth = len(task.ns)
            is_inside = ns[:depth] == task.ns and len(ns) > depth and task_of(ns[depth]) == task.task_id
            if is_inside or (key == RETURN and ns == task.ns and task.task_id != task_id):
                task.nested += [item for item, _ in messages]
                task.nested_replies += [_text_and_calls(message) for _, message in messages if message.type == "ai"]


def is_message_form(item: Any) -> bool:
    """Whether a value is a message of a model or of a tool in the form of a dict or a pair."""
    if isinstance(item, dict):
        fields = fields_of(cast("object", item))
        if fields.get("lc") == 1 and isinstance(fields.get("kwargs"), dict):
            return str(next(iter(items_of(fields.get("id"))[-1:]), "")) in CLASSES
        role = fields.get("role", fields.get("type"))
        return isinstance(role, str) and role in ROLES and "content" in fields
    pair = cast("tuple[Any, ...] | list[Any]", item) if isinstance(item, tuple | list) else ()
    return len(pair) == 2 and isinstance(pair[0], str) and pair[0] in ROLES and isinstance(pair[1], str | list)


def _converted(item: Any) -> Any:
    """Return the message object for a dict or a pair; None if LangChain does not accept it.

    A tool message without a call id gets the call id "".
    """
    from langchain_core.messages import convert_to_messages

    if isinstance(item, tuple | list):
        role, content = cast("tuple[str, Any]", item)
        item = {"role": role, "content": content}
    if item.get("role", item.get("type")) == "tool":
        item = {"tool_call_id": "", **item}
    try:
        (message,) = convert_to_messages([item])
    except Exception:  # the graph raises the same error where it uses the message
        return None
    return message


def _text_and_calls(message: Any) -> tuple[str, list[str]]:
    return text_in(message.content), [str(call.get("id") or "") for call in message.tool_calls]


def _lists_in(given: Any) -> dict[str, list[Any]]:
    """Return copies of the lists in a task's input by key, because a node may change the originals."""
    if items := items_of(given):
        return {key: list(items) for key in PLAIN_KEYS}
    state = fields_of(given) or getattr(given, "__dict__", {})
    return {key: list(items) for key, value in state.items() if (items := items_of(value))}


def _items_in(value: Any) -> list[Any]:
    """Return the values written under a key of a task's result, unpacked from LangGraph's wrapper objects."""
    if type(value).__name__ == "Overwrite":
        return _items_in(value.value)
    fields = fields_of(value)
    if "__overwrite__" in fields:
        return _items_in(fields["__overwrite__"])
    if isinstance(fields.get("$writes"), list):
        return [item for write in fields["$writes"] for item in _items_in(write)]
    return cast("list[Any]", value) if isinstance(value, list) else [value]


def _is_conversation(key: str, task: Task) -> bool:
    if key in PLAIN_KEYS or key.endswith(MESSAGES):
        return True
    return any(hasattr(item, "additional_kwargs") for item in task.lists.get(key, ()))


def _take_equal(item: Any, known: list[Any]) -> bool:
    """Remove the first equal item from the list `known`. Returns whether there was one."""
    for at, other in enumerate(known):
        try:
            same = other is item or (type(other) is type(item) and bool(other == item))
        except Exception:  # values that cannot be compared
            same = False
        if same:
            del known[at]
            return True
    return False
