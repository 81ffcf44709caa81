"""The state of a run that was waiting for a person when its server ended, rebuilt from the run's log. Pure.

A source that resumes such a run restores its translator from this state.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from limelight.events import (
    AgentFinished,
    AgentStarted,
    AnyEvent,
    ApprovalRequested,
    Plan,
    ReasoningDelta,
    StepFinished,
    StepStarted,
    TextDelta,
    ToolFinished,
    ToolReady,
    ToolStarted,
)


class OpenCall(msgspec.Struct):
    """A tool call of a resumed run that has no result in the log yet."""

    call_id: str
    agent_id: str
    name: str
    args: dict[str, Any] | str


class ResumeState:
    """What a source's translator needs from a run's log to continue the run."""

    def __init__(self, events: Sequence[AnyEvent]) -> None:
        self.calls: dict[str, OpenCall] = {}
        """The open tool calls, by call id."""
        self.agents: dict[str, AgentStarted] = {}
        """The open sub-agents, by agent id."""
        self.ended_branches: list[AgentStarted] = []
        """The branches that have ended in the open step of their parent."""
        self.steps: dict[str, StepStarted] = {}
        """The open steps, by agent id."""
        self.call_ids: set[str] = set()
        """All call ids of the run; new calls must get other ids."""
        self.agent_names: list[str] = []
        """The names of all sub-agents of the run; a name occurs once for each sub-agent."""
        self.agent_ids: set[str] = set()
        """The ids of all sub-agents of the run; new sub-agents must get other ids."""
        self.step_numbers: dict[str, int] = {}
        """The number of each agent's last step, by agent id."""
        self.message_ids: set[str] = set()
        self.planned: set[str] = set()
        """The ids of the agents that have made a plan."""
        self.requests: list[ApprovalRequested] = []
        for event in events:
            self._add(event)

    def _add(self, event: AnyEvent) -> None:
        match event:
            case TextDelta() | ReasoningDelta():
                self.message_ids.add(event.message_id)
            case ToolStarted():
                self.call_ids.add(event.call_id)
                self.calls[event.call_id] = OpenCall(event.call_id, event.agent_id, event.name, event.args or {})
            case ToolReady() if event.call_id in self.calls:
                self.calls[event.call_id].args = event.args
            case ToolFinished():
                self.calls.pop(event.call_id, None)
            case AgentStarted():
                self.agents[event.agent_id] = event
                self.agent_names.append(event.name)
                self.agent_ids.add(event.agent_id)
            case AgentFinished():
                ended = self.agents.pop(event.agent_id, None)
                self.ended_branches += [ended] if ended is not None and ended.branch else []
            case StepStarted():
                self.ended_branches = [b for b in self.ended_branches if b.parent_id != event.agent_id]
                self.steps[event.agent_id] = event
                self.step_numbers[event.agent_id] = event.number
            case StepFinished():
                self.steps.pop(event.agent_id, None)
            case Plan():
                self.planned.add(event.agent_id)
            case ApprovalRequested():
                self.requests.append(event)
            case _:
                pass
