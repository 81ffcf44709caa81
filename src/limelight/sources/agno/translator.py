"""Agno's events -> Events. Pure: no loop, no clock, and no Agno, for events are known by their names.

The twins of teams have the same names with "Team" before them. Each run of an agent or team within the turn is an
AgentRun; the one without a parent is the main agent's. `feed` takes every event in turn; `pause` and `settle` show
what a person has to decide; `end` says what is left when the stream has ended.
"""

from collections.abc import Callable
from typing import Any

from limelight.errors import AgentFailed
from limelight.events import (
    AgentStarted,
    FinalAnswer,
    RunCancelled,
    RunFinished,
    Status,
    ToolFinished,
    ToolOutputDelta,
    ToolStarted,
)
from limelight.sources.agno.agent_run import AgentRun, Call
from limelight.sources.agno.citing import Citing
from limelight.sources.agno.custom import custom_text, noises_of, without_noise
from limelight.sources.agno.files import Media
from limelight.sources.agno.refused import refused_calls
from limelight.sources.agno.talking import Ids, thought_text
from limelight.sources.agno.tasks import Tasks
from limelight.sources.base import CallIds, Item
from limelight.sources.values import args_value, final_answer, json_value, safe_text

STATUS = {
    "MemoryUpdateStarted": "Updating the memory",
    "SessionSummaryStarted": "Summing up the conversation",
    "CompressionStarted": "Compressing the results of tools",
    "CompactionStarted": "Compacting the conversation",
    "ParserModelResponseStarted": "Bringing the answer into shape",
    "OutputModelResponseStarted": "Writing the answer",
    "FollowupsStarted": "Thinking of what to ask next",
}
"""Events that a person may like to see, and the line that says so."""

DROPS = frozenset(
    {
        "RunContentCompleted",  # the request or the run that ends says the same
        "MemoryUpdateCompleted",
        "SessionSummaryCompleted",
        "CompressionCompleted",
        "CompactionCompleted",
        "ParserModelResponseCompleted",
        "OutputModelResponseCompleted",
        "FollowupsCompleted",
        "PreHookStarted",
        "PreHookCompleted",
        "PostHookStarted",
        "PostHookCompleted",
        "ReasoningStarted",  # the first piece of a thought opens it
        "TaskIterationCompleted",
    }
)
"""Events without a counterpart."""

DELEGATING = ("delegate_task_to_member", "delegate_task_to_members", "execute_task", "execute_tasks_parallel")
"""Agno's own tools that start members."""


