"""Replaces the deltas of a text by the complete text, for agents with `enable_streaming = false`. Pure.

Deltas of a text or a reasoning are held until the text is finished, and then become one delta. Deltas of arguments and
plans are dropped, because `tool_ready` and `plan` have the complete value. Output of running tools is not held. A
request for approval releases the texts of its agent first, so that a person sees what led to it.
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


class UnstreamedTexts:
    """Replaces the deltas of each text of one run by a single delta with the complete text."""

    def __init__(self) -> None:
        self._held: dict[tuple[type[AnyEvent], str], list[TextDelta | ReasoningDelta]] = {}
        """The deltas of open texts and reasonings, by their kind and message id."""
        self._agents: dict[str, AgentStarted] = {}

    def feed(self, event: AnyEvent) -> list[AnyEvent]:
        match event:
            case TextDelta() | ReasoningDelta():
                self._held.setdefault((type(event), event.message_id), []).append(event)
                return []
            case TextFinished():
                return [*self._release(TextDelta, event.message_id), event]
            case ReasoningFinished():
                return [*self._release(ReasoningDelta, event.message_id), event]
            case ToolArgsDelta() | PlanDelta():
                return []
            case AgentStarted():
                self._agents[event.agent_id] = event
                return [event]
            case AgentFinished():
                return [*self._release_below(event.agent_id), event]
            case ToolFinished():  # the sub-agents that the call has started end with the call
                started = [a.agent_id for a in self._agents.values() if a.call_id == event.call_id]
                return [*(text for agent_id in started for text in self._release_below(agent_id)), event]
            case ApprovalRequested():
                return [*self._release_above(event.agent_id), event]
            case FinalAnswer() if event.message_id is not None:
                return [*self._release(TextDelta, event.message_id), event]
            case RunFinished() | RunFailed() | RunCancelled():
                return [*self.flush(), event]
            case _:
                return [event]

    def flush(self) -> list[AnyEvent]:
        """Return one delta with the complete text for each text or reasoning that is held."""
        return [text for kind, message_id in list(self._held) for text in self._release(kind, message_id)]

    def _release_below(self, agent_id: str) -> list[AnyEvent]:
        """Release the held texts of an agent that ends, after those of its sub-agents. Return them as deltas."""
        self._agents.pop(agent_id, None)
        children = [a.agent_id for a in self._agents.values() if a.parent_id == agent_id]
        return [*(text for child in children for text in self._release_below(child)), *self._release_agent(agent_id)]

    def _release_above(self, agent_id: str) -> list[AnyEvent]:
        """Release the held texts of an agent and of its parents, from the main agent down. Return them as deltas."""
        above = self._release_above(self._agents[agent_id].parent_id) if agent_id in self._agents else []
        return above + self._release_agent(agent_id)

    def _release_agent(self, agent_id: str) -> list[AnyEvent]:
        held = [key for key, deltas in self._held.items() if deltas[0].agent_id == agent_id]
        return [text for kind, message_id in held for text in self._release(kind, message_id)]

    def _release(self, kind: type[AnyEvent], message_id: str) -> list[AnyEvent]:
        """Release a held text or reasoning: return its deltas as one delta; [] if none are held."""
        deltas = self._held.pop((kind, message_id), [])
        if not deltas:
            return []
        first, text = deltas[0], "".join(delta.text for delta in deltas)
        return [type(first)(agent_id=first.agent_id, message_id=message_id, text=text)]
