"""Tracks the running tasks of a graph, and reads the messages in their results that LangGraph does not stream. Pure.

A task is one execution of a node, or of an `@task` function (a function task). LangGraph streams message objects;
messages in other forms that LangChain accepts, and messages inside `Overwrite`, are read from the results of tasks. A
result may repeat messages from the input of its node, or from a subgraph that ran in the node.
"""

from typing import Any, NamedTuple, cast

import msgspec

from limelight.json_values import fields_of, items_of
from limelight.sources.langgraph.stream_parts import Namespace, call_ids_in, last_call_ids, task_of, text_in

ROLES = frozenset({"ai", "assistant", "tool"})
"""Roles of the messages that become events: those of models and tools."""
CLASSES = frozenset({"AIMessage", "AIMessageChunk", "ToolMessage"})
"""Names of the message classes that become events, in LangChain's serialized form."""
OBJECT_TYPES = ("ai", "AIMessageChunk", "tool")
"""LangChain's types of the message objects that become events."""
MESSAGES = "messages"
RETURN = "__return__"
"""The key under which LangGraph reports the return value of an `@task` function."""
PLAIN_KEYS = frozenset({RETURN, "__root__", "__end__"})
"""The keys under which LangGraph reports a task's result if the graph's state is not a dict."""
PUSH = "__pregel_push"
"""The trigger of tasks that were started by `Send`, or by a call of an `@task` function."""


class ReturnedMessage(NamedTuple):
    """A message that a graph's node has returned."""

    message: Any
    is_shown: bool
    """Whether the message belongs to the conversation, judged by its key. Other keys may contain prompts or examples.
    """
    is_object: bool = False
    """Whether the node has returned a message object, which LangGraph usually streams, and not a dict or a pair."""


class Task(msgspec.Struct):
    """A running task: one execution of a node of a graph."""

    task_id: str
    ns: Namespace
    input: Any = None
    started_at: float = 0.0
    """Start time in seconds on the translator's clock."""
    node: str = ""
    is_pushed: bool = False
    """Whether `Send` or the call of an `@task` function has started the task, with an input of its own."""
    is_step: bool = False
    """Whether the task is shown as a step or as a branch. Tasks that run tools or middleware hooks are not."""
    is_branch: bool = False
    is_active: bool = False
    """Whether the task has emitted something of its own, such as a model's text."""
    lists: dict[str, list[Any]] = {}
    """Copies of the lists in the task's input at its start, by key; their items are not new when the task returns them.
    """
    nested: list[Any] = []
    """The messages that tasks inside this task have returned."""
    nested_replies: list[tuple[str, list[str]]] = []
    """The texts and call ids of the models' messages in `nested`."""
    _call_ids: tuple[list[str], list[str]] | None = None

    @property
    def is_function(self) -> bool:
        """Whether the task is a call of an `@task` function."""
        return self.is_pushed and is_arguments(self.input)

    @property
    def call_ids(self) -> tuple[list[str], list[str]]:
        """The ids of the tool calls in the task's input: of single calls, and of calls in the last messages."""
        if self._call_ids is None:
            given = self.input
            if is_arguments(given):
                given = [*given[0], *given[1].values()]
            self._call_ids = (call_ids_in(given), last_call_ids(given))
        return self._call_ids


class Tasks:
    """The running tasks of all graphs in one run, and the messages that they return."""

    def __init__(self) -> None:
        self.running: dict[str, Task] = {}
        """The running tasks, by LangGraph's task id."""
        self._ended: set[str] = set()
        self._functions: set[str] = set()
        """The ids of the calls of `@task` functions."""

    def start(
        self, ns: Namespace, task_id: str, task_input: Any, now: float, node: str = "", triggers: Any = ()
    ) -> Task:
        is_pushed = PUSH in (triggers or ())
        task = self.running[task_id] = Task(task_id, ns, task_input, now, node, is_pushed, lists=_lists_in(task_input))
        if task.is_function:
            self._functions.add(task_id)
        return task

    def end(self, task_id: str, *, is_interrupted: bool) -> None:
        """Record that a task has ended, or that it was interrupted and will start again under the same id."""
        task = self.running.pop(task_id, None)
        if not is_interrupted:
            self._ended.add(task_id)
        elif task is not None and not task.is_function:  # LangGraph reports no end of the functions that it has called
            for function in [other for other in self.running_in(task.ns) if other.is_function]:
                del self.running[function.task_id]

    def has_ended(self, task_id: str) -> bool:
        """Whether a task has ended; LangGraph reports its start again when it resumes the graph after an interrupt."""
        return task_id in self._ended

    def running_in(self, ns: Namespace) -> list[Task]:
        """Return the running tasks of the graph at a namespace."""
        return [task for task in self.running.values() if task.ns == ns]

    def beside(self, task: Task) -> list[Task]:
        """Return the other running tasks that are steps of the same graph, or calls of `@task` functions as this one.

        The node that calls an `@task` function is not beside it: the function is a part of the node's work.
        """
        others = [other for other in self.running_in(task.ns) if other is not task and other.is_step]
        return [other for other in others if other.is_function == task.is_function]

    def callers(self, task: Task) -> list[Task]:
        """Return the running nodes that may have called an `@task` function."""
        if not task.is_function:
            return []
        return [other for other in self.running_in(task.ns) if other.is_step and not other.is_function]

    def without_callers(self, ns: Namespace) -> Namespace:
        """Return a namespace without the tasks that called `@task` functions, which LangGraph puts before these.

        `main:1`, `work:2`, `model:3` becomes `work:2`, `model:3` if `work` is a function, because its task belongs to
        the same graph as its caller's.
        """
        if not self._functions:
            return ns
        return tuple(s for at, s in enumerate(ns) if at + 1 == len(ns) or task_of(ns[at + 1]) not in self._functions)

    def returned_messages(self, ns: Namespace, task_id: str, result: Any) -> list[ReturnedMessage]:
        """Return the messages that a task has returned, without repetitions of others.

        Message objects are included, although LangGraph has streamed most of them.
        """
        task = self.running.get(task_id) or Task(task_id, ns)
        task.nested_replies = []  # no message follows the result, so none can repeat these
        returned: list[ReturnedMessage] = []
        for key, value in fields_of(result).items():
            given = task.lists.get(key, [])
            known = [*given, *task.nested]
            items = _items_in(value)
            is_shown = _is_conversation(key, [*task.lists.get(key, ()), *items])
            messages: list[tuple[Any, Any]] = []
            for item in items:
                if is_message_object(item):
                    if not _is_given(item, given):
                        returned.append(ReturnedMessage(item, is_shown=True, is_object=True))
                elif is_message_form(item) and not _take_equal(item, known) and (message := converted_message(item)):
                    messages.append((item, message))
                    returned.append(ReturnedMessage(message, is_shown))
            self._add_nested(ns, task_id, key, messages)
        return returned

    def is_repeated(self, task_id: str, message: Any) -> bool:
        """Whether a message repeats one that a task inside this task has returned as a dict or tuple.

        Each returned message counts as repeated only once.
        """
        task = self.running.get(task_id)
        reply = _text_and_calls(message)
        if task is None or reply not in task.nested_replies:
            return False
        task.nested_replies.remove(reply)
        return True

    def _add_nested(self, ns: Namespace, task_id: str, key: str, messages: list[tuple[Any, Any]]) -> None:
        """Add messages to the enclosing tasks, whose results will repeat these messages."""
        for task in self.running.values():
            depth = len(task.ns)
            is_inside = ns[:depth] == task.ns and len(ns) > depth and task_of(ns[depth]) == task.task_id
            if is_inside or (key == RETURN and ns == task.ns and task.task_id != task_id):
                task.nested += [item for item, _ in messages]
                task.nested_replies += [_text_and_calls(message) for _, message in messages if message.type == "ai"]


