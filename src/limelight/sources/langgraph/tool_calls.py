"""The tool calls of a graph: from the first piece of their arguments to the message with their result. Pure.

Everything may come twice or not at all: a retried tool starts again under its id, an unknown one never starts, a
resumed one starts anew. So all of it is idempotent per call, and whatever says that the call is over ends it.

A node may run a tool itself, with the arguments of a call but without its id. Such a run is matched to the open call
with that name and those arguments, or else to the only call that a running task was given and that can be meant.
"""

from typing import Any, cast

import msgspec

from limelight.events import (
    AnyEvent,
    SourceCited,
    ToolArgsDelta,
    ToolFinished,
    ToolOutputDelta,
    ToolReady,
    ToolStarted,
)
from limelight.grammar import args_of, unseen_result
from limelight.sources.base import CallIds, Item
from limelight.sources.resume_state import SoFar
from limelight.sources.values import args_value, fields_of, items_of, json_value, outcome, safe_text

UNREADABLE = 3
"""The distance between arguments of which one cannot be read; smaller ones are between arguments that agree."""


class NodeRun(msgspec.Struct):
    """A run of a tool that a node has started for a call."""

    run_id: str
    name: str
    args: Any
    """What the tool was given; None if that is not known."""
    task_id: str
    """The task that runs it; empty if several tasks can be meant."""
    ns: tuple[str, ...]
    """The namespace of the graph in which it runs."""
    began: float
    """When it began, in seconds; the origin is the caller's."""
    guessed: bool = False
    """Whether the tool has another name than the call, or other arguments: a run that fits better replaces it."""
    live: bool = True
    returned: bool = False
    value: Any = None
    duration_ms: int | None = None

    @property
    def failed(self) -> bool:
        """Whether it has ended without a value: by an error, or by an interrupt of its task."""
        return not (self.live or self.returned)

    def end(self, now: float) -> None:
        self.live = False
        self.duration_ms = max(0, round((now - self.began) * 1000))


class Call(msgspec.Struct):
    """A call that has begun."""

    call_id: str
    agent_id: str
    name: str
    raw_id: str
    args_text: list[str]
    ready: bool = False
    args: dict[str, Any] | str = {}
    over: bool = False
    asked: bool = False
    """Whether a person is asked about it."""
    error: str = ""
    """What the tool raised, until it is known whether it is tried again."""
    made_in: str = ""
    """The task in which the model made it."""
    running: bool = False
    """Whether a tool runs under its id."""
    run: NodeRun | None = None

    @property
    def known_args(self) -> dict[str, Any] | str:
        """Its arguments, also before it is known that they are complete."""
        return self.args if self.ready else args_of("".join(self.args_text) or "{}")


