"""The rounds of an agent's loop: a model call with the tools that follow it, or one node of any other graph. Pure."""

import msgspec

from limelight.events import AnyEvent, StepFinished, StepStarted, Usage
from limelight.sources.resume_state import SoFar

LOOP_NODES = frozenset({"model", "agent", "model_request", "call_model", "chatbot", "llm"})
"""Nodes that are an agent's own loop; the round of another node is called after it."""
PLANNING = "planning"
"""The kind of a round in which nothing is said but a plan. No node is that, also if it is called so."""


class Step(msgspec.Struct):
    number: int
    kind: str
    task_id: str
    running: bool = True
    input_tokens: int | None = None
    output_tokens: int | None = None


class Steps:
    """The open round of each agent."""

    def __init__(self, limit: int | None = None) -> None:
        self.exceeded = False
        """True once the main agent wants to begin more rounds than it may."""
        self._limit = limit
        self._open: dict[str, Step] = {}
        self._numbers: dict[str, int] = {}

    def restore(self, so_far: SoFar) -> None:
        """Know again which rounds were open when the server of a run ended."""
        self._numbers = dict(so_far.step_numbers)
        self._open = {a: Step(s.number, s.step_kind, "", running=False) for a, s in so_far.steps.items()}

    def count(self, agent_id: str = "") -> int:
        """How many rounds an agent has begun."""
        return self._numbers.get(agent_id, 0)

    def begin(self, agent_id: str, node: str, task_id: str) -> list[AnyEvent]:
        """A node has started. One that runs beside another belongs to the same round."""
        current = self._open.get(agent_id)
        if current is not None and (current.running or current.task_id == task_id):
            return []
        if not agent_id and self._limit is not None and self.count() >= self._limit:
            self.exceeded = True
            return []
        events = self.finish(agent_id)
        number = self._numbers[agent_id] = self.count(agent_id) + 1
        step = self._open[agent_id] = Step(number, _kind(node), task_id)
        return [*events, StepStarted(agent_id=agent_id, number=number, step_kind=step.kind)]

    def task_ended(self, agent_id: str, task_id: str) -> None:
        step = self._open.get(agent_id)
        if step is not None and step.task_id == task_id:
            step.running = False

    def add(self, usage: Usage) -> None:
        step = self._open.get(usage.agent_id)
        if step is not None:
            step.input_tokens = (step.input_tokens or 0) + usage.input_tokens
            step.output_tokens = (step.output_tokens or 0) + usage.output_tokens

    def finish(self, agent_id: str, error: str | None = None) -> list[AnyEvent]:
        step = self._open.pop(agent_id, None)
        if step is None:
            return []
        finished = StepFinished(
            agent_id=agent_id,
            number=step.number,
            step_kind=step.kind,
            input_tokens=step.input_tokens,
            output_tokens=step.output_tokens,
            error=error,
        )
        return [finished]


def _kind(node: str) -> str:
    if node in LOOP_NODES:
        return "action"
    return "plan" if node == PLANNING else node
