"""Translates signals into Events. Pure: no threads, no clock, and nothing of smolagents except objects in signals.

Each agent of the run has its own AgentRun, so that several agents may run at once. `final_answer` is not shown as a
tool call: its value is the answer, once smolagents has accepted it.
"""

from collections.abc import Sequence
from typing import assert_never

import msgspec

from limelight.events import AgentFinished, AgentStarted, AnyEvent, RunFinished, Usage
from limelight.sources.base import Item
from limelight.sources.messages import MessageIds
from limelight.sources.smolagents.agents import AgentRun
from limelight.sources.smolagents.signals import (
    AgentBegan,
    AgentEnded,
    AnswerAccepted,
    CallEnded,
    CallOutput,
    CallReady,
    ImagesObserved,
    ModelDelta,
    ModelReplied,
    PlanEnded,
    StepBegan,
    StepEnded,
    StepFailed,
    StepLimitReached,
)
from limelight.sources.smolagents.tool_calls import RunCalls

AnySignal = (
    AgentBegan
    | AgentEnded
    | StepBegan
    | StepFailed
    | StepLimitReached
    | ModelDelta
    | ModelReplied
    | CallReady
    | CallOutput
    | CallEnded
    | ImagesObserved
    | StepEnded
    | PlanEnded
    | AnswerAccepted
)


class SmolagentsTranslator:
    """Translator from signals to the Events of one run."""

    def __init__(self) -> None:
        self.answered = False
        """True once the main agent has given its answer."""
        self._message_ids = MessageIds(text="answer", reasoning="thought")
        self._calls = RunCalls()
        self._agents: dict[str, AgentRun] = {}

    def call_id(self, call_number: int) -> str:
        """Return the id of a call; "" if the call is not shown."""
        call = self._calls.by_number.get(call_number)
        return "" if call is None else call.call_id

    def feed(self, signal: AnySignal) -> Sequence[Item]:
        if type(signal) is ModelDelta:  # fast path for most signals
            return self._agents[signal.agent_id].feed(signal.delta)
        if isinstance(signal, AgentBegan):
            return self._start_agent(signal)
        agent = self._agents[signal.agent_id]
        match signal:
            case ModelReplied():
                return [*agent.end_reply(signal.message, signal.streamed), *_usage(signal)]
            case StepBegan():
                return agent.start_step(signal)
            case StepFailed():
                agent.fail_step(signal.error)
                return []
            case StepLimitReached():
                return agent.reach_limit()
            case CallReady():
                return agent.ready_call(signal)
            case CallOutput():
                return agent.calls.output(signal)
            case CallEnded():
                return agent.calls.end(signal)
            case StepEnded():
                return agent.end_step(signal.step)
            case PlanEnded():
                return agent.end_plan(signal.step)
            case ImagesObserved():
                return [msgspec.structs.replace(file, agent_id=signal.agent_id) for file in signal.files]
            case AnswerAccepted():
                return self._answer(agent, signal)
            case AgentEnded():
                return [AgentFinished(agent_id=signal.agent_id, error=signal.error)]
            case ModelDelta():
                return agent.feed(signal.delta)
            case _:
                assert_never(signal)

    def end(self) -> list[Item]:
        """Return the terminal event, after the agent's thread has ended.

        Without an answer there is no terminal event, and the engine fails the run.
        """
        if not self.answered:
            return []
        return [RunFinished(code="max_steps" if self._agents[""].limit_reached else "")]

    def _start_agent(self, signal: AgentBegan) -> list[AnyEvent]:
        self._agents[signal.agent_id] = AgentRun(signal, self._message_ids, self._calls)
        if not signal.agent_id:
            return []
        call_id = self.call_id(signal.call_number)
        started = AgentStarted(agent_id=signal.agent_id, name=signal.name, parent_id=signal.parent_id, call_id=call_id)
        return [started]

    def _answer(self, agent: AgentRun, signal: AnswerAccepted) -> list[Item]:
        """Return the answer of the main agent. A managed agent's answer is shown as the result of its tool call."""
        if agent.agent_id or self.answered:
            return []
        self.answered = True
        return agent.answer(signal.result)


def _usage(signal: ModelReplied) -> list[AnyEvent]:
    usage = signal.message.token_usage
    if usage is None or not (usage.input_tokens or usage.output_tokens):
        return []
    tokens = {"input_tokens": usage.input_tokens or 0, "output_tokens": usage.output_tokens or 0}
    return [Usage(agent_id=signal.agent_id, model=signal.model, **tokens)]
