"""Whole texts in place of pieces, for agents with `enable_streaming = false`.

Pure: a message or a thought is held back until it is finished and then said at once; pieces of arguments and of plans
are left out, since `tool_ready` and `plan` have all of them. What a running tool prints stays live. A question to a
person does not come before what was said up to it: that is said then, and the rest of the message later.
"""

from limelight.events import (
    AgentFinished,
    AgentStarted,
    AnyEvent,
    ApprovalRequested,
    FinalAnswer,
    PlanDelta,
    ReasoningDelta,
    ReasoningFinished,
    RunCancelled,
    RunFailed,
    RunFinished,
    TextDelta,
    TextFinished,
    ToolArgsDelta,
    ToolFinished,
)


class WholeTexts:
    """Follows one run."""

    def __init__(self) -> None:
        self._held: dict[tuple[type[AnyEvent], str], list[TextDelta | ReasoningDelta]] = {}
        self._agents: dict[str, AgentStarted] = {}

    def feed(self, event: AnyEvent) -> list[AnyEvent]:
        match event:
            case TextDelta() | ReasoningDelta():
                self._held.setdefault((type(event), event.message_id), []).append(event)
                return []
            case TextFinished():
                return [*self._said(TextDelta, event.message_id), event]
            case ReasoningFinished():
                return [*self._said(ReasoningDelta, event.message_id), event]
            case ToolArgsDelta() | PlanDelta():
                return []
            case AgentStarted():
                self._agents[event.agent_id] = event
                return [event]
            case AgentFinished():
                return [*self._rest_of(event.agent_id), event]
            case ToolFinished():  # with it end the agents that it has started, whether or not anybody says so
                spawned = [a.agent_id for a in self._agents.values() if a.call_id == event.call_id]
                return [*(said for agent_id in spawned for said in self._rest_of(agent_id)), event]
            case ApprovalRequested():
                return [*self._said_before(event.agent_id), event]
            case FinalAnswer() if event.message_id is not None:
                return [*self._said(TextDelta, event.message_id), event]
            case RunFinished() | RunFailed() | RunCancelled():
                return [*self.rest(), event]
            case _:
                return [event]

    def rest(self) -> list[AnyEvent]:
        """What was begun and not finished."""
        return [said for kind, message_id in list(self._held) for said in self._said(kind, message_id)]

    def _rest_of(self, agent_id: str) -> list[AnyEvent]:
        """What an agent and those below it have begun and not finished."""
        self._agents.pop(agent_id, None)
        below = [a.agent_id for a in self._agents.values() if a.parent_id == agent_id]
        return [*(said for child in below for said in self._rest_of(child)), *self._said_by(agent_id)]

    def _said_before(self, agent_id: str) -> list[AnyEvent]:
        """What those above an agent have begun, and then the agent itself."""
        above = self._said_before(self._agents[agent_id].parent_id) if agent_id in self._agents else []
        return above + self._said_by(agent_id)

    def _said_by(self, agent_id: str) -> list[AnyEvent]:
        begun = [key for key, deltas in self._held.items() if deltas[0].agent_id == agent_id]
        return [said for kind, message_id in begun for said in self._said(kind, message_id)]

    def _said(self, kind: type[AnyEvent], message_id: str) -> list[AnyEvent]:
        deltas = self._held.pop((kind, message_id), [])
        if not deltas:
            return []
        first, text = deltas[0], "".join(delta.text for delta in deltas)
        return [type(first)(agent_id=first.agent_id, message_id=message_id, text=text)]
