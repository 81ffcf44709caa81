"""The runs of Agno agents and team members in one turn, with their messages, steps, open calls and plans. Pure.

Agno starts a separate run for every delegation, with a parent run. A team inside a team is therefore a tree of
AgentRuns.
"""

from typing import Any

from limelight.events import AgentFinished, AnyEvent, Plan, StepFinished, StepStarted, Todo, TodoStatus, Usage
from limelight.sources.messages import AgentMessages, MessageIds
from limelight.sources.tool_calls import ToolCall
from limelight.sources.tool_results import args_value

TODO_STATUSES: dict[str, TodoStatus] = {"in_progress": "in_progress", "completed": "completed", "failed": "completed"}
"""The status of a plan item for each task status of Agno; any other task status becomes `pending`."""


class AgnoCall(ToolCall):
    """A tool call of an Agno agent, with the team members that it has started."""

    def __init__(self, agent_id: str, call_id: str, name: str, args: Any) -> None:
        super().__init__(agent_id, call_id, name, args_value(args))
        self.parallel = False
        """Whether another call of the agent ran at the same time."""
        self.awaits_approval = False
        self.members: list[AgentRun] = []
        self.held_result: Any = None
        self.is_held = False
        """Whether the call's result is held back until the team members that it has started have ended."""
        self.generator_ms: int | None = None
        """How long the tool, a generator, has run; Agno's own duration of such a tool is wrong."""

    @property
    def is_ready(self) -> bool:
        """Whether the call's result was held back, and all team members that it has started have ended."""
        return self.is_held and all(member.ended for member in self.members)

    @property
    def members_text(self) -> str:
        """The last text of each team member that the call has started, with the members' names if there are several."""
        texts = [(member.name, member.messages.last_text) for member in self.members if member.messages.last_text]
        return texts[0][1] if len(texts) == 1 else "\n".join(f"{name}: {text}" for name, text in texts)


class AgentRun:
    """A run of an Agno agent, team, team member or workflow within a turn. Only the main agent's run has no parent."""

    def __init__(
        self,
        agent_id: str,
        message_ids: MessageIds,
        parent: "AgentRun | None" = None,
        spawned_by: AgnoCall | None = None,
        name: str = "",
    ) -> None:
        self.agent_id = agent_id
        self.name = name
        self.parent = parent
        self.spawned_by = spawned_by
        self.messages = AgentMessages(agent_id, message_ids)
        self.calls: dict[str, AgnoCall] = {}
        """The open tool calls, by Agno's call id."""
        self.started = False
        self.paused = False
        self.ended = False
        self.error: str | None = None
        self.steps = 0
        self.reasoning_streamed = False
        """Whether deltas of the current reasoning were already streamed."""
        self.last_tool = ""
        self.answer: Any = None
        """The answer as an object of the agent's output schema; None if the answer is text."""
        self._step_open = False
        self._step_kind = "action"
        self._tokens: tuple[int | None, int | None] = (None, None)
        self._tasks: dict[str, Todo] = {}
        self._last_plan: tuple[Todo, ...] | None = None

    def restore_steps(self, number: int, step: StepStarted | None) -> None:
        """Continue a resumed run's steps from the last step in its log; `step` is that step if it is still open."""
        self.steps, self._step_open = number, step is not None
        self._step_kind = "action" if step is None else step.step_kind

    def start_step(self, kind: str = "action") -> list[AnyEvent]:
        """Return the events that start a step.

        A step of an agent is one request to the model, and the tools that run before the next one. A step of a workflow
        has its name as `kind`.
        """
        events = self.end_step()
        self.steps += 1
        self._step_open, self._step_kind = True, kind
        return [*events, StepStarted(agent_id=self.agent_id, number=self.steps, step_kind=kind)]

    def end_step(self, error: str | None = None) -> list[AnyEvent]:
        events = self.messages.close()
        if not self._step_open:
            return events
        self._step_open = False
        (input_tokens, output_tokens), self._tokens = self._tokens, (None, None)
        finished = StepFinished(
            agent_id=self.agent_id,
            number=self.steps,
            step_kind=self._step_kind,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            error=error,
        )
        return [*events, finished]

    def add_usage(self, model: str, input_tokens: int | None, output_tokens: int | None) -> list[AnyEvent]:
        self._tokens = (input_tokens, output_tokens)
        events = self.messages.close()
        if input_tokens is None and output_tokens is None:
            return events
        usage = Usage(
            agent_id=self.agent_id, model=model, input_tokens=input_tokens or 0, output_tokens=output_tokens or 0
        )
        return [*events, usage]

    def update_plan(self, event: Any) -> list[AnyEvent]:
        """Return the plan of an Agno team that works on a list of tasks, after an event about these tasks.

        The event has all `tasks`, or one task with its `task_id`.
        """
        for task in getattr(event, "tasks", None) or ():
            self._tasks[task.id] = _todo(task.title, task.status)
        task_id = getattr(event, "task_id", "")
        if task_id:
            known = self._tasks.get(task_id)
            title = event.title or (known.content if known else "")
            self._tasks[task_id] = _todo(title, event.status)
        items = tuple(self._tasks.values())
        if not items or items == self._last_plan:
            return []
        update, self._last_plan = self._last_plan is not None, items
        return [Plan(agent_id=self.agent_id, items=items, update=update)]

    def end(self, error: str | None = None) -> list[AnyEvent]:
        """Return the events that end a team member's run, with its open step and message."""
        self.ended, self.error = True, error
        return [*self.end_step(error), AgentFinished(agent_id=self.agent_id, error=error)]


def _todo(title: str, status: str) -> Todo:
    return Todo(f"{title} (failed)" if status == "failed" else title, TODO_STATUSES.get(status, "pending"))
