# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
"""Compares the log of a turn with the state of its graph: what was written to the state must be in the log, once.

The judge reads the checkpointer. It has every write of every task of the graph and of its subgraphs, also of those
whose messages were removed or replaced later, and the history of the states.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage, convert_to_messages
from langgraph.checkpoint.memory import InMemorySaver

from limelight.dialects.base import text_of
from limelight.events import RunFinished, TextDelta, ToolFinished, ToolStarted
from tests.sources.live_turn import FinishedRun, ModelEndpoint

NULL_TASK = "00000000-0000-0000-0000-000000000000"
"""LangGraph's id for writes of no task, such as the input of a turn."""
IGNORED_CHANNELS = ("branch:", "__start__", "__previous__", "__pregel", "__interrupt__", "__resume__", "__error__")


NOTE_END = "\n\nTool response:\n"
"""End of the note that LangChain's middleware puts before the result of a call whose arguments a person has changed."""
ROLES = ("ai", "assistant", "tool")


class Written(NamedTuple):
    """One message or result that a task has written to the state."""

    kind: str
    key: str
    text: str


class TaskWrites(NamedTuple):
    """What one task of a graph has written."""

    depth: int
    """How many tasks are around the task, because it is in a subgraph or a call of a function: their results may repeat
    its own."""
    step: int
    written: list[Written]


class StateJudge:
    """A graph's maker whose checkpointer the judge reads: `run_agent(judge, …)`, then `await judge.check(run)`."""

    def __init__(self, make: Callable[[ModelEndpoint], Any]) -> None:
        self._make = make
        self.saver = InMemorySaver()
        self.graph: Any = None
        self._seen: set[tuple[str, str]] = set()
        """The checkpoints of earlier turns."""

    def __call__(self, endpoint: ModelEndpoint) -> Any:
        graph = self._make(endpoint)
        compiled = graph.compile() if hasattr(graph, "compile") else graph
        self.graph = compiled.copy({"checkpointer": self.saver})
        return self.graph

    async def check(self, run: FinishedRun) -> None:
        """Check a finished turn, and forget its checkpoints."""
        tasks = [task async for task in self._tasks()]
        check_counts(run, tasks)
        check_order(run, tasks)
        await self._check_history(run)
        (thread_id,) = self.saver.storage
        self._seen |= {(ns, id_) for ns, saved in self.saver.storage[thread_id].items() for id_ in saved}

    async def _tasks(self) -> AsyncIterator[TaskWrites]:
        (thread_id,) = self.saver.storage
        for ns in sorted(self.saver.storage[thread_id], key=len):
            config: Any = {"configurable": {"thread_id": thread_id, "checkpoint_ns": ns}}
            saved = [item async for item in self.saver.alist(config)]
            for step, item in enumerate(reversed(saved)):
                if (ns, item.checkpoint["id"]) in self._seen and item is not saved[0]:
                    continue
                by_task: dict[tuple[str, int], list[Written]] = {}
                for task_id, channel, value in item.pending_writes or ():
                    if task_id == NULL_TASK or channel.startswith(IGNORED_CHANNELS):
                        continue
                    known = list(_items(item.checkpoint["channel_values"].get(channel)))
                    new = [one for one in _items(value) if not _take(one, known)]
                    depth = len(ns.split("|")) if ns else int(channel == "__return__")
                    by_task.setdefault((task_id, depth), []).extend(_written(new))
                for (_, depth), written in by_task.items():
                    yield TaskWrites(depth, step, written)

    async def _check_history(self, run: FinishedRun) -> None:
        """Check that the log has the messages of every state in the history, also of those that were removed later."""
        (thread_id,) = self.saver.storage
        known = Counter(_logged(run))
        async for snapshot in self.graph.aget_state_history({"configurable": {"thread_id": thread_id}}):
            if ("", snapshot.config["configurable"]["checkpoint_id"]) in self._seen:
                continue
            for values in [snapshot.values, *(task.result for task in snapshot.tasks)]:
                fields = values if isinstance(values, dict) else {}
                found = [one for key, value in fields.items() if key != "examples" for one in _items(value)]
                if self._seen:
                    continue  # states of a later turn contain the messages of earlier ones
                for one in _written(found):
                    assert any(one.kind == kind and _is_text(one.text, text) for kind, text in known), one