def is_function_call(task_input: Any, triggers: Any) -> bool:
    """Whether a task that starts is a call of an `@task` function."""
    return PUSH in (triggers or ()) and is_arguments(task_input)


def is_arguments(task_input: Any) -> bool:
    """Whether a task's input are the positional and keyword arguments of a function."""
    pair = cast("tuple[Any, ...]", task_input) if isinstance(task_input, tuple) else ()
    return len(pair) == 2 and isinstance(pair[0], tuple) and isinstance(pair[1], dict)


def returned_call_ids(result: Any) -> set[str]:
    """Return LangGraph's ids of the tool calls in the messages that a task has returned; "" for a call without one."""
    items = [item for value in fields_of(result).values() for item in _items_in(value)]
    made = [getattr(item, "tool_calls", None) or fields_of(item).get("tool_calls") for item in items]
    return {str(fields_of(call).get("id") or "") for calls in made for call in items_of(calls)}


def is_message_object(item: Any) -> bool:
    """Whether a value is a model's or a tool's message as an object of LangChain."""
    return getattr(item, "type", None) in OBJECT_TYPES and hasattr(item, "additional_kwargs")


def is_message_form(item: Any) -> bool:
    """Whether a value is a model's or a tool's message in the form of a dict or a pair."""
    if isinstance(item, dict):
        fields = fields_of(cast("object", item))
        if fields.get("lc") == 1 and isinstance(fields.get("kwargs"), dict):
            return str(next(iter(items_of(fields.get("id"))[-1:]), "")) in CLASSES
        role = fields.get("role", fields.get("type"))
        return isinstance(role, str) and role in ROLES and "content" in fields
    pair = cast("tuple[Any, ...] | list[Any]", item) if isinstance(item, tuple | list) else ()
    return len(pair) == 2 and isinstance(pair[0], str) and pair[0] in ROLES and isinstance(pair[1], str | list)


def converted_message(item: Any) -> Any:
    """Return LangChain's message object for a dict or a pair; None if LangChain rejects it.

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
    """Return copies of the lists in a task's input by key; copies, because a node may change the originals."""
    if items := items_of(given):
        return {key: list(items) for key in PLAIN_KEYS}
    state = fields_of(given) or getattr(given, "__dict__", {})
    return {key: list(items) for key, value in state.items() if (items := items_of(value))}


def _items_in(value: Any) -> list[Any]:
    """Return the values that a task's result has under a key, without LangGraph's wrapper objects."""
    if type(value).__name__ == "Overwrite":
        return _items_in(value.value)
    fields = fields_of(value)
    if "__overwrite__" in fields:
        return _items_in(fields["__overwrite__"])
    if isinstance(fields.get("$writes"), list):
        return [item for write in fields["$writes"] for item in _items_in(write)]
    return cast("list[Any]", value) if isinstance(value, list) else [value]


def _is_conversation(key: str, items: list[Any]) -> bool:
    """Whether a key of a state is for messages, judged by its name and by its items before and after a task."""
    return key in PLAIN_KEYS or key.endswith(MESSAGES) or any(hasattr(item, "additional_kwargs") for item in items)


def _is_given(message: Any, given: list[Any]) -> bool:
    """Whether a task's input contains a message object unchanged."""
    if message.id is None:
        return any(other is message for other in given)
    return any(other is message or _is_same(message, other) for other in given)


def _is_same(message: Any, other: Any) -> bool:
    """Whether two messages have the same id, content and tool calls."""
    if getattr(other, "id", None) != message.id or other.content != message.content:
        return False
    return getattr(other, "tool_calls", None) == getattr(message, "tool_calls", None)


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
