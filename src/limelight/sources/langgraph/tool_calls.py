"""Tracks the tool calls of a graph, from the first chunk of their arguments to the message with their result. Pure.

LangGraph may report the start or the end of a tool call twice or not at all: a retried tool starts again under the same
id, an unknown tool never starts, and a resumed tool starts again. Every method is therefore idempotent for each call,
and the first report of an end ends the call.
"""

from typing import Any

import msgspec

from limelight.events import AnyEvent, Outcome, SourceCited
from limelight.grammar import parse_args
from limelight.json_values import fields_of, items_of, json_text, safe_text
from limelight.sources.base import Item
from limelight.sources.langgraph.stream_parts import Namespace
from limelight.sources.resume_state import ResumeState
from limelight.sources.tool_calls import CallIds, ToolCall
from limelight.sources.tool_results import args_value, tool_result


def elapsed_ms(started_at: float, now: float) -> int:
    return max(0, round((now - started_at) * 1000))


class ToolRun(msgspec.Struct):
    """An execution of a tool that a graph's node started itself, matched to a tool call of a model."""

    run_id: str
    name: str
    args: Any
    """The tool's input; None if it is unknown."""
    task_id: str
    """The id of the graph task in which the tool runs; "" if several tasks are possible."""
    ns: Namespace
    started_at: float
    """Start time in seconds on the translator's clock."""
    guessed: bool = False
    """Whether the match with the call is a guess, because their names or arguments differ; a better match replaces it.
    """
    live: bool = True
    returned: bool = False
    value: Any = None
    duration_ms: int | None = None

    @property
    def failed(self) -> bool:
        """Whether the tool has ended without a value: by an error, or because its task was interrupted."""
        return not (self.live or self.returned)

    def end(self, now: float) -> None:
        self.live = False
        self.duration_ms = elapsed_ms(self.started_at, now)


class GraphCall(ToolCall):
    """A tool call that a model has made, or that represents a tool which a node ran without a model's call."""

    def __init__(
        self, agent_id: str, call_id: str, name: str, raw_id: str, args: dict[str, Any] | str | None = None
    ) -> None:
        super().__init__(agent_id, call_id, name, args)
        self.raw_id = raw_id
        self.asked = False
        """Whether an interrupt of the current stream asks a person to approve the call."""
        self.error = ""
        """The error that the tool has raised. It is final only if the graph does not retry the tool."""
        self.made_in = ""
        """The id of the graph task in which the model made the call."""
        self.message_id = ""
        """LangGraph's id of the message in which the model made the call."""
        self.started_by_id = False
        """Whether LangGraph has reported the start of a tool with this call's id."""
        self.run: ToolRun | None = None

    @property
    def is_free(self) -> bool:
        """Whether the call can still be matched to a tool run: no tool was started for it, or the last one failed.

        The tool may have been started under the id of the call, or as a tool run.
        """
        if self.run is not None:
            return self.run.failed
        return not self.started_by_id or bool(self.error)

    def start_by_id(self) -> None:
        """Record that LangGraph reported a tool's start with this call's id; an earlier failed run is discarded."""
        self.started_by_id = True
        if self.run is not None and self.run.failed:
            self.run = None

    def ready_with(self, given: Any) -> list[AnyEvent]:
        """Mark the arguments as complete: the model's, or the tool's input if the model's are not a JSON object."""
        use_given = bool(fields_of(given)) and isinstance(parse_args(self.args_text), str)
        return self.ready(args_value(given) if use_given else None)

    def output_value(self, value: Any) -> list[AnyEvent]:
        """Add output that the running tool has written, as a value of any type."""
        if value in (None, ""):
            return []
        return self.output(value if isinstance(value, str) else json_text(value) + "\n")

    def finish_with_message(self, message: Any, duration_ms: int | None = None) -> list[Item]:
        """End the call with its result message, or with the error of its tool if the tool has failed.

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

    def fail(self, error: str, outcome: Outcome = "") -> list[Item]:
        duration_ms = None if self.run is None else self.run.duration_ms
        return self.finish(error=error, outcome=outcome, duration_ms=duration_ms)

    def finish_with_run(self) -> list[Item]:
        """End the call with its tool's return value or error, if either is known."""
        if self.run is not None and self.run.returned:
            return self.finish_with_value(self.run.value)
        return self.fail(self.error) if self.error else []


