"""Translates Agno's events into Limelight's Events. Pure: no event loop, no clock, no import of Agno.

Events of teams have the same names with the prefix "Team". Each run of an agent or team in the turn is an AgentRun; the
run without a parent is that of the main agent. `feed` translates one event, `await_approval` and `finish_call` show the
calls that a person decides about, and `end` completes the turn.
"""

from collections.abc import Callable
from typing import Any

from limelight.errors import AgentFailed
from limelight.events import AgentStarted, AnyEvent, FinalAnswer, RunCancelled, RunFinished, Status
from limelight.grammar import parse_args
from limelight.json_values import json_text, json_value, safe_text
from limelight.sources.agno.agents import AgentRun, AgnoCall
from limelight.sources.agno.files import Media
from limelight.sources.agno.messages import CONTENT_EVENTS, Citations, completion_text, only_text, reasoning_text
from limelight.sources.agno.tool_calls import OwnEvent, Rejection, ToolCalls, member_error, spawning_call
from limelight.sources.base import Item
from limelight.sources.messages import MessageIds
from limelight.sources.resume_state import ResumeState
from limelight.sources.tool_calls import UniqueIds
from limelight.sources.tool_results import final_answer

STATUS = {
    "MemoryUpdateStarted": "Updating the memory",
    "SessionSummaryStarted": "Summing up the conversation",
    "CompressionStarted": "Compressing the results of tools",
    "CompactionStarted": "Compacting the conversation",
    "ParserModelResponseStarted": "Bringing the answer into shape",
    "OutputModelResponseStarted": "Writing the answer",
    "FollowupsStarted": "Thinking of what to ask next",
}
"""The status text for each Agno event that becomes a status."""
DROPS = frozenset(
    {
        "RunContentCompleted",  # repeats the end of the request or of the run
        "ParserModelResponseCompleted",
        "OutputModelResponseCompleted",
        "PreHookStarted",
        "PreHookCompleted",
        "PostHookStarted",
        "PostHookCompleted",
        "ReasoningStarted",  # the first delta opens the reasoning
        "TaskIterationCompleted",
    }
)
"""Names of Agno's events that are ignored. A test checks that STATUS, DROPS and `handled` together are all of Agno's
events."""
COMPLETIONS = (
    "FollowupsCompleted",
    "MemoryUpdateCompleted",
    "SessionSummaryCompleted",
    "CompressionCompleted",
    "CompactionCompleted",
)
"""Names of Agno's events that report the result of work in the background, which becomes a status."""
ENDS = frozenset({"RunCompleted", "RunError", "RunCancelled", "RunPaused"})
AFTER_REJECTION = ENDS | {"ToolCallStarted", "ModelRequestStarted"}
"""Names of the events that Agno can send after it has rejected a call; until one arrives, the rejection is not
reported."""
NO_CONNECTION = ("Connection error.", "Request timed out.")
"""Error messages of the model's client to which the model's URL is added."""
REASONING_TOOLS = ("think", "analyze")
"""Names of Agno's tools whose arguments contain the model's reasoning."""