class AgnoTranslator:
    """Follows one turn."""

    def __init__(self, max_steps: int | None = None) -> None:
        self.over = False
        """True once the terminal event has been given."""
        self._max_steps = max_steps
        self._ids = Ids()
        self._calls = CallIds()
        self._main = AgentRun("", self._ids)
        self._main_id = ""
        self._runs: dict[str, AgentRun] = {}
        self._media = Media()
        self._citing = Citing()
        self._tasks: dict[str, Tasks] = {}
        self._content: Any = None
        self._known: set[str] = set()
        """The raw ids of all calls that were shown."""
        self._feeding: dict[str, Callable[[AgentRun, Any], list[Item]]] = {
            "RunStarted": self._started,
            "RunContinued": self._continued,
            "RunContent": self._said,
            "RunIntermediateContent": self._said,
            "RunCompleted": self._completed,
            "RunError": self._failed,
            "RunCancelled": self._cancelled,
            "RunPaused": self._paused,
            "ModelRequestStarted": self._asked,
            "ModelRequestCompleted": self._answered,
            "ToolCallStarted": self._tool_started,
            "ToolCallCompleted": self._tool_completed,
            "ToolCallError": self._tool_failed,
            "ReasoningContentDelta": self._thought,
            "ReasoningStep": self._thought_step,
            "ReasoningCompleted": self._thought_whole,
            "TaskIterationStarted": self._round,
            "TaskStateUpdated": self._planned,
            "TaskCreated": self._planned,
            "TaskUpdated": self._planned,
            "CustomEvent": self._custom,
        }

    @property
    def handled(self) -> frozenset[str]:
        """The names of all events that make a difference."""
        return frozenset(self._feeding) | frozenset(STATUS)

    @property
    def run_ids(self) -> frozenset[str]:
        """Agno's ids of all runs in this turn."""
        return frozenset(self._runs)

    def feed(self, event: Any) -> list[Item]:
        if self.over:
            return []
        name = str(event.event).removeprefix("Team")
        run = self._run_of(event)
        if run.over:
            return []
        before = self._missing_start(run, event) if name != "RunStarted" else []
        if name in STATUS:
            return [*before, Status(agent_id=run.agent_id, text=STATUS[name])]
        feeding = self._feeding.get(name)
        return before if feeding is None else [*before, *feeding(run, event)]

    # Runs

    def _run_of(self, event: Any) -> AgentRun:
        run_id = getattr(event, "run_id", None) or ""
        parent_id = getattr(event, "parent_run_id", None) or ""
        if not self._main_id and run_id:
            self._main_id = run_id
            self._runs[run_id] = self._main
        if run_id in self._runs:
            return self._runs[run_id]
        parent = self._runs.get(parent_id, self._main)
        if not run_id:  # some events of an output model do not say whose they are
            children = [run for run in self._runs.values() if parent_id and run.parent is parent and not run.over]
            return children[-1] if children else parent
        return self._member(run_id, parent, event)

    def _member(self, run_id: str, parent: AgentRun, event: Any) -> AgentRun:
        member_id = getattr(event, "agent_id", None) or getattr(event, "team_id", None) or ""
        name = getattr(event, "agent_name", None) or getattr(event, "team_name", None) or member_id
        call = _spawning(parent, {member_id, name})
        run = AgentRun(self._ids.agent(member_id or "agent"), self._ids, parent, call)
        run.name = str(name or "agent")
        self._runs[run_id] = run
        return run

    def _missing_start(self, run: AgentRun, event: Any) -> list[Item]:
        return [] if run is self._main or run.begun else self._started(run, event)

    def _started(self, run: AgentRun, _: Any) -> list[Item]:
        if run is self._main or run.begun:  # begun before: Agno tries again after an error
            return run.end_step()
        run.begun = True
        parent_id = run.parent.agent_id if run.parent else ""
        call = run.spawned_by
        if call is not None:
            call.members.append(run)
        started = AgentStarted(
            agent_id=run.agent_id, name=run.name, parent_id=parent_id, call_id=call.call_id if call else ""
        )
        return [started]

    def _continued(self, run: AgentRun, _: Any) -> list[Item]:
        run.paused = False
        return []

    def _paused(self, run: AgentRun, _: Any) -> list[Item]:
        run.paused = True
        return run.talk.pause()

    def _completed(self, run: AgentRun, event: Any) -> list[Item]:
        events = [*self._citing.of(event, run.agent_id), *self._media.of(event, run.agent_id)]
        if run is self._main:
            self._content = getattr(event, "content", None)
            return [*events, *run.end_step()]
        return [*events, *run.end(), *self._late_report(run)]

    def _failed(self, run: AgentRun, event: Any) -> list[Item]:
        message = safe_text(getattr(event, "content", None) or getattr(event, "error_type", None) or "Unknown error")
        if run is self._main:
            raise AgentFailed(message)
        return [*run.end(message), *self._late_report(run)]

    def _cancelled(self, run: AgentRun, event: Any) -> list[Item]:
        reason = str(getattr(event, "reason", None) or "cancelled")
        if run is self._main:
            self.over = True
            return [RunCancelled(reason=reason)]
        return [*run.end(reason), *self._late_report(run)]

    def _late_report(self, run: AgentRun) -> list[Item]:
        """The end of a call whose result had to wait because a member of it waited for a person."""
        call = run.spawned_by
        if call is None or not call.is_held or any(not member.over for member in call.members):
            return []
        texts = [f"{member.name}: {member.talk.last_text}" for member in call.members if member.talk.last_text]
        result = texts[0].partition(": ")[2] if len(texts) == 1 else "\n".join(texts)
        parent = run.parent or self._main
        return self._finish(parent, call, result or call.held, _error_among(call))

    # What is said and thought

    def _asked(self, run: AgentRun, _: Any) -> list[Item]:
        if run is self._main and self._max_steps is not None and run.steps >= self._max_steps:
            return [*run.end_step(), *self._final("max_steps")]
        return run.begin_step()

    def _answered(self, run: AgentRun, event: Any) -> list[Item]:
        return run.used(str(getattr(event, "model", None) or ""), event.input_tokens, event.output_tokens)

    def _said(self, run: AgentRun, event: Any) -> list[Item]:
        content = getattr(event, "content", None)
        events = run.talk.think(getattr(event, "reasoning_content", None) or "")
        if isinstance(content, str):
            events += run.talk.say(content)
        elif content is not None:
            run.answer = content
        return [*events, *self._citing.of(event, run.agent_id), *self._media.of(event, run.agent_id)]

    def _thought(self, run: AgentRun, event: Any) -> list[Item]:
        run.thinks = True
        return run.talk.think(event.reasoning_content or "")

    def _thought_step(self, run: AgentRun, event: Any) -> list[Item]:
        if run.last_tool in ("think", "analyze"):  # the arguments of the tool have it
            return []
        run.thinks = True
        return run.talk.think(thought_text(event.content))

    def _thought_whole(self, run: AgentRun, event: Any) -> list[Item]:
        thinks, run.thinks = run.thinks, False
        steps = getattr(event.content, "reasoning_steps", None) or ()
        whole = "" if thinks or run.last_tool in ("think", "analyze") else "".join(thought_text(s) for s in steps)
        return [*run.talk.think(whole), *run.talk.pause()]

    # Tools

    def _tool_started(self, run: AgentRun, event: Any) -> list[Item]:
        return self._begin(run, event.tool)[1]

    def _begin(self, run: AgentRun, tool: Any) -> tuple[Call, list[Item]]:
        """A call, and what shows it. One that waited for a person is there already."""
        raw = tool.tool_call_id or ""
        if raw in run.calls and run.calls[raw].waits:
            call = run.calls[raw]
            call.waits = False
            return call, []
        call = Call(self._calls.start(raw), tool.tool_name or "", tool.tool_args)
        call.alone = not run.calls
        for other in run.calls.values():
            other.alone = False
        run.calls[raw] = call
        self._known.add(raw)
        started = ToolStarted(
            agent_id=run.agent_id, call_id=call.call_id, name=call.name, args=args_value(tool.tool_args)
        )
        return call, [*run.talk.pause(), started]

    def _tool_completed(self, run: AgentRun, event: Any) -> list[Item]:
        tool = event.tool
        call = run.calls.get(tool.tool_call_id or "")
        if call is None:
            return []
        files = self._media.of(event, run.agent_id, call.call_id)
        if any(member.paused and not member.over for member in call.members):
            call.held, call.is_held = tool.result, True
            return files
        error = safe_text(tool.result) if tool.tool_call_error else _error_among(call)
        return [*files, *self._finish(run, call, tool.result, error, _duration(call, tool))]

    def _tool_failed(self, run: AgentRun, event: Any) -> list[Item]:
        call = run.calls.get(event.tool.tool_call_id or "")
        if call is None:  # its end has said so
            return []
        return self._finish(run, call, "", safe_text(event.error or event.tool.result))

    def _finish(
        self, run: AgentRun, call: Call, result: Any, error: str | None = None, duration_ms: int | None = None
    ) -> list[Item]:
        raw = next((raw for raw, known in run.calls.items() if known is call), call.call_id)
        run.calls.pop(raw, None)
        run.last_tool = call.name
        self._calls.finish(raw)
        finished = ToolFinished(
            agent_id=run.agent_id,
            call_id=call.call_id,
            result="" if error is not None else json_value(without_noise(result, call.noise)),
            error=error,
            duration_ms=duration_ms,
        )
        return [finished]

    def _custom(self, run: AgentRun, event: Any) -> list[Item]:
        raw = getattr(event, "tool_call_id", None) or ""
        call = run.calls.get(raw)
        if call is None:
            owner = next((r for r in self._runs.values() if raw and raw in r.calls), None)
            run, call = (owner, owner.calls[raw]) if owner else (run, None)
        text = custom_text(event)
        if call is None or call.waits:
            return [Status(agent_id=run.agent_id, text=text)] if text else []
        call.noise += noises_of(event)
        call.alone = True  # its duration as Agno has it is not the one of its work
        return [ToolOutputDelta(agent_id=run.agent_id, call_id=call.call_id, text=f"{text}\n")] if text else []

    # What a person decides

    def pause(self, tool: Any, run_id: str | None) -> tuple[Call, AgentRun, list[Item]]:
        """A call that waits for a person: Agno does not say that it has begun."""
        run = self._runs.get(run_id or "", self._main)
        raw = tool.tool_call_id or ""
        if raw in run.calls:
            return run.calls[raw], run, []
        call, events = self._begin(run, tool)
        call.waits = True
        return call, run, events

    def settle(self, run: AgentRun, call: Call, result: Any, error: str | None) -> list[Item]:
        """A call that will not run any more, because a person has refused it or has given its result."""
        return self._finish(run, call, result, error)

    # Plans

    def _round(self, run: AgentRun, event: Any) -> list[Item]:
        return [Status(agent_id=run.agent_id, text=f"Round {event.iteration} of at most {event.max_iterations}")]

    def _planned(self, run: AgentRun, event: Any) -> list[Item]:
        return self._tasks.setdefault(run.agent_id, Tasks(run.agent_id)).feed(event)

    # The end

    def end(self, output: Any = None) -> list[Item]:
        """The stream has ended. `output` is what Agno keeps of the run; calls that were never shown are in it."""
        if self.over:
            return []
        return [*self._main.end_step(), *self._refused(output), *self._final()]

    def _refused(self, output: Any) -> list[Item]:
        items: list[Item] = []
        for call in refused_calls(output, self._known):
            call_id = self._calls.start(call.raw_id)
            items += [
                ToolStarted(call_id=call_id, name=call.name, args=call.args),
                ToolFinished(call_id=call_id, error=call.error),
            ]
        return items

    def _final(self, code: str = "") -> list[Item]:
        self.over = True
        talk = self._main.talk
        if self._main.answer is not None:
            answer = final_answer(self._main.answer)
        elif talk.last is not None:
            answer = FinalAnswer(content=talk.last_text, message_id=talk.last)
        else:
            answer = final_answer(self._content)
        return [answer, RunFinished(code=code)]


def _spawning(parent: AgentRun, names: set[str]) -> Call | None:
    """The open call that a member works for: the one that names it, and has nobody yet."""
    calls = [call for call in parent.calls.values() if not call.waits]
    delegating = [call for call in calls if call.name in DELEGATING]
    free = [call for call in delegating if not call.members]
    named = [call for call in free if call.args.get("member_id") in names]
    many = [call for call in delegating if call.name in ("delegate_task_to_members", "execute_tasks_parallel")]
    found = named or many or free or (calls if len(calls) == 1 else [])
    return found[0] if found else None


def _error_among(call: Call) -> str | None:
    """Why a call failed whose members failed, all of them: Agno counts it as a success."""
    errors = [member.error for member in call.members]
    return errors[0] if errors and all(error is not None for error in errors) else None


def _duration(call: Call, tool: Any) -> int | None:
    """Agno's own measure for tools that ran beside others, which all end with the slowest. Else ours is as good."""
    seconds = getattr(getattr(tool, "metrics", None), "duration", None)
    if call.alone or call.members or not seconds:
        return None
    return round(seconds * 1000)
