"""One run of one agent or team, as far as it has been seen: its talk, its steps, its open calls.

Pure. Agno calls every delegation a run of its own, with a parent; so a team in a team is a tree of these.
"""

from typing import Any

from limelight.events import AgentFinished, StepFinished, StepStarted, Usage
from limelight.sources.agno.messages import Ids, Talk
from limelight.sources.base import Item


class Call:
    """A tool call that is open."""

    def __init__(self, call_id: str, name: str, args: Any) -> None:
        self.call_id = call_id
        self.name = name
        self.args: dict[str, Any] = args if isinstance(args, dict) else {}
        self.alone = True
        """Whether no other call ran beside it."""
        self.waits = False
        """Whether a person decides about it."""
        self.members: list[AgentRun] = []
        """Whom it gave work to."""
        self.noise: list[str] = []
        """What Agno adds to the result of a tool that sends events of its own."""
        self.held: Any = None
        self.is_held = False
        """Whether its result came while a member still waits for a person, and is held back until then."""


class AgentRun:
    """A run: of the main agent if it has no parent, else of a member."""

    def __init__(
        self, agent_id: str, ids: Ids, parent: "AgentRun | None" = None, spawned_by: Call | None = None
    ) -> None:
        self.agent_id = agent_id
        self.parent = parent
        self.spawned_by = spawned_by
        self.talk = Talk(agent_id, ids)
        self.calls: dict[str, Call] = {}
        """Open calls by the ids that Agno knows them by."""
        self.name = ""
        self.begun = False
        self.steps = 0
        self.thinks = False
        """Whether pieces of the thought that goes on were seen."""
        self.paused = False
        self.over = False
        self.error: str | None = None
        self.last_tool = ""
        self.answer: Any = None
        """An answer that is no text: an object of the output schema."""
        self._step_open = False
        self._tokens: tuple[int | None, int | None] = (None, None)

    def restore_steps(self, number: int, is_open: bool) -> None:
        """Count on from the steps that a run had before its server ended."""
        self.steps, self._step_open = number, is_open

    def begin_step(self) -> list[Item]:
        """A request to the model begins a step; it lasts until the next one, so that its tools are in it."""
        events = self.end_step()
        self.steps += 1
        self._step_open = True
        return [*events, StepStarted(agent_id=self.agent_id, number=self.steps)]

    def end_step(self, error: str | None = None) -> list[Item]:
        events = self.talk.pause()
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

    def used(self, model: str, input_tokens: int | None, output_tokens: int | None) -> list[Item]:
        self._tokens = (input_tokens, output_tokens)
        events = self.talk.pause()
        if input_tokens is None and output_tokens is None:
            return events
        usage = Usage(
            agent_id=self.agent_id, model=model, input_tokens=input_tokens or 0, output_tokens=output_tokens or 0
        )
        return [*events, usage]

    def end(self, error: str | None = None) -> list[Item]:
        """The run of a member is over."""
        self.over, self.error = True, error
        return [*self.end_step(error), AgentFinished(agent_id=self.agent_id, error=error)]
