"""Tracks the tool calls of a turn: which of Agno's events starts, continues or ends which call. Pure.

Agno emits no event for a call that it rejects, because the tool is unknown or the arguments are not JSON. The model of
the copied agent reports these calls (`instrument`). Calls that it misses are found at the end, in the messages of the
run.

A tool may yield custom events, which are its live output. Agno also appends the `str` of each to the tool's result.
"""

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, NamedTuple, cast

from limelight.events import AnyEvent, Status
from limelight.grammar import parse_args
from limelight.json_values import json_text, json_value, safe_text
from limelight.sources.agno.agents import AgentRun, AgnoCall
from limelight.sources.agno.files import Media
from limelight.sources.base import Item
from limelight.sources.resume_state import ResumeState
from limelight.sources.tool_calls import CallIds, ToolCall
from limelight.sources.tool_results import args_value

DELEGATE_ONE = ("delegate_task_to_member", "execute_task")
DELEGATE_MANY = ("delegate_task_to_members", "execute_tasks_parallel")
"""Names of Agno's own tools that start one team member (DELEGATE_ONE) or several (DELEGATE_MANY)."""
GENERATOR_EVENTS = ("ToolText", "ToolEnded")
"""Names of the classes in `tool_output`."""
EVENT_FIELDS = frozenset(
    {"created_at", "event", "agent_id", "agent_name", "team_id", "team_name", "run_id", "parent_run_id", "session_id"}
    | {"workflow_id", "workflow_run_id", "step_id", "step_name", "step_index", "nested_depth", "tools", "tool_call_id"}
)
"""The fields that every Agno event has. Any other field of a custom event was defined by the tool's author."""


class OwnEvent(Enum):
    """The name of the events that Limelight puts into Agno's stream. Agno must not store them with its own."""

    NAME = "LimelightEvent"


class RejectedCall(NamedTuple):
    """A tool call that Agno has rejected without running it."""

    raw_id: str
    name: str
    args: dict[str, Any] | str
    error: str


class Rejection(NamedTuple):
    """A rejected call, with Agno's id of its run and the number of the model request that made the call."""

    run_id: str
    requests: int
    call: RejectedCall


class ToolCalls:
    """All tool calls of an Agno agent and its team members in one turn."""

    def __init__(self, media: Media) -> None:
        self._media = media
        self._ids = CallIds()
        self._shown: set[str] = set()
        """Agno's ids of all calls for which events were emitted."""

    def restore(self, state: ResumeState, runs: Mapping[str, AgentRun]) -> None:
        """Restore the tool calls of a resumed run that have no result in its log.

        Calls without an approval request are marked as held: they wait for the members that they have started.
        """
        self._ids.reserve(state.call_ids)
        self._shown.update(state.call_ids)
        asked = {request.call_id for request in state.requests}
        for left in state.calls.values():
            call = AgnoCall(left.agent_id, left.call_id, left.name, left.args)
            call.awaits_approval, call.is_held = left.call_id in asked, left.call_id not in asked
            runs[left.agent_id].calls[left.call_id] = call

    def start(self, run: AgentRun, tool: Any) -> tuple[AgnoCall, list[AnyEvent]]:
        """Start a tool call. Returns it and its events; none if an approval request has already shown the call."""
        raw_id = tool.tool_call_id or ""
        if raw_id in run.calls and run.calls[raw_id].awaits_approval:
            call = run.calls[raw_id]
            call.awaits_approval = False
            return call, []
        call = AgnoCall(run.agent_id, self._ids.start(raw_id), tool.tool_name or "", tool.tool_args)
        call.parallel = bool(run.calls)
        for other in run.calls.values():
            other.parallel = True
        run.calls[raw_id] = call
        self._shown.add(raw_id)
        return call, [*run.messages.close(), *call.start()]

    def await_approval(self, run: AgentRun, tool: Any) -> tuple[AgnoCall, list[AnyEvent]]:
        """Start a call that waits for a person's approval. Returns it and its events, if any are new."""
        raw_id = tool.tool_call_id or ""
        if raw_id in run.calls:
            return run.calls[raw_id], []
        call, events = self.start(run, tool)
        call.awaits_approval = True
        return call, events

    def complete(self, run: AgentRun, event: Any) -> list[Item]:
        tool = event.tool
        call = run.calls.get(tool.tool_call_id or "")
        if call is None:
            return []
        files = self._media.feed(event, run.agent_id, call.call_id)
        if any(member.paused and not member.ended for member in call.members):
            call.held_result, call.is_held = tool.result, True
            return files
        error = safe_text(tool.result) if tool.tool_call_error else member_error(call)
        return [*files, *self.finish(run, call, tool.result, error, _duration_ms(call, tool))]

    def fail(self, run: AgentRun, event: Any) -> list[Item]:
        call = run.calls.get(event.tool.tool_call_id or "")
        if call is None:  # the call has already ended with an error
            return []
        return self.finish(run, call, "", safe_text(event.error or event.tool.result))

    def finish(
        self, run: AgentRun, call: AgnoCall, result: Any, error: str | None = None, duration_ms: int | None = None
    ) -> list[Item]:
        raw_id = next((raw_id for raw_id, known in run.calls.items() if known is call), call.call_id)
        run.calls.pop(raw_id, None)
        run.last_tool = call.name
        self._ids.finish(raw_id)
        return call.finish("" if error is not None else json_value(result), error=error, duration_ms=duration_ms)

    def custom_event(self, run: AgentRun, event: Any, runs: Iterable[AgentRun]) -> list[AnyEvent]:
        """Emit a custom event of a tool as the tool's output, or as a status if no tool runs."""
        kind = type(event).__name__
        raw_id = event.call_id if kind in GENERATOR_EVENTS else getattr(event, "tool_call_id", None)
        run, call = _owner(run, raw_id or "", runs)
        if kind == "ToolEnded":
            if call is not None:
                call.generator_ms = round(event.seconds * 1000)
            return []
        if kind == "ToolText" and call is not None:
            return call.output(event.content)
        text = _custom_text(event)
        if call is None or call.awaits_approval:
            return [Status(agent_id=run.agent_id, text=text)] if text else []
        call.parallel = False  # do not use Agno's duration: custom events make it wrong
        return call.output(f"{text}\n") if text else []

    def reject(self, run: AgentRun, call: RejectedCall) -> list[Item]:
        """Return the events that report a call rejected by Agno as a failed call."""
        self._shown.add(call.raw_id)
        rejected = ToolCall(run.agent_id, self._ids.start(call.raw_id), call.name, call.args)
        self._ids.finish(call.raw_id)
        return [*run.messages.close(), *rejected.start(), *rejected.finish(error=call.error)]

    def reject_missed(self, run: AgentRun, output: Any) -> list[Item]:
        """Report the rejected calls that are in a run's messages but were not reported before."""
        messages = [m for m in getattr(output, "messages", None) or () if not getattr(m, "from_history", False)]
        missed = list(rejected_calls(messages, self._shown))
        return [item for call in missed for item in self.reject(run, call)]


