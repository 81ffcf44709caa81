"""The tool calls of a graph, from the first chunk of their arguments to the message with their result. Pure.

LangGraph may report the start or the end of a tool call twice or not at all: a retried tool starts again under the same
id, an unknown tool never starts, and a resumed tool starts again. Every method is therefore idempotent for each call,
and the first report of an end ends the call.
"""

from typing import Any

import msgspec

from limelight.events import AnyEvent, SourceCited
from limelight.grammar import parse_args
from limelight.json_values import safe_text
from limelight.sources.base import Item
from limelight.sources.langgraph.stream_parts import Namespace
from limelight.sources.resume_state import ResumeState
from limelight.sources.tool_calls import CallIds, ToolCall
from limelight.sources.tool_results import args_value, fields_of, items_of, json_text, tool_result


def elapsed_ms(started_at: float, now: float) -> int:
    return max(0, round((now - started_at) * 1000))


class ToolRun(msgspec.Struct):
    """A tool run: one execution of a tool that a node has started itself, matched to a tool call."""

    run_id: str
    name: str
    args: Any
    """The input of the tool; None if it is unknown."""
    task_id: str
    """The id of the task that executes the tool run; "" if several tasks are possible."""
    ns: Namespace
    started_at: float
    """Time of the start in seconds, on the clock of the translator."""
    guessed: bool = False
    """Whether the match is a guess, because name or arguments differ from the call's. A better match replaces it."""
    live: bool = True
    returned: bool = False
    value: Any = None
    duration_ms: int | None = None

    @property
    def failed(self) -> bool:
        """Whether the tool run has ended without a value, by an error or by an interrupt of its task."""
        return not (self.live or self.returned)

    def end(self, now: float) -> None:
        self.live = False
        self.duration_ms = elapsed_ms(self.started_at, now)


class GraphCall(ToolCall):
    """A tool call that a model of a graph has made, or that stands for a tool run without a model's call."""

    def __init__(
        self, agent_id: str, call_id: str, name: str, raw_id: str, args: dict[str, Any] | str | None = None
    ) -> None:
        super().__init__(agent_id, call_id, name, args)
        self.raw_id = raw_id
        self.asked = False
        """Whether an interrupt of the current stream asks a person about the call."""
        self.error = ""
        """The error that the tool has raised. It becomes final when the graph does not retry the tool."""
        self.made_in = ""
        """The id of the task in which the model has made the call."""
        self.started_by_id = False
        """Whether a tool was started under the id of the call."""
        self.run: ToolRun | None = None

    @property
    def is_free(self) -> bool:
        """Whether the call can be matched to a tool run: no tool was started for it, or the last one has failed.

        The tool may have been started under the id of the call, or as a tool run.
        """
        if self.run is not None:
            return self.run.failed
        return not self.started_by_id or bool(self.error)

    def start_by_id(self) -> None:
        """Note that a tool was started under the id of the call. A failed tool run of the call no longer counts."""
        self.started_by_id = True
        if self.run is not None and self.run.failed:
            self.run = None

    def ready_with(self, given: Any) -> list[AnyEvent]:
        """Mark the arguments as complete: those of the model, or the tool's input if those are not a JSON object."""
        use_given = bool(fields_of(given)) and isinstance(parse_args(self.args_text), str)
        return self.ready(args_value(given) if use_given else None)

    def output_value(self, value: Any) -> list[AnyEvent]:
        """Add output of the running tool, which may be any value."""
        if value in (None, ""):
            return []
        return self.output(value if isinstance(value, str) else json_text(value) + "\n")

    def finish_with_message(self, message: Any, duration_ms: int | None = None) -> list[Item]:
        """End the call with its result message. A call whose tool run has failed ends with the error of the tool run.

        This holds even if the message reports a success. A failed tool run with another tool name is ignored, because
        the tool may be a helper of the node.
        """
        content = None if message.content == "null" else message.content  # LangChain's text for None
        failed = getattr(message, "status", "") == "error"
        raised = self.error if self.run is not None and self.run.name == self.name and not failed else ""
        artifact = getattr(message, "artifact", None)
        return self.finish_with_value(content, artifact, failed=failed, raised=raised, duration_ms=duration_ms)

    def finish_with_value(
        self,
        value: Any,
        artifact: Any = None,
        *,
        failed: bool = False,
        raised: str = "",
        duration_ms: int | None = None,
    ) -> list[Item]:
        """End the call with a value, and with an artifact (files or documents) that the model does not get.

        If the call has `failed`, the value is the error; `raised` is an error in addition to the value.
        """
        if self.finished:
            return []
        owner = {"name": self.name, "call_id": self.call_id, "agent_id": self.agent_id}
        result, files = tool_result(value, **owner)
        error: str | None = raised or None
        if failed:
            text = result if isinstance(result, str) else safe_text(result)
            result, error = "", text.removeprefix("Error: ")  # LangChain's prefix
        events = self.finish(
            result,
            error=error,
            duration_ms=duration_ms if self.run is None else self.run.duration_ms,
            files=[*files, *tool_result(artifact, **owner).files],
        )
        return [*events, *_citations(self.agent_id, artifact)]

    def fail(self, error: str) -> list[Item]:
        return self.finish(error=error, duration_ms=None if self.run is None else self.run.duration_ms)

    def finish_with_run(self) -> list[Item]:
        """End the call with the value or the error of its tool, if either is known."""
        if self.run is not None and self.run.returned:
            return self.finish_with_value(self.run.value)
        return self.fail(self.error) if self.error else []


