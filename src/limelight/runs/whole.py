"""Whole texts in place of pieces, for agents with `enable_streaming = false`.

Pure: a message or a thought is held back until it is finished and then said at once; pieces of arguments are left out,
since `tool_ready` has all of them. What a running tool prints stays live.
"""

from limelight.events import (
    AgentFinished,
    AnyEvent,
    ReasoningDelta,
    ReasoningFinished,
    RunCancelled,
    RunFailed,
    RunFinished,
    TextDelta,
    TextFinished,
    ToolArgsDelta,
)


class WholeTexts:
    """Follows one run."""

    def __init__(self) -> None:
        self._held: dict[tuple[type[AnyEvent], str], list[TextDelta | ReasoningDelta]] = {}

    def feed(self, event: AnyEvent) -> list[AnyEvent]:
        match event:
            case TextDelta() | ReasoningDelta():
                self._held.setdefault((type(event), event.message_id), []).append(event)
                return []
            case TextFinished():
                return [*self._said(TextDelta, event.message_id), event]
            case ReasoningFinished():
                return [*self._said(ReasoningDelta, event.message_id), event]
            case ToolArgsDelta():
                return []
            case AgentFinished():
                return [*self._rest_of(event.agent_id), event]
            case RunFinished() | RunFailed() | RunCancelled():
                return [*self.rest(), event]
            case _:
                return [event]

    def rest(self) -> list[AnyEvent]:
        """What was begun and not finished."""
        return [said for kind, message_id in list(self._held) for said in self._said(kind, message_id)]

    def _rest_of(self, agent_id: str) -> list[AnyEvent]:
        begun = [key for key, deltas in self._held.items() if deltas[0].agent_id == agent_id]
        return [said for kind, message_id in begun for said in self._said(kind, message_id)]

    def _said(self, kind: type[AnyEvent], message_id: str) -> list[AnyEvent]:
        deltas = self._held.pop((kind, message_id), [])
        if not deltas:
            return []
        first, text = deltas[0], "".join(delta.text for delta in deltas)
        return [type(first)(agent_id=first.agent_id, message_id=message_id, text=text)]