class AgnoTranslator:
    """Translates Agno's stream into the Events of one turn."""

    def __init__(self, max_steps: int | None = None, address: str = "") -> None:
        """Start a turn. The model's URL (`address`) is added to connection errors, because Agno omits it."""
        self.ended = False
        """True once the turn's terminal event was returned."""
        self.rejections: list[Rejection] = []
        """Calls that Agno has rejected and that were not reported yet. The turn's models append to this list."""
        self._max_steps = max_steps
        self._address = address
        self._message_ids = MessageIds()
        self._agent_ids = UniqueIds()
        self._main = AgentRun("", self._message_ids)
        self._main_id = ""
        self._runs: dict[str, AgentRun] = {}
        """The runs of this turn, by Agno's run id."""
        self._restored: dict[str, AgentRun] = {}
        """The runs of a resumed turn by agent id; Agno's run ids of the team members are not known yet."""
        self._media = Media()
        self._calls = ToolCalls(self._media)
        self._citations = Citations()
        self._content: Any = None
        self._held_tools: dict[str, Any] = {}
        """Agno's records of the calls that paused runs hold, by Agno's call id. Agno sets their results later."""
        self._handlers: dict[str, Callable[[AgentRun, Any], list[Any]]] = {
            "RunStarted": self._run_started,
            "RunContinued": self._run_continued,
            "RunContent": self._run_content,
            "RunIntermediateContent": self._run_content,
            "RunCompleted": self._run_completed,
            "RunError": self._run_error,
            "RunCancelled": self._run_cancelled,
            "RunPaused": self._run_paused,
            "ModelRequestStarted": self._request_started,
            "ModelRequestCompleted": self._request_completed,
            "ToolCallStarted": lambda run, event: self._calls.start(run, event.tool)[1],
            "ToolCallCompleted": self._calls.complete,
            "ToolCallError": self._calls.fail,
            "ReasoningContentDelta": self._reasoning_delta,
            "ReasoningStep": self._reasoning_step,
            "ReasoningCompleted": self._reasoning_completed,
            "TaskIterationStarted": self._iteration_started,
            "TaskStateUpdated": AgentRun.update_plan,
            "TaskCreated": AgentRun.update_plan,
            "TaskUpdated": AgentRun.update_plan,
            **dict.fromkeys(COMPLETIONS, self._background_completed),
            **dict.fromkeys(("CustomEvent", OwnEvent.NAME.value), self._custom_event),
        }

    def restore(self, state: ResumeState, run_id: str) -> None:
        """Restore the translator of a run (Agno's `run_id`) that was waiting for a person when its server ended."""
        self._main_id = run_id
        self._runs[run_id] = self._main
        self._message_ids.count = len(state.message_ids)
        self._agent_ids.reserve(state.agent_ids)
        self._restored = {"": self._main}
        for agent_id, started in state.agents.items():
            parent = self._restored[started.parent_id]
            member = self._restored[agent_id] = AgentRun(agent_id, self._message_ids, parent, name=started.name)
            member.started = member.paused = True
        self._calls.restore(state, self._restored)
        for agent_id, started in state.agents.items():
            member = self._restored[agent_id]
            member.spawned_by = (member.parent or self._main).calls.get(started.call_id)
            if member.spawned_by is not None:
                member.spawned_by.members.append(member)
        for agent_id, run in self._restored.items():
            run.restore_steps(state.step_numbers.get(agent_id, 0), state.steps.get(agent_id))

    def continue_from(self, output: Any) -> None:
        """Continue with a paused run of Agno, and with the paused runs of its members."""
        paused, seen = [output], set[int]()
        while paused:
            run = paused.pop()
            if id(run) not in seen:
                seen.add(id(run))
                self._held_tools |= {tool.tool_call_id: tool for tool in getattr(run, "tools", None) or ()}
                requirements = getattr(run, "requirements", None) or ()
                paused += [getattr(requirement, "_member_run_response", None) for requirement in requirements]

    @property
    def handled(self) -> frozenset[str]:
        """Names of all Agno events that the translator translates."""
        return (frozenset(self._handlers) | frozenset(STATUS)) - {OwnEvent.NAME.value}

    @property
    def run_ids(self) -> frozenset[str]:
        """Agno's ids of all runs in this turn."""
        return frozenset(self._runs)

    def agent_id_of(self, run_id: str) -> str:
        """Return the id of the agent that executes a run of Agno; the main agent's if the run is unknown."""
        run = self._runs.get(run_id)
        return "" if run is None else run.agent_id

    def feed(self, event: Any) -> list[Item]:
        if self.ended:
            return []
        if event.event in CONTENT_EVENTS:  # fast path: most events only add text to an open text
            run = self._runs.get(event.run_id)
            if run is not None and not run.ended and (delta := run.messages.append(only_text(event))):
                return [delta]
        return self._translate(event)

    def _translate(self, event: Any) -> list[Item]:
        """Translate an event that does more than add text to an open text."""
        name = str(event.event).removeprefix("Team")
        run = self._run_of(event)
        if run.ended:
            return []
        before: list[Item] = [] if name == "RunStarted" or run is self._main else [*self._start(run)]
        if self.rejections and name in AFTER_REJECTION:
            before += self._show_rejections(run, event.run_id, name)
        if name in STATUS:
            return [*before, Status(agent_id=run.agent_id, text=STATUS[name])]
        handler = self._handlers.get(name)
        return before if handler is None else [*before, *handler(run, event)]

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
        if not run_id:  # some events of an output model have no run id
            children = [run for run in self._runs.values() if parent_id and run.parent is parent and not run.ended]
            return children[-1] if children else parent
        return self._add_member(run_id, parent, event)

    def _add_member(self, run_id: str, parent: AgentRun, event: Any) -> AgentRun:
        member_id = getattr(event, "agent_id", None) or getattr(event, "team_id", None) or ""
        name = getattr(event, "agent_name", None) or getattr(event, "team_name", None) or member_id
        restored = self._find_restored(parent, str(name))
        if restored is not None:
            self._runs[run_id] = restored
            return restored
        call = spawning_call(parent, {member_id, name})
        agent_id = self._agent_ids.assign(member_id or "agent")
        run = self._runs[run_id] = AgentRun(agent_id, self._message_ids, parent, call, str(name or "agent"))
        return run

    def _find_restored(self, parent: AgentRun, name: str) -> AgentRun | None:
        """Return the run of a resumed turn that a run of Agno continues; None if it is a new run."""
        restored = next((r for r in self._restored.values() if r.parent is parent and r.name == name), None)
        return None if restored in self._runs.values() else restored

    def _start(self, run: AgentRun) -> list[AnyEvent]:
        """Return the event that starts a team member, unless it was already returned."""
        if run.started:
            return []
        run.started = True
        call = run.spawned_by
        if call is not None:
            call.members.append(run)
        started = AgentStarted(
            agent_id=run.agent_id,
            name=run.name,
            parent_id=run.parent.agent_id if run.parent else "",
            call_id=call.call_id if call else "",
        )
        return [started]

    def _run_started(self, run: AgentRun, _: Any) -> list[AnyEvent]:
        if run is self._main or run.started:  # Agno starts a run again after an error
            return run.end_step()
        return self._start(run)

    def _run_continued(self, run: AgentRun, _: Any) -> list[Item]:
        run.paused = False
        return self._finish_held_calls(run)

    def _run_paused(self, run: AgentRun, _: Any) -> list[AnyEvent]:
        run.paused = True
        return run.messages.close()

    def _run_completed(self, run: AgentRun, event: Any) -> list[Item]:
        events = [*self._citations.feed(event, run.agent_id), *self._media.feed(event, run.agent_id)]
        content = getattr(event, "content", None)
        if run is self._main:
            self._content = content
            return [*events, *run.end_step()]
        return [*events, *_structured_text(run, content), *run.end(), *self._finish_held_call(run)]

    def _run_error(self, run: AgentRun, event: Any) -> list[Item]:
        message = safe_text(getattr(event, "content", None) or getattr(event, "error_type", None) or "Unknown error")
        if run is self._main:
            add_address = message in NO_CONNECTION and self._address
            raise AgentFailed(f"{message.rstrip('.')}: {self._address}" if add_address else message)
        return [*run.end(message), *self._finish_held_call(run)]

    def _run_cancelled(self, run: AgentRun, event: Any) -> list[Item]:
        reason = str(getattr(event, "reason", None) or "cancelled")
        if run is self._main:
            self.ended = True
            return [RunCancelled(reason=reason)]
        return [*run.end(reason), *self._finish_held_call(run)]

    def _finish_held_call(self, run: AgentRun) -> list[Item]:
        """Finish the call that started this run, if its result was held back and all its team members have ended.

        If Agno's record of the call is known, the call is finished when its run continues: Agno then sets the result.
        """
        parent = run.parent or self._main
        held = {raw_id: call for raw_id, call in parent.calls.items() if call is run.spawned_by}
        return [] if held.keys() & self._held_tools.keys() else self._finish_ready(parent, held)

    def _finish_held_calls(self, run: AgentRun) -> list[Item]:
        """Finish the held calls of a run that continues, with the results that Agno has set."""
        return self._finish_ready(run, dict(run.calls))

    def _finish_ready(self, run: AgentRun, calls: dict[str, AgnoCall]) -> list[Item]:
        items: list[Item] = []
        for raw_id, call in calls.items():
            if call.is_ready:
                tool = self._held_tools.get(raw_id)
                result = tool.result if tool is not None else call.members_text or call.held_result
                items += self._calls.finish(run, call, result, member_error(call))
        return items

    # Messages and reasoning

    def _request_started(self, run: AgentRun, _: Any) -> list[Item]:
        if run is self._main and self._max_steps is not None and run.steps >= self._max_steps:
            return [*run.end_step(), *self._final_events("max_steps")]
        return [*run.start_step()]

    def _request_completed(self, run: AgentRun, event: Any) -> list[AnyEvent]:
        return run.add_usage(str(getattr(event, "model", None) or ""), event.input_tokens, event.output_tokens)

    def _run_content(self, run: AgentRun, event: Any) -> list[Item]:
        content = getattr(event, "content", None)
        events = run.messages.reasoning(getattr(event, "reasoning_content", None) or "")
        if isinstance(content, str):
            events += run.messages.text(content)
        elif content is not None:
            run.answer = content
        return [*events, *self._citations.feed(event, run.agent_id), *self._media.feed(event, run.agent_id)]

    def _reasoning_delta(self, run: AgentRun, event: Any) -> list[AnyEvent]:
        run.reasoning_streamed = True
        return run.messages.reasoning(event.reasoning_content or "")

    def _reasoning_step(self, run: AgentRun, event: Any) -> list[AnyEvent]:
        if run.last_tool in REASONING_TOOLS:
            return []
        run.reasoning_streamed = True
        return run.messages.reasoning(reasoning_text(event.content))

    def _reasoning_completed(self, run: AgentRun, event: Any) -> list[AnyEvent]:
        is_known = run.reasoning_streamed or run.last_tool in REASONING_TOOLS
        run.reasoning_streamed = False
        steps = () if is_known else getattr(event.content, "reasoning_steps", None) or ()
        text = "".join(reasoning_text(step) for step in steps)
        return [*run.messages.reasoning(text), *run.messages.close()]

    def _iteration_started(self, run: AgentRun, event: Any) -> list[AnyEvent]:
        return [Status(agent_id=run.agent_id, text=f"Round {event.iteration} of at most {event.max_iterations}")]

    def _background_completed(self, run: AgentRun, event: Any) -> list[AnyEvent]:
        text = completion_text(event)
        return [Status(agent_id=run.agent_id, text=text)] if text else []

    # Tool calls

    def _custom_event(self, run: AgentRun, event: Any) -> list[AnyEvent]:
        return self._calls.custom_event(run, event, self._runs.values())

    def _show_rejections(self, run: AgentRun, run_id: str, name: str) -> list[Item]:
        """Report the rejected calls of a run whose model request Agno has already reported.

        Events that Agno sent before a rejection may arrive after it. At the end of the run all rejected calls are
        shown.
        """
        at_end = name in ENDS
        due = [r for r in self.rejections if r.run_id == run_id and (at_end or r.requests <= run.steps)]
        self.rejections[:] = [rejection for rejection in self.rejections if rejection not in due]
        return [item for rejection in due for item in self._calls.reject(run, rejection.call)]

    def await_approval(self, tool: Any, run_id: str | None) -> tuple[AgnoCall, AgentRun, list[AnyEvent]]:
        """Start a call that waits for a person, which Agno does not report. Returns call, run and events."""
        run = self._runs.get(run_id or "") or self._restored_with(tool.tool_call_id) or self._main
        if run_id:
            self._runs.setdefault(run_id, run)
        call, events = self._calls.await_approval(run, tool)
        return call, run, events

    def _restored_with(self, raw_id: str | None) -> AgentRun | None:
        return next((run for run in self._restored.values() if raw_id in run.calls), None)

    def finish_call(self, run: AgentRun, call: AgnoCall, result: Any, error: str | None) -> list[Item]:
        """Finish a call that Agno will not run, because a person rejected it or supplied its result."""
        return self._calls.finish(run, call, result, error)

    # The end

    def end(self, output: Any = None) -> list[Item]:
        """Return the last events of the turn, after Agno's stream has ended.

        `output` is Agno's record of the run, which may contain rejected calls that were not shown.
        """
        if self.ended:
            return []
        events = self._finish_held_calls(self._main)
        for rejection in self.rejections:
            run = self._runs.get(rejection.run_id, self._main)
            events += self._calls.reject(self._main if run.ended else run, rejection.call)
        events += self._calls.reject_missed(self._main, output)
        return [*events, *self._main.end_step(), *self._final_events()]

    def _final_events(self, code: str = "") -> list[AnyEvent]:
        self.ended = True
        messages = self._main.messages
        if self._main.answer is not None:
            answer = final_answer(self._main.answer)
        elif messages.last_id is not None:
            answer = FinalAnswer(content=messages.last_text, message_id=messages.last_id)
        else:
            answer = final_answer(self._content)
        return [answer, RunFinished(code=code)]


def _structured_text(run: AgentRun, content: Any) -> list[AnyEvent]:
    """Return the events that show a member's answer as JSON if it is an object of an output schema.

    Agno does not stream the text of such an answer.
    """
    messages = run.messages
    if content is None or isinstance(content, str) or parse_args(messages.last_text) == json_value(content):
        return []
    return [*messages.close(), *messages.text(json_text(content))]