class ToolCalls:
    """All tool calls of one run, by agent and LangGraph's call id (`raw_id`)."""

    def __init__(self) -> None:
        self._ids = CallIds()
        self._calls: dict[tuple[str, str], list[GraphCall]] = {}
        self._streaming: dict[tuple[str, int], GraphCall] = {}
        """The calls whose arguments are being streamed, by message id and index."""
        self._made_in: dict[str, list[GraphCall]] = {}
        """The calls by the id of the graph task in which a model made them."""

    def restore(self, state: ResumeState) -> None:
        """Restore the tool calls of a resumed run that have no result in its log."""
        self._ids.reserve(state.call_ids)
        for left in state.calls.values():
            call = GraphCall(left.agent_id, left.call_id, left.name, left.call_id, left.args)
            self._calls.setdefault((left.agent_id, left.call_id), []).append(call)

    # Starts

    def append_chunk(self, agent_id: str, message_id: str, chunk: dict[str, Any], task_id: str = "") -> list[AnyEvent]:
        """Add a streamed chunk of a model's call: the name comes first, then the arguments."""
        at = (message_id, chunk.get("index") or 0)
        call = self._streaming.get(at)
        events: list[AnyEvent] = []
        is_unnumbered = chunk.get("name") and not chunk.get("id") and chunk.get("index") is None
        if call is None or is_unnumbered or (chunk.get("id") and chunk["id"] != call.raw_id):
            if not chunk.get("name"):
                return []
            raw_id = chunk.get("id") or ""
            call = self._streaming[at] = self._add(agent_id, raw_id, chunk["name"], None, task_id, message_id)
            events += call.start()
        return [*events, *call.append_args(chunk.get("args") or "")]

    def start(
        self, agent_id: str, raw_id: str, name: str, args: Any, task_id: str = "", message_id: str = ""
    ) -> list[AnyEvent]:
        """Start a call with complete arguments, unless a call with the same LangGraph id is open."""
        call = self.get(agent_id, raw_id)
        if call is not None and not call.finished:
            return []
        return self.start_new(agent_id, raw_id, name, args, task_id, message_id)

    def start_new(
        self, agent_id: str, raw_id: str, name: str, args: Any, task_id: str = "", message_id: str = ""
    ) -> list[AnyEvent]:
        """Start a call with complete arguments, even if a call with the same LangGraph id is open."""
        return self._add(agent_id, raw_id, name, args_value(args), task_id, message_id).start()

    def _add(
        self,
        agent_id: str,
        raw_id: str,
        name: str,
        args: dict[str, Any] | str | None,
        task_id: str,
        message_id: str,
    ) -> GraphCall:
        call = GraphCall(agent_id, self._ids.start(raw_id), name or "unknown", raw_id, args)
        call.made_in, call.message_id = task_id, message_id
        self._calls.setdefault((agent_id, raw_id), []).append(call)
        self._made_in.setdefault(task_id, []).append(call)
        return call

    # Lookups

    def get(self, agent_id: str, raw_id: str) -> GraphCall | None:
        """Return the agent's tool call with this LangGraph id; None if there is none.

        Models repeat ids: the oldest open call takes precedence, then the newest call.
        """
        same = self._calls.get((agent_id, raw_id))
        if not same:
            return None
        return next((call for call in same if not call.finished), same[-1])

    @property
    def open(self) -> list[GraphCall]:
        return [call for same in self._calls.values() for call in same if not call.finished]

    def has_open(self, agent_id: str) -> bool:
        return any(call.agent_id == agent_id for call in self.open)

    def open_ids(self, agent_id: str) -> set[str]:
        """Return LangGraph's ids of an agent's open calls."""
        return {call.raw_id for call in self.open if call.agent_id == agent_id}

    def open_with_id(self, agent_id: str, raw_id: str) -> list[GraphCall]:
        """Return an agent's open calls with this LangGraph id, oldest first; "" finds the calls without an id."""
        return [call for call in self._calls.get((agent_id, raw_id), ()) if not call.finished]

    def waiting_in(self, message_id: str, raw_id: str) -> GraphCall | None:
        """Return the only call with this LangGraph id that a model made in a message, if its tool has not started.

        Calls whose arguments are not a JSON object are left out: LangChain repairs them in the complete message.
        """
        same = [call for each in self._calls.values() for call in each if call.message_id == message_id]
        same = [call for call in same if call.raw_id == raw_id]
        call = same[0] if raw_id and len(same) == 1 else None
        is_waiting = call is not None and not call.finished and call.is_free and isinstance(call.known_args, dict)
        return call if is_waiting else None

    def open_made_in(self, task_id: str) -> list[GraphCall]:
        """Return the open calls that a model made in this graph task."""
        return [call for call in self._made_in.get(task_id, ()) if not call.finished] if task_id else []

    def was_made_in(self, agent_id: str, raw_id: str, task_id: str) -> bool:
        """Whether a model made a call with this LangGraph id in this task; a returned message then repeats it."""
        return any(call.made_in == task_id for call in self._calls.get((agent_id, raw_id), ()) if task_id)

    def assign_id(self, agent_id: str, raw_id: str, name: str, args: Any, runs: list[GraphCall]) -> bool:
        """Give the call in `runs` with this name and these arguments a LangGraph id. Returns whether there is one.

        `runs` are calls that represent tool runs without a model's call. The call is removed from this list.
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
    """Return citation events for the documents that a retriever tool returns as its artifact."""
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