def rejected_calls(messages: Iterable[Any], shown: set[str]) -> Iterator[RejectedCall]:
    """Yield the rejected calls in these messages: calls with a result whose ids are not in `shown`."""
    messages = list(messages)
    results = {m.tool_call_id: safe_text(m.content or "") for m in messages if m.role == "tool"}
    for message in messages:
        for call in message.tool_calls or ():
            raw_id = str(call.get("id") or "")
            if raw_id in shown or raw_id not in results:
                continue
            function: dict[str, Any] = call.get("function") or {}
            sent = function.get("arguments")
            args = parse_args(sent) if isinstance(sent, str) else args_value(sent)
            yield RejectedCall(raw_id, str(function.get("name") or ""), args, results[raw_id].removeprefix("Error: "))


def spawning_call(parent: AgentRun, names: set[str]) -> AgnoCall | None:
    """Return the open call that started a team member; None if it is unknown.

    A call that names the member and has started no other member takes precedence.
    """
    calls = [call for call in parent.calls.values() if not call.awaits_approval]
    many = [call for call in calls if call.name in DELEGATE_MANY]
    free = [call for call in calls if call.name in DELEGATE_ONE + DELEGATE_MANY and not call.members]
    named = [call for call in free if isinstance(call.args, dict) and call.args.get("member_id") in names]
    found = named or many or free or (calls if len(calls) == 1 else [])
    return found[0] if found else None


def member_error(call: AgnoCall) -> str | None:
    """Return the error of a call whose team members have all failed, else None; to Agno the call has succeeded."""
    errors = [member.error for member in call.members]
    return errors[0] if errors and all(error is not None for error in errors) else None


def _owner(run: AgentRun, raw_id: str, runs: Iterable[AgentRun]) -> tuple[AgentRun, AgnoCall | None]:
    """Return the open call with this id of Agno, and the run of the call; None and this run if there is no such call.

    This run is searched first, then the others.
    """
    for candidate in (run, *(runs if raw_id else ())):
        if raw_id in candidate.calls:
            return candidate, candidate.calls[raw_id]
    return run, None


def _duration_ms(call: AgnoCall, tool: Any) -> int | None:
    """Return the duration of a generator, or a call's duration as measured by Agno if it ran in parallel, else None.

    Agno reports the ends of parallel calls together, after the slowest.
    """
    if call.generator_ms is not None and not call.members:
        return call.generator_ms
    seconds = getattr(getattr(tool, "metrics", None), "duration", None)
    if not call.parallel or call.members or not seconds:
        return None
    return round(seconds * 1000)


def _custom_text(event: Any) -> str:
    """Return the text of a custom event: its content, or else the fields that its author defined, as JSON."""
    content: Any = getattr(event, "content", None)
    if isinstance(content, str) and content:
        return content
    own = cast("dict[str, Any]", vars(event))
    fields = {name: value for name, value in own.items() if name not in EVENT_FIELDS and value is not None}
    return json_text(fields) if fields else ""
