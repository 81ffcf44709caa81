"""Translates the stream of an Agno workflow into Limelight's Events. Pure.

The workflow is the main agent. Each execution of a step is a step of the agent to which it belongs, with its name as
`step_kind`. An agent has one open step at a time, so what contains several steps is a sub-agent:

- each branch of a `Parallel`, and each iteration of a `Loop`;
- a `Condition`, a `Router`, `Steps` and a nested workflow;
- an agent or team that a step runs, with its own texts, tools and steps;
- a function of the main workflow, if it has a result that is not the answer.

Other functions write texts of the agent to which they belong.
"""

from collections.abc import Callable
from typing import Any

from limelight.errors import AgentFailed
from limelight.events import AnyEvent, FinalAnswer, RunCancelled, RunFinished, Status
from limelight.json_values import json_text, safe_text
from limelight.sources.agno.agents import AgentRun
from limelight.sources.agno.step_marks import CARRIED, FUNCTION, PARALLEL, STEP_ENDED, STEP_STARTED, TAG, StepExecution
from limelight.sources.agno.tool_calls import OwnEvent
from limelight.sources.agno.translator import AgnoTranslator
from limelight.sources.base import Item
from limelight.sources.resume_state import ResumeState
from limelight.sources.tool_results import final_answer

WORKFLOW_DROPS = frozenset(
    {
        "WorkflowStarted",
        "WorkflowPaused",  # the approvals are requested when the stream has ended
        "WorkflowAgentStarted",  # the agent's own events show it
        "WorkflowAgentCompleted",
        "StepStarted",  # the marks show all executions of steps, also those that fail
        "StepPaused",
        "StepContinued",
        "StepExecutorPaused",
        "StepExecutorContinued",
        "StepOutputReview",
        "StepError",
        "StepOutput",
        "LoopExecutionStarted",
        "LoopExecutionCompleted",
        "ParallelExecutionStarted",
        "ParallelExecutionCompleted",
        "ConditionExecutionCompleted",
        "ConditionPaused",
        "RouterExecutionCompleted",
        "RouterPaused",
        "StepsExecutionStarted",
        "StepsExecutionCompleted",
    }
)
"""Names of Agno's events that are ignored. A test checks that they and `workflow_handled` are all of Agno's events."""
SEQUENCES = ("Condition", "Router", "Steps")
"""Names of Agno's containers whose steps run one after the other, once."""
PLANNING = "planning"
"""Step kind that clients display as planning. A step with this name gets the kind `plan` instead."""