class Calls:
    """All calls of one run, by the ids that the framework has for them."""

    def __init__(self) -> None:
        self._ids = CallIds()
        self._calls: dict[tuple[str, str], list[Call]] = {}
        self._streaming: dict[tuple[str, int], Call] = {}
        self._made_in: dict[str, list[Call]] = {}

    def get(self, agent_id: str, raw_id: str) -> Call | None:
        """The call that is meant by an id. Models repeat ids: it is the oldest that is open, or else the newest."""
        same = self._calls.get((agent_id, raw_id))
        if not same:
            return None
        return next((call for call in same if not call.over), same[-1])

    @property
    def open(self) -> list[Call]:
        return [call for same in self._calls.values() for call in same if not call.over]

    def restore(self, so_far: SoFar) -> None:
        """Know again what a run had open when its server ended."""
        self._ids.reserve(so_far.call_ids)
        for left in so_far.calls.values():
            call = Call(left.call_id, left.agent_id, left.name, left.call_id, [], ready=True, args=left.args)
            self._calls.setdefault((left.agent_id, left.call_id), []).append(call)

    # How a call begins

    def chunk(self, agent_id: str, message_id: str, chunk: dict[str, Any], task_id: str = "") -> list[AnyEvent]:
        """A piece of a call that a model is making: its name first, then its arguments."""
        at = (message_id, chunk.get("index") or 0)
        call = self._streaming.get(at)
        events: list[AnyEvent] = []
        is_unnumbered = chunk.get("name") and not chunk.get("id") and chunk.get("index") is None
        if call is None or is_unnumbered or (chunk.get("id") and chunk["id"] != call.raw_id):
            if not chunk.get("name"):
                return []
            call = self._streaming[at] = self._begin(agent_id, chunk.get("id") or "", chunk["name"], task_id)
            events.append(ToolStarted(agent_id=agent_id, call_id=call.call_id, name=call.name))
        if (text := chunk.get("args")) and not (call.ready or call.over):
            call.args_text.append(text)
            events.append(ToolArgsDelta(agent_id=call.agent_id, call_id=call.call_id, text=text))
        return events

    def whole(self, agent_id: str, raw_id: str, name: str, args: Any, task_id: str = "") -> list[AnyEvent]:
        """A call that nobody saw being made."""
        call = self.get(agent_id, raw_id)
        if call is not None and not call.over:
            return []
        return self.begin_whole(agent_id, raw_id, name, args, task_id)

    def begin_whole(self, agent_id: str, raw_id: str, name: str, args: Any, task_id: str = "") -> list[AnyEvent]:
        """Start a call with all its arguments, also if another call with its id is open."""
        call = self._begin(agent_id, raw_id, name, task_id)
        call.ready, call.args = True, args_value(args)
        return [ToolStarted(agent_id=agent_id, call_id=call.call_id, name=name, args=call.args)]

    def _begin(self, agent_id: str, raw_id: str, name: str, task_id: str) -> Call:
        call = Call(self._ids.start(raw_id), agent_id, name or "unknown", raw_id, [], made_in=task_id)
        self._calls.setdefault((agent_id, raw_id), []).append(call)
        self._made_in.setdefault(task_id, []).append(call)
        return call

    def ready(self, call: Call, given: Any = None) -> list[AnyEvent]:
        """The arguments are whole. What the model wrote counts; what the tool got, if that was no valid JSON."""
        if call.ready or call.over:
            return []
        args = args_of("".join(call.args_text))
        if isinstance(args, str) and fields_of(given):
            args = args_value(fields_of(given))
        call.ready, call.args = True, args if args != "" else {}
        return [ToolReady(agent_id=call.agent_id, call_id=call.call_id, args=call.args)]

    # Which call is meant

    def was_made_in(self, agent_id: str, raw_id: str, task_id: str) -> bool:
        """Whether a model has made a call with this id in this task: a message that names it again repeats it."""
        return any(call.made_in == task_id for call in self._calls.get((agent_id, raw_id), ()) if task_id)

    def open_made_in(self, task_id: str) -> list[Call]:
        """The open calls that a model has made in this task."""
        return [call for call in self._made_in.get(task_id, ()) if not call.over] if task_id else []

    def open_with(self, agent_id: str, raw_id: str) -> list[Call]:
        """The open calls of an agent with this id, the oldest first. Calls without an id have the id ""."""
        return [call for call in self._calls.get((agent_id, raw_id), ()) if not call.over]

    def match(self, agent_id: str, name: str, given: Any) -> Call | None:
        """The open call for which a node runs a tool with these arguments; None arguments are not known.

        The same arguments come first, then those to which the node has added some, then those whose values have the
        same text (1 for "1"), then a call whose arguments cannot be read. Among equals it is the oldest that was not
        run; one whose run failed is run again.
        """
        candidates = [call for call in self.open if call.agent_id == agent_id and call.name == name]
        given = None if given is None else args_value(given)
        ranked = [
            (distance, call.run is not None, at)
            for at, call in enumerate(candidates)
            if (distance := _distance(call, given)) is not None
            and (_is_free(call) or (distance < UNREADABLE and call.run is not None and call.run.guessed))
        ]
        return candidates[min(ranked)[2]] if ranked else None

    def match_given(self, by_task: list[list[Call]], name: str, given: Any, tool_names: set[str]) -> Call | None:
        """The only call that can be meant among those that a task was given, for each running task.

        It is the only one with this name whose arguments the node can have converted. Otherwise it is the only one
        with the same arguments, if the tool has another name than the model uses: no tool has run under that name.
        """
        args = args_value(given)
        for calls in by_task:
            free = [call for call in calls if not call.over and _is_free(call)]
            converted = [call for call in free if call.name == name and _is_converted(call.known_args, args)]
            renamed = [call for call in free if args and call.known_args == args and call.name not in tool_names]
            found = _only(converted) or _only(renamed)
            if found is not None:
                return found
        return None

    def adopt(self, agent_id: str, raw_id: str, name: str, args: Any, runs: list[Call]) -> bool:
        """Let an id mean one of these runs, if it has this name and these arguments; that one is taken out."""
        found = take_same(runs, name, args) if raw_id else None
        if found is None:
            return False
        self._calls.setdefault((agent_id, raw_id), []).append(found)
        return True

    # What it does

    def output(self, call: Call, delta: Any) -> list[AnyEvent]:
        if call.over or delta in (None, ""):
            return []
        text = delta if isinstance(delta, str) else msgspec.json.encode(json_value(delta)).decode() + "\n"
        ready = self.ready(call)
        return [*ready, ToolOutputDelta(agent_id=call.agent_id, call_id=call.call_id, text=text)]

    # How it ends

    def finish(self, call: Call, message: Any, duration_ms: int | None = None) -> list[Item]:
        """Its message is there. If the node's run has failed, the call has, whatever the message says.

        A failed run of a tool with another name does not count: it may have been a helper of the node.
        """
        content = message.content
        content = None if content == "null" else content  # that is what None is turned into
        failed = getattr(message, "status", "") == "error"
        raised = call.error if call.run is not None and call.run.name == call.name and not failed else ""
        artifact = getattr(message, "artifact", None)
        return self.returned(call, content, artifact, failed=failed, raised=raised, duration_ms=duration_ms)

    def returned(
        self,
        call: Call,
        value: Any,
        artifact: Any = None,
        *,
        failed: bool = False,
        raised: str = "",
        duration_ms: int | None = None,
    ) -> list[Item]:
        """It is over. Beside what the model gets, a tool may hand over files and documents.

        If it `failed`, the value is the error; `raised` is an error beside the value.
        """
        if call.over:
            return []
        ready = self.ready(call)
        call.over = True
        whose = {"name": call.name, "call_id": call.call_id, "agent_id": call.agent_id}
        made, beside = outcome(value, **whose), outcome(artifact, **whose)
        error = _error(made.result) if failed else None
        finished = ToolFinished(
            agent_id=call.agent_id,
            call_id=call.call_id,
            result=made.result if error is None else f"Error: {error}",
            error=error if error is not None else raised or None,
            duration_ms=duration_ms if call.run is None else call.run.duration_ms,
        )
        return [*ready, *made.files, *beside.files, finished, *_cited(call, artifact)]

    def fail(self, call: Call, error: str) -> list[AnyEvent]:
        if call.over:
            return []
        ready = self.ready(call)
        call.over = True
        finished = ToolFinished(
            agent_id=call.agent_id,
            call_id=call.call_id,
            result=f"Error: {error}",
            error=error,
            duration_ms=None if call.run is None else call.run.duration_ms,
        )
        return [*ready, finished]

    def settle(self, call: Call) -> list[Item]:
        """End a call by what its tool has returned or raised. Nothing, if neither is known."""
        if call.run is not None and call.run.returned:
            return self.returned(call, call.run.value)
        return [*self.fail(call, call.error)] if call.error else []

    def unseen(self, call: Call) -> list[AnyEvent]:
        """The agent has ended, and nothing has shown what became of the call."""
        if call.over:
            return []
        ready = self.ready(call)
        call.over = True
        return [*ready, unseen_result(call.agent_id, call.call_id)]


