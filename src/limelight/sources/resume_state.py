"""What a run had done and left open when its server ended, read off its log. Pure.

A source that goes on with such a run puts its translator into the state that it had; nobody kept that, but the log
tells all that matters of it.
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


class LeftCall(msgspec.Struct):
    """A call that was open."""

    call_id: str
    agent_id: str
    name: str
    args: dict[str, Any] | str


class SoFar:
    """Folds a run's events."""

    def __init__(self, events: Sequence[AnyEvent]) -> None:
        self.calls: dict[str, LeftCall] = {}
        """Open calls, and below open sub-agents and steps: by their ids, steps by their agents."""
        self.agents: dict[str, AgentStarted] = {}
        self.steps: dict[str, StepStarted] = {}
        self.call_ids: set[str] = set()
        """All that were ever used, and all names of sub-agents below: no id may come again."""
        self.agent_names: list[str] = []
        self.agent_ids: set[str] = set()
        self.step_numbers: dict[str, int] = {}
        self.message_ids: set[str] = set()
        self.planned: set[str] = set()
        self.requests: list[ApprovalRequested] = []
        for event in events:
            self._fold(event)

    def _fold(self, event: AnyEvent) -> None:
        match event:
            case TextDelta() | ReasoningDelta():
                self.message_ids.add(event.message_id)
            case ToolStarted():
                self.call_ids.add(event.call_id)
                self.calls[event.call_id] = LeftCall(event.call_id, event.agent_id, event.name, event.args or {})
            case ToolReady() if event.call_id in self.calls:
                self.calls[event.call_id].args = event.args
            case ToolFinished():
                self.calls.pop(event.call_id, None)
            case AgentStarted():
                self.agents[event.agent_id] = event
                self.agent_names.append(event.name)
                self.agent_ids.add(event.agent_id)
            case AgentFinished():
                self.agents.pop(event.agent_id, None)
            case StepStarted():
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