class WorkflowTranslator(AgnoTranslator):
    """Translates the stream of an Agno workflow into the Events of one turn."""

    def __init__(self, run_id: str, max_steps: int | None = None) -> None:
        super().__init__(max_steps)
        self.run_id = run_id
        """Agno's id of the workflow's run."""
        self._main_id = run_id
        self._runs[run_id] = self._main
        self._open: list[StepExecution] = []
        """The executions that have not ended, in the order in which they started."""
        self._owners: dict[StepExecution, AgentRun] = {}
        """The agent to which each open execution belongs."""
        self._inner: dict[StepExecution, AgentRun] = {}
        """The sub-agent of each open container, iteration or function that has one."""
        self._children: list[tuple[AgentRun, StepExecution | None]] = []
        """All sub-agents that have not ended, with the executions in which they started."""
        self._yielded: dict[StepExecution, list[str]] = {}
        """The texts that the function of each open execution has yielded."""
        self._answers: dict[StepExecution, list[str]] = {}
        """The answers of the agents that the function of each open execution has run."""
        self._completed = False
        self._last_content: Any = None
        """The content of the last step that has ended."""
        self._workflow_handlers: dict[str, Callable[[Any], list[Item]]] = {
            STEP_STARTED: self._step_started,
            STEP_ENDED: self._step_ended,
            "StepCompleted": self._step_completed,
            "StepProgress": self._step_progress,
            "LoopIterationStarted": self._iteration_begun,
            "LoopIterationCompleted": self._iteration_completed,
            "ConditionExecutionStarted": self._condition_evaluated,
            "RouterExecutionStarted": self._route_chosen,
            "WorkflowCompleted": self._workflow_completed,
            "WorkflowError": self._workflow_error,
            "WorkflowCancelled": self._workflow_cancelled,
        }

    @property
    def is_paused(self) -> bool:
        """Whether the stream has ended without the workflow's end, so that the workflow waits for a person."""
        return not self.ended and not self._completed

    @property
    def workflow_handled(self) -> frozenset[str]:
        """Names of all events of Agno's workflows that the translator translates."""
        return frozenset(self._workflow_handlers) - {STEP_STARTED, STEP_ENDED} | {"CustomEvent"}

    def restore(self, state: ResumeState, run_id: str) -> None:
        super().restore(state, run_id)
        self._children = [(run, None) for run in self._restored.values() if run is not self._main]

    def _translate(self, event: Any) -> list[Item]:
        handler = self._workflow_handlers.get(event.event)
        if handler is not None:
            return handler(event)
        if event.event == OwnEvent.NAME.value and (carried := getattr(event, CARRIED, None)) is not None:
            return self.feed(carried)
        if event.event in WORKFLOW_DROPS:
            return []
        started = self._start_function_agent(getattr(event, TAG, None))
        if event.event == "RunContent" and not event.run_id:
            return [*started, *self._function_text(event)]
        return [*started, *super()._translate(event)]

    # Runs

    def _run_of(self, event: Any) -> AgentRun:
        run_id = getattr(event, "run_id", None) or ""
        if run_id in self._runs:
            return self._runs[run_id]
        owner = self._sender(getattr(event, TAG, None))
        if not run_id:
            return owner
        parent = self._runs.get(getattr(event, "parent_run_id", None) or "", self._main)
        run = self._add_member(run_id, owner if parent is self._main else parent, event)
        if all(run is not child for child, _ in self._children):
            self._children.append((run, getattr(event, TAG, None)))
        return run

    def _find_restored(self, parent: AgentRun, name: str) -> AgentRun | None:
        claimed = self._runs.values()
        return next((run for run in self._restored.values() if run.name == name and run not in claimed), None)

    def _sender(self, step: StepExecution | None) -> AgentRun:
        """Return the agent to which the events of an execution belong."""
        if step is None:
            return self._main
        return self._inner.get(step) or self._owners.get(step) or self._main

    def _start_sub_agent(self, name: str, parent: AgentRun, step: StepExecution) -> tuple[AgentRun, list[Item]]:
        """Start a sub-agent in an execution. Returns it and the events."""
        run = AgentRun(self._agent_ids.assign(name), self._message_ids, parent, name=name)
        self._children.append((run, step))
        return run, [*self._start(run)]

    def _end_sub_agents(self, step: StepExecution | None = None, error: str | None = None) -> list[AnyEvent]:
        """Return the events that end all sub-agents in an execution, by default all of the turn, innermost first."""
        events: list[AnyEvent] = []
        kept: list[tuple[AgentRun, StepExecution | None]] = []
        for run, place in reversed(self._children):
            if step is not None and place is not step and (place is None or step not in place.ancestors):
                kept.append((run, place))
            elif run.started and not run.ended:
                events += run.end(error)
        self._children = kept[::-1]
        return events

    def _end_restored(self) -> list[AnyEvent]:
        """Return the events that end the sub-agents that a run has left open at a restart of the server."""
        restored = [run for run in self._restored.values() if run is not self._main]
        ended = [event for run in reversed(restored) if not run.ended for event in run.end()]
        self._restored = {}
        return ended

    def _run_completed(self, run: AgentRun, event: Any) -> list[Item]:
        step = getattr(event, TAG, None)
        if step is not None and step.executor == FUNCTION:
            texts = (safe_text(getattr(event, "content", None) or ""), run.messages.last_text)
            self._answers.setdefault(step, []).extend(texts)
        return super()._run_completed(run, event)

    # Steps

    def _step_started(self, mark: Any) -> list[Item]:
        step: StepExecution = mark.limelight_step
        parent = step.parent if step.parent in self._owners else None
        events: list[Item] = []
        if parent is None:
            owner = self._main
            events += self._end_restored()
            if self._max_steps is not None and owner.steps >= self._max_steps:
                return [*events, *owner.end_step(), *self._final_events("max_steps")]
        elif parent.kind == PARALLEL:
            owner, events = self._start_sub_agent(step.name, self._owners[parent], step)
        elif parent in self._inner:
            owner = self._inner[parent]
        else:
            owner, events = self._start_sub_agent(parent.inner_name or parent.name, self._owners[parent], parent)
            self._inner[parent] = owner
        self._open.append(step)
        self._owners[step] = owner
        if parent is not None and parent.kind == PARALLEL and step.kind in SEQUENCES:
            self._inner[step] = owner  # the branch needs no sub-agent in its sub-agent
            return events
        return [*events, *owner.start_step("plan" if step.name == PLANNING else step.name)]

    def _step_ended(self, mark: Any) -> list[Item]:
        step: StepExecution = mark.limelight_step
        owner = self._owners.get(step)
        if owner is None:
            return []
        output, error, events = step.output, step.error, list[Item]()
        if error is None and output is not None and not output.success:
            error = safe_text(output.error or self._unknown_error(step))
        if error is None and output is not None:
            self._last_content = output.content
            if step.executor == FUNCTION:
                events += self._function_result(step, output.content)
            events += self._media.feed(output, self._sender(step).agent_id)
        events += self._end_sub_agents(step, error)
        if output is not None and output.stop and step.parent is None:
            events.append(Status(text=f"{step.name} has stopped the workflow"))
        if not owner.ended:  # the sub-agent of a branch ends with its step
            events += owner.end_step(error)
        self._forget(step)
        return events

    def _unknown_error(self, step: StepExecution) -> str:
        """Return the error of a failed step for which Agno gives no reason."""
        inside = [run for run, place in self._children if place is not None and step in (place, *place.ancestors)]
        is_paused = any(run.paused for run in inside)
        return "Agno cannot wait for a person in a nested workflow" if is_paused else "The step failed without a reason"

    def _step_completed(self, event: Any) -> list[Item]:
        """End the step whose agent was paused and has continued, which Agno then reports without any mark."""
        if getattr(event, TAG, None) is not None:
            return []
        self._last_content = event.content
        events = [*self._end_sub_agents(), *self._main.end_step()]
        for step in list(self._open):
            self._forget(step)
        return [*events]

    def _forget(self, step: StepExecution) -> None:
        if step in self._open:
            self._open.remove(step)
        for known in (self._owners, self._inner, self._yielded, self._answers):
            known.pop(step, None)

    def _iteration_begun(self, event: Any) -> list[Item]:
        step: StepExecution | None = getattr(event, TAG, None)
        if step is None or step not in self._owners:
            return []
        ended = self._iteration_completed(event)
        name = f"{step.name} (iteration {event.iteration})"
        self._inner[step], started = self._start_sub_agent(name, self._owners[step], step)
        return [*ended, *started]

    def _iteration_completed(self, event: Any) -> list[Item]:
        step: StepExecution | None = getattr(event, TAG, None)
        if step is None or self._inner.pop(step, None) is None:
            return []
        return [*self._end_sub_agents(step)]

    def _condition_evaluated(self, event: Any) -> list[Item]:
        return self._container_status(event, f"the condition is {'true' if event.condition_result else 'false'}")

    def _route_chosen(self, event: Any) -> list[Item]:
        return self._container_status(event, f"chosen: {', '.join(map(str, event.selected_steps or ())) or 'nothing'}")

    def _container_status(self, event: Any, text: str) -> list[Item]:
        step: StepExecution | None = getattr(event, TAG, None)
        owner = self._main if step is None else self._owners.get(step, self._main)
        return [Status(agent_id=owner.agent_id, text=f"{event.step_name or owner.name}: {text}")]

    def _step_progress(self, event: Any) -> list[Item]:
        started = self._start_function_agent(getattr(event, TAG, None))
        text = safe_text(event.content) if event.content else json_text(event.data or {})
        return [*started, Status(agent_id=self._sender(getattr(event, TAG, None)).agent_id, text=text)]

    # Functions

    def _start_function_agent(self, step: StepExecution | None) -> list[Item]:
        """Start the sub-agent of a function of the main workflow, unless its result is probably the answer."""
        if step is None or step.executor != FUNCTION or step.is_last or step in self._inner:
            return []
        if self._owners.get(step) is not self._main:
            return []
        self._inner[step], started = self._start_sub_agent(step.name, self._main, step)
        return started

    def _function_text(self, event: Any) -> list[AnyEvent]:
        step: StepExecution | None = getattr(event, TAG, None)
        text = event.content if isinstance(event.content, str) else ""
        if step is not None:
            self._yielded.setdefault(step, []).append(text)
        return self._sender(step).messages.text(text)

    def _function_result(self, step: StepExecution, content: Any) -> list[Item]:
        """Return the events that show a function's result, unless the function or its agents have said it."""
        is_answer = step.is_last and not isinstance(content, str)
        text = content if isinstance(content, str) else json_text(content)
        answers = self._answers.get(step, [])
        known = {"".join(self._yielded.get(step, ())), "".join(answers[::2]), *answers, ""}
        if content is None or is_answer or text.strip() in {one.strip() for one in known}:
            return []
        started = self._start_function_agent(step)
        messages = self._sender(step).messages
        return [*started, *messages.close(), *messages.text(text), *messages.close()]

    # The end

    def _workflow_completed(self, event: Any) -> list[Item]:
        if event.run_id == self.run_id:
            self._content, self._completed = event.content, True
        return []

    def _workflow_error(self, event: Any) -> list[Item]:
        if event.run_id == self.run_id:
            raise AgentFailed(safe_text(event.error or "Unknown error"))
        return []

    def _workflow_cancelled(self, event: Any) -> list[Item]:
        if event.run_id != self.run_id:
            return []
        self.ended = True
        return [RunCancelled(reason=safe_text(event.reason or event.content or "cancelled"))]

    def end(self, output: Any = None) -> list[Item]:
        if self.ended:
            return []
        return [*self._end_sub_agents(), *super().end(output)]

    def _final_events(self, code: str = "") -> list[AnyEvent]:
        self.ended = True
        content = self._last_content if self._content is None else self._content
        messages = self._main.messages
        if isinstance(content, str) and messages.last_id is not None and messages.last_text == content:
            return [FinalAnswer(content=content, message_id=messages.last_id), RunFinished(code=code)]
        return [final_answer(content), RunFinished(code=code)]