def check_counts(run: FinishedRun, tasks: list[TaskWrites]) -> None:
    """Check that each message and each result is in the log exactly once."""
    assert isinstance(run.terminal, RunFinished), run.terminal
    expected: Counter[tuple[str, str]] = Counter()
    for depth in {task.depth for task in tasks}:
        at_depth = _count([one for task in tasks if task.depth == depth for one in task.written])
        expected |= at_depth  # the maximum, because a graph repeats the messages of its subgraphs
    logged = Counter(_logged(run))
    for (kind, text), count in expected.items():
        found = sum(
            many for (logged_kind, other), many in logged.items() if logged_kind == kind and _is_text(text, other)
        )
        assert found == count, f"{kind} {text!r}: {count} times in the state, {found} times in the log: {logged}"


def _count(written: list[Written]) -> Counter[tuple[str, str]]:
    """Count the messages of each text. Tasks may write a message again, under the same id."""
    with_id = dict.fromkeys(one for one in written if one.key)
    return Counter((one.kind, one.text) for one in (*with_id, *(one for one in written if not one.key)))


def check_order(run: FinishedRun, tasks: list[TaskWrites]) -> None:
    """Check that the log has the messages of each task in order, and after those of the steps before.

    Results of tools end in any order. A message that is written again under its id keeps its place.
    """
    seen: set[Written] = set()
    places: dict[tuple[str, str], list[int]] = {}
    for at, (kind, text) in enumerate(_logged(run)):
        places.setdefault((kind, text), []).append(at)
    before, latest, step = -1, -1, -1
    for task in tasks:
        if task.depth:
            continue
        if task.step != step:
            before, step = latest, task.step
        at = before
        for one in task.written:
            if one.key and one in seen:
                continue
            seen.add(one)
            if one.kind == "text" and (found := places.get((one.kind, one.text))):
                place = next((place for place in found if place > at), None)
                assert place is not None, f"{one} is too early in {_logged(run)}"
                at = place
        latest = max(latest, at)


def _logged(run: FinishedRun) -> list[tuple[str, str]]:
    """Return the texts and results in the log, in the order of their first events."""
    texts: dict[str, list[str]] = {}
    found: list[tuple[str, Any]] = []
    names = {started.call_id: started.name for started in run.all(ToolStarted)}
    for event in run.events:
        if isinstance(event, TextDelta):
            if event.message_id not in texts:
                found.append(("text", texts.setdefault(event.message_id, [])))
            texts[event.message_id].append(event.text)
        elif isinstance(event, ToolFinished) and event.result_seen:
            result = text_of(event.result)
            found.append(("result", [result if not event.truncated else result.removesuffix("…")]))
            assert event.call_id in names
    return [(kind, "".join(pieces).strip()) for kind, pieces in found]


def _is_text(text: str, logged: str) -> bool:
    """Whether a logged text is this text of the state.

    A logged result may be a preview, or an error with a prefix. A middleware may put a note before a result.
    """
    if text == logged or logged.removeprefix("Error: ") == text.removeprefix("Error: "):
        return True
    return text.endswith(f"{NOTE_END}{logged}") or (len(logged) > 5000 and text.startswith(logged[:5000]))


def _items(value: Any) -> Iterator[Any]:
    """Return the values in what a task has written to a channel."""
    if type(value).__name__ == "Overwrite":
        yield from _items(value.value)
    elif isinstance(value, list):
        yield from value
    elif value is not None:
        yield value


def _written(items: list[Any]) -> list[Written]:
    found: list[Written] = []
    for item in items:
        message = _message(item)
        if isinstance(message, AIMessage):
            if text := "".join(_texts(message)).strip():
                found.append(Written("text", message.id or "", text))
        elif isinstance(message, ToolMessage):
            result = "\n".join(_texts(message)).strip()
            found.append(Written("result", message.tool_call_id, "" if result == "null" else result))  # "null" is None
    return found


def _texts(message: BaseMessage) -> list[str]:
    blocks = [message.content] if isinstance(message.content, str) else message.content
    return [block if isinstance(block, str) else block.get("text", "") for block in blocks]


def _message(item: Any) -> BaseMessage | None:
    if isinstance(item, BaseMessage):
        return item
    is_dict = isinstance(item, dict) and "content" in item and item.get("role", item.get("type")) in ROLES
    is_pair = isinstance(item, tuple) and len(item) == 2 and item[0] in ROLES
    return convert_to_messages([item])[0] if is_dict or is_pair else None


def _take(item: Any, known: list[Any]) -> bool:
    """Remove the equal value from the list. Returns whether there was one: the task has not written it anew."""
    for at, other in enumerate(known):
        if type(other) is type(item) and other == item:
            del known[at]
            return True
    return False
