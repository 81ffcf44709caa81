"""Translates reports into Events. Pure: no threads, no clock, and of smolagents only the objects in reports.

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
from limelight.sources.smolagents.reports import (
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

AnyReport = (
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
    """Translates the reports of a run's smolagents agents into Events."""

    def __init__(self) -> None:
        self.answered = False
        """True once the main agent has given its answer."""
        self._message_ids = MessageIds(text="answer", reasoning="thought")
        self._calls = RunCalls()
        self._agents: dict[str, AgentRun] = {}

    def call_id(self, call_number: int) -> str:
        """Return a tool call's id from its number in the run; "" if no events are emitted for the call."""
        call = self._calls.by_number.get(call_number)
        return "" if call is None else call.call_id

    def feed(self, report: AnyReport) -> Sequence[Item]:
        if type(report) is ModelDelta:  # fast path for most reports
            return self._agents[report.agent_id].feed(report.delta)
        if isinstance(report, AgentBegan):
            return self._start_agent(report)
        agent = self._agents[report.agent_id]
        match report:
            case ModelReplied():
                return [*agent.end_reply(report.message, report.streamed), *_usage(report)]
            case StepBegan():
                return agent.start_step(report)
            case StepFailed():
                agent.fail_step(report.error)
                return []
            case StepLimitReached():
                return agent.reach_limit()
            case CallReady():
                return agent.ready_call(report)
            case CallOutput():
                return agent.calls.output(report)
            case CallEnded():
                return agent.calls.end(report)
            case StepEnded():
                return agent.end_step(report.step)
            case PlanEnded():
                return agent.end_plan(report.step)
            case ImagesObserved():
                return [msgspec.structs.replace(file, agent_id=report.agent_id) for file in report.files]
            case AnswerAccepted():
                return self._answer(agent, report)
            case AgentEnded():
                return [AgentFinished(agent_id=report.agent_id, error=report.error)]
            case ModelDelta():
                return agent.feed(report.delta)
            case _:
                assert_never(report)

    def end(self) -> list[Item]:
        """Return the terminal event of the run, after the agent's thread has ended.

        Without an answer there is no terminal event, and the engine fails the run.
        """
        if not self.answered:
            return []
        return [RunFinished(code="max_steps" if self._agents[""].limit_reached else "")]

    def _start_agent(self, report: AgentBegan) -> list[AnyEvent]:
        self._agents[report.agent_id] = AgentRun(report, self._message_ids, self._calls)
        if not report.agent_id:
            return []
        call_id = self.call_id(report.call_number)
        started = AgentStarted(agent_id=report.agent_id, name=report.name, parent_id=report.parent_id, call_id=call_id)
        return [started]

    def _answer(self, agent: AgentRun, report: AnswerAccepted) -> list[Item]:
        """Return the main agent's final answer. A managed agent's answer is the result of its tool call instead."""
        if agent.agent_id or self.answered:
            return []
        self.answered = True
        return agent.answer(report.result)


def _usage(report: ModelReplied) -> list[AnyEvent]:
    usage = report.message.token_usage
    if usage is None or not (usage.input_tokens or usage.output_tokens):
        return []
    tokens = {"input_tokens": usage.input_tokens or 0, "output_tokens": usage.output_tokens or 0}
    return [Usage(agent_id=report.agent_id, model=report.model, **tokens)]
