"""Agno's events -> Events. Pure: no loop, no clock, and no Agno, for events are known by their names.

The twins of teams have the same names with "Team" before them. Each run of an agent or team within the turn is an
AgentRun; the one without a parent is the main agent's. `feed` takes every event in turn; `pause` and `settle` show
what a person has to decide; `end` says what is left when the stream has ended.
"""

from collections.abc import Callable
from typing import Any

from limelight.errors import AgentFailed
from limelight.events import AgentStarted, FinalAnswer, RunCancelled, RunFinished, Status, TextDelta
from limelight.sources.agno.agents import AgentRun, Call
from limelight.sources.agno.citations import Citing
from limelight.sources.agno.event_names import STATUS
from limelight.sources.agno.fast_path import PIECES, PlainTexts
from limelight.sources.agno.files import Media
from limelight.sources.agno.messages import Ids, thought_text
from limelight.sources.agno.rejected_calls import Refusal
from limelight.sources.agno.tasks import Tasks
from limelight.sources.agno.tool_calls import Calling, error_among, spawning
from limelight.sources.base import Item
from limelight.sources.resume_state import SoFar
from limelight.sources.values import final_answer, safe_text

ENDS = frozenset({"RunCompleted", "RunError", "RunCancelled", "RunPaused"})
AFTER_A_REFUSAL = ENDS | {"ToolCallStarted", "ModelRequestStarted"}
"""The events that may follow when calls were refused; others of the same request are older."""
UNANSWERED = ("Connection error.", "Request timed out.")
"""What the client of a model says if nobody answers."""


class AgnoTranslator:
    """Follows one turn."""

    def __init__(self, max_steps: int | None = None, address: str = "") -> None:
        """`address` is where the agent's model is: of an exception Agno tells the text only, without it."""
        self.over = False
        """True once the terminal event has been given."""
        self._max_steps = max_steps
        self._address = address
        self._ids = Ids()
        self._main = AgentRun("", self._ids)
        self._main_id = ""
        self._runs: dict[str, AgentRun] = {}
        self._left: dict[str, AgentRun] = {}
        """Members of a run whose server ended, whose ids in Agno are not known again yet."""
        self._plain = PlainTexts()
        self._media = Media()
        self._calling = Calling(self._media)
        self._citing = Citing()
        self._tasks: dict[str, Tasks] = {}
        self._content: Any = None
        self.refusals: list[Refusal] = []
        """What Agno has refused and nobody has been shown yet; the source lets the models write here."""
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
            "ToolCallCompleted": self._calling.completed,
            "ToolCallError": self._calling.failed,
            "ReasoningContentDelta": self._thought,
            "ReasoningStep": self._thought_step,
            "ReasoningCompleted": self._thought_whole,
            "TaskIterationStarted": self._round,
            "TaskStateUpdated": self._planned,
            "TaskCreated": self._planned,
            "TaskUpdated": self._planned,
            "CustomEvent": self._custom,
        }

    def restore(self, so_far: SoFar, run_id: str) -> None:
        """Be where the run was when its server ended: it waits for a person."""
        self._main_id = run_id
        self._runs[run_id] = self._main
        self._ids.restore(len(so_far.message_ids), so_far.agent_ids)
        self._left = {"": self._main}
        for agent_id, started in so_far.agents.items():
            member = self._left[agent_id] = AgentRun(agent_id, self._ids, self._left[started.parent_id])
            member.name, member.begun, member.paused = started.name, True, True
        self._calling.restore(so_far, self._left)
        for agent_id, started in so_far.agents.items():
            member = self._left[agent_id]
            member.spawned_by = (member.parent or self._main).calls.get(started.call_id)
            if member.spawned_by is not None:
                member.spawned_by.members.append(member)
        for agent_id, run in self._left.items():
            run.restore_steps(so_far.step_numbers.get(agent_id, 0), agent_id in so_far.steps)

    @property
    def handled(self) -> frozenset[str]:
        """The names of all events that make a difference."""
        return frozenset(self._feeding) | frozenset(STATUS)

    @property
    def run_ids(self) -> frozenset[str]:
        """Agno's ids of all runs in this turn."""
        return frozenset(self._runs)

    def agent_of(self, run_id: str) -> str:
        """The agent whose run this is, by Agno's id of it; the main one if it is not known."""
        run = self._runs.get(run_id)
        return "" if run is None else run.agent_id

    def feed(self, event: Any) -> list[Item]:
        if self.over:
            return []
        if event.event in PIECES and (more := self._goes_on(event)) is not None:
            return [more]
        name = str(event.event).removeprefix("Team")
        run = self._run_of(event)
        if run.over:
            return []
        before = self._missing_start(run, event) if name != "RunStarted" else []
        if self.refusals and name in AFTER_A_REFUSAL:
            before += self._refused(run, event.run_id, name)
        if name in STATUS:
            return [*before, Status(agent_id=run.agent_id, text=STATUS[name])]
        feeding = self._feeding.get(name)
        return before if feeding is None else [*before, *feeding(run, event)]

    def _goes_on(self, event: Any) -> TextDelta | None:
        """One more plain piece of a message that is open."""
        run = self._runs.get(event.run_id)
        if run is None or run.over or not (text := self._plain.of(event)):
            return None
        return run.talk.goes_on(text)

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
        left = next((r for r in self._left.values() if r.parent is parent and r.name == name), None)
        if left is not None and left not in self._runs.values():
            self._runs[run_id] = left
            return left
        call = spawning(parent, {member_id, name})
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
            unanswered = message in UNANSWERED and self._address
            raise AgentFailed(f"{message.rstrip('.')}: {self._address}" if unanswered else message)
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
        return self._calling.finish(parent, call, result or call.held, error_among(call))

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
        return self._calling.begin(run, event.tool)[1]

    def _custom(self, run: AgentRun, event: Any) -> list[Item]:
        owner, call = self._calling.owner(run, getattr(event, "tool_call_id", None) or "", self._runs.values())
        return self._calling.custom(owner, call, event)

    def _refused(self, run: AgentRun, run_id: str, name: str) -> list[Item]:
        """What was refused in this run, by now: events may be on their way that are older than a refusal."""
        ends = name in ENDS
        due = [r for r in self.refusals if r.run_id == run_id and (ends or r.requests <= run.steps)]
        self.refusals[:] = [refusal for refusal in self.refusals if refusal not in due]
        return [item for refusal in due for item in self._calling.refused(run, refusal.call)]

    def _shown(self, refusal: Refusal) -> list[Item]:
        run = self._runs.get(refusal.run_id, self._main)
        return self._calling.refused(self._main if run.over else run, refusal.call)

    def pause(self, tool: Any, run_id: str | None) -> tuple[Call, AgentRun, list[Item]]:
        """A call that waits for a person: Agno does not say that it has begun."""
        run = self._runs.get(run_id or "") or self._left_with(tool.tool_call_id) or self._main
        if run_id:
            self._runs.setdefault(run_id, run)
        call, events = self._calling.wait(run, tool)
        return call, run, events

    def _left_with(self, raw_id: str | None) -> AgentRun | None:
        return next((run for run in self._left.values() if raw_id in run.calls), None)

    def settle(self, run: AgentRun, call: Call, result: Any, error: str | None) -> list[Item]:
        """A call that will not run any more, because a person has refused it or has given its result."""
        return self._calling.finish(run, call, result, error)

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
        left = [item for refusal in self.refusals for item in self._shown(refusal)]
        return [*left, *self._calling.never_shown(self._main, output), *self._main.end_step(), *self._final()]

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