class ToolCalls:
    """All tool calls of one run, by agent and raw id (LangGraph's call id)."""

    def __init__(self) -> None:
        self._ids = CallIds()
        self._calls: dict[tuple[str, str], list[GraphCall]] = {}
        self._streaming: dict[tuple[str, int], GraphCall] = {}
        """Streamed calls by message id and index."""
        self._made_in: dict[str, list[GraphCall]] = {}
        """Calls by the id of the task in which the model has made them."""

    def restore(self, state: ResumeState) -> None:
        """Restore the open calls of a resumed run from its log."""
        self._ids.reserve(state.call_ids)
        for left in state.calls.values():
            call = GraphCall(left.agent_id, left.call_id, left.name, left.call_id, left.args)
            self._calls.setdefault((left.agent_id, left.call_id), []).append(call)

    # Starts

    def append_chunk(self, agent_id: str, message_id: str, chunk: dict[str, Any], task_id: str = "") -> list[AnyEvent]:
        """Add a chunk of a call that a model streams: the name first, then the arguments."""
        at = (message_id, chunk.get("index") or 0)
        call = self._streaming.get(at)
        events: list[AnyEvent] = []
        is_unnumbered = chunk.get("name") and not chunk.get("id") and chunk.get("index") is None
        if call is None or is_unnumbered or (chunk.get("id") and chunk["id"] != call.raw_id):
            if not chunk.get("name"):
                return []
            call = self._streaming[at] = self._add(agent_id, chunk.get("id") or "", chunk["name"], None, task_id)
            events += call.start()
        return [*events, *call.append_args(chunk.get("args") or "")]

    def start(self, agent_id: str, raw_id: str, name: str, args: Any, task_id: str = "") -> list[AnyEvent]:
        """Start a call with complete arguments, unless a call with the same raw id is open."""
        call = self.get(agent_id, raw_id)
        if call is not None and not call.finished:
            return []
        return self.start_new(agent_id, raw_id, name, args, task_id)

    def start_new(self, agent_id: str, raw_id: str, name: str, args: Any, task_id: str = "") -> list[AnyEvent]:
        """Start a call with complete arguments, even if a call with the same raw id is open."""
        return self._add(agent_id, raw_id, name, args_value(args), task_id).start()

    def _add(self, agent_id: str, raw_id: str, name: str, args: dict[str, Any] | str | None, task_id: str) -> GraphCall:
        call = GraphCall(agent_id, self._ids.start(raw_id), name or "unknown", raw_id, args)
        call.made_in = task_id
        self._calls.setdefault((agent_id, raw_id), []).append(call)
        self._made_in.setdefault(task_id, []).append(call)
        return call

    # Lookups

    def get(self, agent_id: str, raw_id: str) -> GraphCall | None:
        """Return the call with a raw id; None if there is none.

        Models repeat raw ids: the oldest open call takes precedence, then the newest call.
        """
        same = self._calls.get((agent_id, raw_id))
        if not same:
            return None
        return next((call for call in same if not call.finished), same[-1])

    @property
    def open(self) -> list[GraphCall]:
        return [call for same in self._calls.values() for call in same if not call.finished]

    def open_with_id(self, agent_id: str, raw_id: str) -> list[GraphCall]:
        """Return the open calls of an agent with this raw id, oldest first. Calls without an id have the raw id ""."""
        return [call for call in self._calls.get((agent_id, raw_id), ()) if not call.finished]

    def open_made_in(self, task_id: str) -> list[GraphCall]:
        """Return the open calls that a model has made in this task."""
        return [call for call in self._made_in.get(task_id, ()) if not call.finished] if task_id else []

    def was_made_in(self, agent_id: str, raw_id: str, task_id: str) -> bool:
        """Whether a model has made a call with this raw id in this task, so that a returned message only repeats it."""
        return any(call.made_in == task_id for call in self._calls.get((agent_id, raw_id), ()) if task_id)

    def assign_id(self, agent_id: str, raw_id: str, name: str, args: Any, runs: list[GraphCall]) -> bool:
        """Assign a raw id to the call in `runs` with this name and these arguments. Returns whether there is one.

        `runs` are calls that stand for tool runs without a model's call. The call is removed from this list.
        """
        found = take_equal(runs, name, args) if raw_id else None
        if found is None:
            return False
        self._calls.setdefault((agent_id, raw_id), []).append(found)
        return True


def take_equal(calls: list[GraphCall], name: str, args: Any) -> GraphCall | None:
    """Remove and return the first call with this name and these arguments; None if there is none."""
    wanted = args_value(args)
    found = next((call for call in calls if call.name == name and call.known_args == wanted), None)
    if found is not None:
        calls.remove(found)
    return found


def _citations(agent_id: str, artifact: Any) -> list[AnyEvent]:
    """Return events for the documents that a retriever returns as an artifact."""
    return [
        SourceCited(
            agent_id=agent_id,
            title=str(document.metadata.get("title") or document.metadata.get("source") or "Document"),
            url=str(document.metadata.get("url") or document.metadata.get("source") or ""),
            text=document.page_content,
        )
        for document in items_of(artifact)
        if hasattr(document, "page_content") and isinstance(getattr(document, "metadata", None), dict)
    ]
