"""The calls of Agno's tools: how they begin, what they say, how they end. Pure.

Which run a call belongs to is the translator's affair; what happens to it stands here.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from limelight.events import Status, ToolFinished, ToolOutputDelta, ToolStarted
from limelight.sources.agno.agents import AgentRun, Call
from limelight.sources.agno.custom_events import custom_text, noises_of, without_noise
from limelight.sources.agno.files import Media
from limelight.sources.agno.rejected_calls import Refused, refused_calls
from limelight.sources.base import CallIds, Item
from limelight.sources.resume_state import SoFar
from limelight.sources.values import args_value, json_value, safe_text

DELEGATING = ("delegate_task_to_member", "delegate_task_to_members", "execute_task", "execute_tasks_parallel")
"""Agno's own tools that start members."""


class Calling:
    """All calls of one turn."""

    def __init__(self, media: Media) -> None:
        self._media = media
        self._ids = CallIds()
        self._known: set[str] = set()
        """The raw ids of all calls that were shown."""

    def restore(self, so_far: SoFar, runs: Mapping[str, AgentRun]) -> None:
        """Know again which calls were open when the server of a run ended; people are asked about some of them."""
        self._ids.reserve(so_far.call_ids)
        self._known.update(so_far.call_ids)
        asked = {request.call_id for request in so_far.requests}
        for left in so_far.calls.values():
            call = Call(left.call_id, left.name, left.args)
            call.waits, call.is_held = left.call_id in asked, left.call_id not in asked
            runs[left.agent_id].calls[left.call_id] = call

    def begin(self, run: AgentRun, tool: Any) -> tuple[Call, list[Item]]:
        """A call, and what shows it. One that waited for a person is there already."""
        raw = tool.tool_call_id or ""
        if raw in run.calls and run.calls[raw].waits:
            call = run.calls[raw]
            call.waits = False
            return call, []
        call = Call(self._ids.start(raw), tool.tool_name or "", tool.tool_args)
        call.alone = not run.calls
        for other in run.calls.values():
            other.alone = False
        run.calls[raw] = call
        self._known.add(raw)
        started = ToolStarted(
            agent_id=run.agent_id, call_id=call.call_id, name=call.name, args=args_value(tool.tool_args)
        )
        return call, [*run.talk.pause(), started]

    def completed(self, run: AgentRun, event: Any) -> list[Item]:
        tool = event.tool
        call = run.calls.get(tool.tool_call_id or "")
        if call is None:
            return []
        files = self._media.of(event, run.agent_id, call.call_id)
        if any(member.paused and not member.over for member in call.members):
            call.held, call.is_held = tool.result, True
            return files
        error = safe_text(tool.result) if tool.tool_call_error else error_among(call)
        return [*files, *self.finish(run, call, tool.result, error, _duration(call, tool))]

    def failed(self, run: AgentRun, event: Any) -> list[Item]:
        call = run.calls.get(event.tool.tool_call_id or "")
        if call is None:  # its end has said so
            return []
        return self.finish(run, call, "", safe_text(event.error or event.tool.result))

    def finish(
        self, run: AgentRun, call: Call, result: Any, error: str | None = None, duration_ms: int | None = None
    ) -> list[Item]:
        raw = next((raw for raw, known in run.calls.items() if known is call), call.call_id)
        run.calls.pop(raw, None)
        run.last_tool = call.name
        self._ids.finish(raw)
        finished = ToolFinished(
            agent_id=run.agent_id,
            call_id=call.call_id,
            result="" if error is not None else json_value(without_noise(result, call.noise)),
            error=error,
            duration_ms=duration_ms,
        )
        return [finished]

    def owner(self, run: AgentRun, raw_id: str, runs: Iterable[AgentRun]) -> tuple[AgentRun, Call | None]:
        """The call with this id, and whose it is: this run's, or else any other's."""
        for candidate in (run, *(runs if raw_id else ())):
            if raw_id in candidate.calls:
                return candidate, candidate.calls[raw_id]
        return run, None

    def custom(self, run: AgentRun, call: Call | None, event: Any) -> list[Item]:
        """An event of a tool's own: its output, or a line for people if no tool is at work."""
        text = custom_text(event)
        if call is None or call.waits:
            return [Status(agent_id=run.agent_id, text=text)] if text else []
        call.noise += noises_of(event)
        call.alone = True  # its duration as Agno has it is not the one of its work
        return [ToolOutputDelta(agent_id=run.agent_id, call_id=call.call_id, text=f"{text}\n")] if text else []

    def wait(self, run: AgentRun, tool: Any) -> tuple[Call, list[Item]]:
        """A call that waits for a person."""
        raw = tool.tool_call_id or ""
        if raw in run.calls:
            return run.calls[raw], []
        call, events = self.begin(run, tool)
        call.waits = True
        return call, events

    def refused(self, run: AgentRun, call: Refused) -> list[Item]:
        """A call that Agno does not tell about, because it knew no such tool or could not read the arguments."""
        self._known.add(call.raw_id)
        call_id = self._ids.start(call.raw_id)
        self._ids.finish(call.raw_id)
        return [
            *run.talk.pause(),
            ToolStarted(agent_id=run.agent_id, call_id=call_id, name=call.name, args=call.args),
            ToolFinished(agent_id=run.agent_id, call_id=call_id, error=call.error),
        ]

    def never_shown(self, run: AgentRun, output: Any) -> list[Item]:
        """Refused calls of a run that nobody has told about."""
        return [item for call in list(refused_calls(output, self._known)) for item in self.refused(run, call)]


def spawning(parent: AgentRun, names: set[str]) -> Call | None:
    """The open call that a member works for: the one that names it, and has nobody yet."""
    calls = [call for call in parent.calls.values() if not call.waits]
    delegating = [call for call in calls if call.name in DELEGATING]
    free = [call for call in delegating if not call.members]
    named = [call for call in free if call.args.get("member_id") in names]
    many = [call for call in delegating if call.name in ("delegate_task_to_members", "execute_tasks_parallel")]
    found = named or many or free or (calls if len(calls) == 1 else [])
    return found[0] if found else None


def error_among(call: Call) -> str | None:
    """Why a call failed whose members failed, all of them: Agno counts it as a success."""
    errors = [member.error for member in call.members]
    return errors[0] if errors and all(error is not None for error in errors) else None


def _duration(call: Call, tool: Any) -> int | None:
    """Agno's own measure for tools that ran beside others, which all end with the slowest. Else ours is as good."""
    seconds = getattr(getattr(tool, "metrics", None), "duration", None)
    if call.alone or call.members or not seconds:
        return None
    return round(seconds * 1000)
