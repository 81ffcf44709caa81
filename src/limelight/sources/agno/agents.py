"""The agents of a turn: their messages, steps, open tool calls and task plans. Pure.

Agno starts a separate run for every delegation, with a parent run. A team inside a team is therefore a tree of
AgentRuns.
"""

from typing import Any

from limelight.events import AgentFinished, AnyEvent, Plan, StepFinished, StepStarted, Todo, TodoStatus, Usage
from limelight.sources.messages import AgentMessages, MessageIds
from limelight.sources.tool_calls import ToolCall
from limelight.sources.tool_results import args_value

TODO_STATUSES: dict[str, TodoStatus] = {"in_progress": "in_progress", "completed": "completed", "failed": "completed"}
"""The status of a plan item for each of Agno's task statuses; any other status means pending."""


class AgnoCall(ToolCall):
    """A tool call, with the team members that it has started."""

    def __init__(self, agent_id: str, call_id: str, name: str, args: Any) -> None:
        super().__init__(agent_id, call_id, name, args_value(args))
        self.parallel = False
        """Whether another call ran at the same time."""
        self.awaits_approval = False
        self.members: list[AgentRun] = []
        self.event_texts: list[str] = []
        """The texts that Agno appends to the tool's result for the custom events of the tool."""
        self.held_result: Any = None
        self.is_held = False
        """Whether the result is held back until the members that the call has started have ended."""


class AgentRun:
    """One of Agno's runs in a turn: that of the main agent, or with a parent that of a team member."""

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
        """Open calls by Agno's call ids."""
        self.started = False
        self.paused = False
        self.ended = False
        self.error: str | None = None
        self.steps = 0
        self.reasoning_streamed = False
        """Whether deltas of the current reasoning were streamed."""
        self.last_tool = ""
        self.answer: Any = None
        """The answer as an object of the output schema; None if the answer is text."""
        self._step_open = False
        self._tokens: tuple[int | None, int | None] = (None, None)
        self._tasks: dict[str, Todo] = {}
        self._last_plan: tuple[Todo, ...] | None = None

    def restore_steps(self, number: int, is_open: bool) -> None:
        """Restore the number of the last step of a resumed run, and whether the step is open."""
        self.steps, self._step_open = number, is_open

    def start_step(self) -> list[AnyEvent]:
        """Start a step: one request to the model, with the tools that run until the next request."""
        events = self.end_step()
        self.steps += 1
        self._step_open = True
        return [*events, StepStarted(agent_id=self.agent_id, number=self.steps)]

    def end_step(self, error: str | None = None) -> list[AnyEvent]:
        events = self.messages.close()
        if not self._step_open:
            return events
        self._step_open = False
        (input_tokens, output_tokens), self._tokens = self._tokens, (None, None)
        finished = StepFinished(
            agent_id=self.agent_id,
            number=self.steps,
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
        """Update the plan of a team that works on a list of tasks.

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
        """End the run of a team member."""
        self.ended, self.error = True, error
        return [*self.end_step(error), AgentFinished(agent_id=self.agent_id, error=error)]


def _todo(title: str, status: str) -> Todo:
    return Todo(f"{title} (failed)" if status == "failed" else title, TODO_STATUSES.get(status, "pending"))
