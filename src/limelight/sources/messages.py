"""Creates the events of one agent's text and reasoning messages. Pure; shared by the sources.

The first delta opens a message. The message ends when the agent does anything else.
"""

from limelight.events import AnyEvent, ReasoningDelta, ReasoningFinished, TextDelta, TextFinished


class MessageIds:
    """Generates the message ids of one run. All agents of the run share it, so that ids are unique."""

    def __init__(self, text: str = "msg", reasoning: str = "msg") -> None:
        """Create a generator with these prefixes for the ids of text and of reasoning messages."""
        self.count = 0
        self._text = text
        self._reasoning = reasoning

    def next_text(self) -> str:
        self.count += 1
        return f"{self._text}-{self.count}"

    def next_reasoning(self) -> str:
        self.count += 1
        return f"{self._reasoning}-{self.count}"


class AgentMessages:
    """The text or reasoning message that one agent is streaming, and its last text."""

    def __init__(self, agent_id: str, ids: MessageIds) -> None:
        self.agent_id = agent_id
        self.last_id: str | None = None
        """The id of the last text message; None if there was none."""
        self.last_pieces: list[str] = []
        self._ids = ids
        self._text_id: str | None = None
        self.reasoning_id: str | None = None
        """The id of the reasoning message that is being streamed; None if there is none."""

    @property
    def last_text(self) -> str:
        return "".join(self.last_pieces)

    def forget_last(self) -> None:
        """Forget the last text message, so that an answer with the same text does not refer to it."""
        self.last_id, self.last_pieces = None, []

    def append(self, text: str) -> TextDelta | None:
        """Return the event for a delta of the open text message; None if there is no such message or no text.

        Most tokens take this fast path.
        """
        if self._text_id is None or not text:
            return None
        self.last_pieces.append(text)
        return TextDelta(agent_id=self.agent_id, message_id=self._text_id, text=text)

    def text(self, text: str) -> list[AnyEvent]:
        """Return the events that append a delta to the open text message, or that open a text message with it."""
        if not text:
            return []
        events: list[AnyEvent] = []
        if self._text_id is None:
            events = self._end_reasoning()
            self._text_id = self.last_id = self._ids.next_text()
            self.last_pieces = []
        self.last_pieces.append(text)
        events.append(TextDelta(agent_id=self.agent_id, message_id=self._text_id, text=text))
        return events

    def reasoning(self, text: str) -> list[AnyEvent]:
        """Return the events that append a delta to the open reasoning message, or that open one with it."""
        if not text:
            return []
        events: list[AnyEvent] = []
        if self.reasoning_id is None:
            events = self._end_text()
            self.reasoning_id = self._ids.next_reasoning()
        events.append(ReasoningDelta(agent_id=self.agent_id, message_id=self.reasoning_id, text=text))
        return events

    def close(self) -> list[AnyEvent]:
        """Return the events that end the agent's open text or reasoning message."""
        return [*self._end_reasoning(), *self._end_text()]

    def _end_text(self) -> list[AnyEvent]:
        text_id, self._text_id = self._text_id, None
        return [] if text_id is None else [TextFinished(agent_id=self.agent_id, message_id=text_id)]

    def _end_reasoning(self) -> list[AnyEvent]:
        reasoning_id, self.reasoning_id = self.reasoning_id, None
        return [] if reasoning_id is None else [ReasoningFinished(agent_id=self.agent_id, message_id=reasoning_id)]