def take_same(calls: list[Call], name: str, args: Any) -> Call | None:
    """Take the first call with this name and these arguments out of the list."""
    wanted = args_value(args)
    found = next((call for call in calls if call.name == name and call.known_args == wanted), None)
    if found is not None:
        calls.remove(found)
    return found


def _is_free(call: Call) -> bool:
    """Whether a run may be this call's: none is, or the last one has failed or was interrupted."""
    return not call.running and (call.run is None or call.run.failed)


def _distance(call: Call, given: dict[str, Any] | str | None) -> int | None:
    """How far the arguments of a run are from those of a call; None if they are others."""
    args = call.known_args
    if given is None or isinstance(args, str) or isinstance(given, str):
        return UNREADABLE if args != given else 0
    if args == given:
        return 0
    if not args.keys() <= given.keys():
        return None
    if all(given[key] == value for key, value in args.items()):
        return 1
    return 2 if all(_as_text(given[key]) == _as_text(value) for key, value in args.items()) else None


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _is_converted(args: Any, given: Any) -> bool:
    """Whether a node can have made the given arguments of those of a call: each value is equal or of another type."""
    if not (isinstance(args, dict) and isinstance(given, dict)):
        return False
    made, got = fields_of(cast("object", args)), fields_of(cast("object", given))
    return made.keys() <= got.keys() and all(type(got[k]) is not type(v) or got[k] == v for k, v in made.items())


def _only(calls: list[Call]) -> Call | None:
    """The oldest of these calls, if all have one name and the same arguments. Calls that were not run come first."""
    calls = [call for call in calls if call.run is None] or calls
    if len({call.name for call in calls}) != 1 or any(call.known_args != calls[0].known_args for call in calls):
        return None
    return calls[0]


def _error(result: Any) -> str:
    """The message of an error, without the word that LangChain puts before it."""
    text = result if isinstance(result, str) else safe_text(result)
    return text.removeprefix("Error: ") or "Unknown error"


def _cited(call: Call, artifact: Any) -> list[AnyEvent]:
    """Documents that a retriever hands over beside its text."""
    documents = items_of(artifact)
    return [
        SourceCited(
            agent_id=call.agent_id,
            title=str(document.metadata.get("title") or document.metadata.get("source") or "Document"),
            url=str(document.metadata.get("url") or document.metadata.get("source") or ""),
            text=document.page_content,
        )
        for document in documents
        if hasattr(document, "page_content") and isinstance(getattr(document, "metadata", None), dict)
    ]
