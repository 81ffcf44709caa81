"""What the agents of a graph say: chunks of messages -> text, reasoning and usage. Pure."""

from typing import Any

import msgspec

from limelight.events import AnyEvent, ReasoningDelta, ReasoningFinished, SourceCited, TextDelta, TextFinished, Usage
from limelight.sources.langgraph.parts import reasoning_in, text_in
from limelight.sources.values import fields_of, items_of


class Spoken(msgspec.Struct):
    """A message on its way. `message_id` is ours: the framework's ids may come again in the same run."""

    agent_id: str
    message_id: str
    raw_id: str
    text: list[str] = []
    text_open: bool = False
    reasoning_open: bool = False


class Speech:
    """All messages of one run. An agent has one at a time, but for parallel nodes; each is known by its raw id."""

    def __init__(self) -> None:
        self._messages: dict[str, Spoken] = {}
        self._count = 0
        self.last: Spoken | None = None
        """The newest message of the main agent that has text."""

    def chunk(self, agent_id: str, message: Any) -> list[AnyEvent]:
        """One piece of a message, or a message that came whole."""
        spoken = self._messages.get(message.id) or self._begin(agent_id, message.id)
        events: list[AnyEvent] = []
        content = message.content
        if message.additional_kwargs or (content and not isinstance(content, str)):
            events += self._reasoning(spoken, reasoning_in(message))
            events += _citations(agent_id, content)
            content = text_in(content)
        if content:
            events += self._text(spoken, content)
        return events

    def _begin(self, agent_id: str, raw_id: str) -> Spoken:
        self._count += 1
        spoken = self._messages[raw_id] = Spoken(agent_id, f"msg-{self._count}", raw_id)
        return spoken

    def _text(self, spoken: Spoken, text: str) -> list[AnyEvent]:
        events = self._end_reasoning(spoken)
        spoken.text_open = True
        spoken.text.append(text)
        if not spoken.agent_id:
            self.last = spoken
        return [*events, TextDelta(agent_id=spoken.agent_id, message_id=spoken.message_id, text=text)]

    def _reasoning(self, spoken: Spoken, text: str) -> list[AnyEvent]:
        if not text or spoken.text_open:
            return []  # thinking that a provider repeats when it is done
        spoken.reasoning_open = True
        return [ReasoningDelta(agent_id=spoken.agent_id, message_id=spoken.message_id, text=text)]

    def _end_reasoning(self, spoken: Spoken) -> list[AnyEvent]:
        if not spoken.reasoning_open:
            return []
        spoken.reasoning_open = False
        return [ReasoningFinished(agent_id=spoken.agent_id, message_id=spoken.message_id)]

    def finish(self, raw_id: str) -> list[AnyEvent]:
        """The message is whole, or will stay as it is."""
        spoken = self._messages.get(raw_id)
        if spoken is None:
            return []
        events = self._end_reasoning(spoken)
        if spoken.text_open:
            spoken.text_open = False
            events.append(TextFinished(agent_id=spoken.agent_id, message_id=spoken.message_id))
        return events

    def finish_all(self, agent_id: str | None = None) -> list[AnyEvent]:
        """The agent ends, or everything does."""
        mine = [m.raw_id for m in self._messages.values() if agent_id is None or m.agent_id == agent_id]
        return [event for raw_id in mine for event in self.finish(raw_id)]

    def knows(self, raw_id: str) -> bool:
        return raw_id in self._messages


def usage_of(agent_id: str, message: Any, metadata: dict[str, Any]) -> Usage | None:
    """What a chunk says about the cost of its message; one of them does."""
    said = message.usage_metadata
    if not said:
        return None
    model = metadata.get("ls_model_name") or ""
    return Usage(agent_id=agent_id, model=model, input_tokens=said["input_tokens"], output_tokens=said["output_tokens"])


def _citations(agent_id: str, content: Any) -> list[AnyEvent]:
    """Sources that a provider names beside its text."""
    if isinstance(content, str):
        return []
    noted = [fields_of(note) for block in items_of(content) for note in items_of(fields_of(block).get("annotations"))]
    return [
        SourceCited(agent_id=agent_id, title=str(note.get("title") or note["url"]), url=str(note.get("url") or ""))
        for note in noted
        if note.get("url") or note.get("title")
    ]
