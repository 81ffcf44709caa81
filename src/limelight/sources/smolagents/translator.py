"""What the taps hear -> Events. Pure: no threads, no clock, and nothing of smolagents but the objects that it is fed.

Each agent of the run has a Part of its own, so that any number of them may be heard at once. `final_answer` is no tool
call to the viewer: its value is the answer, and only when smolagents has accepted it.
"""

from typing import assert_never

from limelight.events import AgentFinished, AgentStarted, RunFinished, Usage
from limelight.sources.base import Item
from limelight.sources.smolagents.agents import Part, Shared
from limelight.sources.smolagents.signals import (
    AgentBegan,
    AgentEnded,
    Answered,
    CallEnded,
    CallMade,
    CallPrinted,
    LimitReached,
    ModelReplied,
    ModelSaid,
    Pictured,
    Planned,
    StepBegan,
    StepBroke,
    StepEnded,
)

AnySignal = (
    AgentBegan
    | AgentEnded
    | StepBegan
    | StepBroke
    | LimitReached
    | ModelSaid
    | ModelReplied
    | CallMade
    | CallPrinted
    | CallEnded
    | Pictured
    | StepEnded
    | Planned
    | Answered
)


class Translator:
    """Follows one run."""

    def __init__(self) -> None:
        self._shared = Shared()
        self._parts: dict[str, Part] = {}
        self._answered = False

    @property
    def answered(self) -> bool:
        """True once the main agent has given its answer."""
        return self._answered

    def call_id(self, ticket: int) -> str:
        """Under which id the viewer knows a call; "" if it does not."""
        return self._shared.calls.by_ticket.get(ticket, "")

    def feed(self, signal: AnySignal) -> list[Item]:
        if type(signal) is ModelSaid:  # nine in ten
            return self._parts[signal.agent_id].said(signal.delta)
        if isinstance(signal, AgentBegan):
            return self._began(signal)
        part = self._parts[signal.agent_id]
        match signal:
            case ModelReplied():
                return [*part.replied(signal.message, signal.streamed), *_usage(signal)]
            case StepBegan():
                return part.step_began(signal)
            case StepBroke():
                part.step_broke(signal.error)
                return []
            case LimitReached():
                return part.limit()
            case CallMade():
                return part.call_made(signal)
            case CallPrinted():
                return part.calls.printed(signal)
            case CallEnded():
                return part.calls.ended(signal)
            case StepEnded():
                return part.step_ended(signal.step)
            case Planned():
                return part.planned(signal.step)
            case Pictured():
                return part.pictured(signal.files)
            case Answered():
                return self._answer(part, signal)
            case AgentEnded():
                return [AgentFinished(agent_id=signal.agent_id, error=signal.error)]
            case ModelSaid():
                return part.said(signal.delta)
            case _:
                assert_never(signal)

    def end(self) -> list[Item]:
        """The agent's stream is over. Without an answer there is nothing to say, and the engine will notice."""
        if not self._answered:
            return []
        return [RunFinished(code="max_steps" if self._parts[""].limit_reached else "")]

    def _began(self, signal: AgentBegan) -> list[Item]:
        self._parts[signal.agent_id] = Part(signal, self._shared)
        if not signal.agent_id:
            return []
        call_id = self.call_id(signal.ticket)
        started = AgentStarted(agent_id=signal.agent_id, name=signal.name, parent_id=signal.parent_id, call_id=call_id)
        return [started]

    def _answer(self, part: Part, signal: Answered) -> list[Item]:
        """A managed agent's answer is the result of the call that spawned it."""
        if part.agent_id or self._answered:
            return []
        self._answered = True
        return part.answer(signal.outcome)


def _usage(signal: ModelReplied) -> list[Item]:
    usage = signal.message.token_usage
    if usage is None or not (usage.input_tokens or usage.output_tokens):
        return []
    tokens = {"input_tokens": usage.input_tokens or 0, "output_tokens": usage.output_tokens or 0}
    return [Usage(agent_id=signal.agent_id, model=signal.model, **tokens)]
