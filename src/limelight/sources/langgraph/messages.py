"""Translates message chunks of models into text, reasoning, citations and usage. Pure.

LangGraph identifies messages by ids, and parallel nodes may stream several messages of one agent at once. A message may
contain reasoning and text in any order; its text stays open until the message ends.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from limelight.events import AnyEvent, ReasoningDelta, ReasoningFinished, SourceCited, TextDelta, TextFinished, Usage
from limelight.grammar import parse_args
from limelight.sources.langgraph.stream_parts import reasoning_in, text_in
from limelight.sources.messages import MessageIds
from limelight.sources.tool_results import fields_of, items_of


class StreamedMessage(msgspec.Struct):
    """A message of a model. `message_id` is generated, because LangGraph's ids (`raw_id`) may be repeated in a run."""

    agent_id: str
    message_id: str
    raw_id: str
    task_id: str
    pieces: list[str] = []
    reasonings: int = 0
    text_open: bool = False
    reasoning_id: str = ""
    """The id of the open reasoning; "" if none is open."""
    ended: bool = False
    returned: bool = False
    """Whether the node has returned the text of this message in another message."""

    @property
    def text(self) -> str:
        return "".join(self.pieces)


class Messages:
    """All messages of models in one run, by raw id."""

    def __init__(self) -> None:
        self.ids = MessageIds()
        self._messages: dict[str, StreamedMessage] = {}
        self._open: dict[str, StreamedMessage] = {}
        self._main: list[StreamedMessage] = []
        """The messages of the main agent that have text."""
        self._earlier: set[str] = set()
        """The raw ids of messages from before this run."""

    def add_earlier(self, raw_ids: Iterable[str | None]) -> None:
        """Register messages from before this run, because a graph may return them again."""
        self._earlier.update(raw_id for raw_id in raw_ids if raw_id)

    def append(self, message: Any) -> TextDelta | None:
        """Translate a chunk that only adds text to an open text, as most do. Returns None for any other chunk."""
        streamed = self._open.get(message.id)
        if (
            streamed is None
            or not streamed.text_open
            or streamed.reasoning_id
            or message.type != "AIMessageChunk"
            or message.tool_call_chunks
            or message.usage_metadata
            or message.chunk_position
            or message.additional_kwargs
        ):
            return None
        text = message.content
        if not text or type(text) is not str:
            return None
        streamed.pieces.append(text)
        return TextDelta(agent_id=streamed.agent_id, message_id=streamed.message_id, text=text)

    def feed(self, agent_id: str, message: Any, task_id: str = "") -> list[AnyEvent]:
        """Translate the text, reasoning and citations of any chunk or complete message."""
        streamed = self._messages.get(message.id)
        if streamed is None or streamed.ended:
            streamed = StreamedMessage(agent_id, self.ids.next_text(), message.id, task_id)
            self._messages[message.id] = self._open[message.id] = streamed
        events: list[AnyEvent] = []
        content = message.content
        if message.additional_kwargs or (content and not isinstance(content, str)):
            events += _add_reasoning(streamed, reasoning_in(message))
            events += _citations(agent_id, content)
            content = text_in(content)
        if content:
            events += self._add_text(streamed, content)
        return events

    def _add_text(self, streamed: StreamedMessage, text: str) -> list[AnyEvent]:
        events = _end_reasoning(streamed)
        if not streamed.pieces and not streamed.agent_id:
            self._main.append(streamed)
        streamed.text_open = True
        streamed.pieces.append(text)
        return [*events, TextDelta(agent_id=streamed.agent_id, message_id=streamed.message_id, text=text)]

    def finish(self, raw_id: str) -> list[AnyEvent]:
        """End the open message with this raw id."""
        streamed = self._open.pop(raw_id, None)
        if streamed is None:
            return []
        streamed.ended = True
        events = _end_reasoning(streamed)
        if streamed.text_open:
            events.append(TextFinished(agent_id=streamed.agent_id, message_id=streamed.message_id))
        return events

    def finish_all(self, agent_id: str, task_id: str = "") -> list[AnyEvent]:
        """End the open messages of an agent, or only of one task, although their last chunks have not arrived."""
        own = [m for m in self._open.values() if m.agent_id == agent_id and task_id in ("", m.task_id)]
        return [event for message in own for event in self.finish(message.raw_id)]

    def is_known(self, raw_id: str) -> bool:
        """Whether a message was already shown, in this run or before it."""
        return raw_id in self._messages or raw_id in self._earlier

    def is_repeated(self, task_id: str, text: str) -> bool:
        """Whether a text repeats a message that a model has streamed in the same task.

        Each streamed message counts as repeated only once.
        """
        candidates = (m for m in self._messages.values() if task_id and m.task_id == task_id and not m.returned)
        same = next((m for m in candidates if m.text.strip() == text.strip()), None)
        if same is not None:
            same.returned = True
        return same is not None

    @property
    def last_text(self) -> tuple[str, str | None]:
        """The last text of the main agent and its message id."""
        last = self._main[-1] if self._main else None
        return ("", None) if last is None else (last.text, last.message_id)

    def find_text(self, text: str, raw_id: str | None) -> str | None:
        """Return the id of a message of the main agent with this text, preferably the message with this raw id."""
        same = [message for message in reversed(self._main) if message.text == text]
        chosen = next((message for message in same if message.raw_id == raw_id), same[0] if same else None)
        return None if chosen is None else chosen.message_id

    def find_object(self, value: Any) -> str | None:
        """Return the id of the main agent's last message if its text is the JSON of this value, else None."""
        text, message_id = self.last_text
        return message_id if text and parse_args(text) == value else None


def _add_reasoning(streamed: StreamedMessage, text: str) -> list[AnyEvent]:
    if not text:
        return []
    if not streamed.reasoning_id:  # reasoning that follows text gets a new id
        streamed.reasonings += 1
        number = f"-{streamed.reasonings}" if streamed.reasonings > 1 else ""
        streamed.reasoning_id = f"{streamed.message_id}{number}"
    return [ReasoningDelta(agent_id=streamed.agent_id, message_id=streamed.reasoning_id, text=text)]


def _end_reasoning(streamed: StreamedMessage) -> list[AnyEvent]:
    if not streamed.reasoning_id:
        return []
    finished = ReasoningFinished(agent_id=streamed.agent_id, message_id=streamed.reasoning_id)
    streamed.reasoning_id = ""
    return [finished]


def usage_of(agent_id: str, message: Any, metadata: dict[str, Any]) -> Usage | None:
    """Return the token usage in a chunk or message, else None. Only one chunk of each message has usage."""
    usage = message.usage_metadata
    if not usage:
        return None
    return Usage(
        agent_id=agent_id,
        model=metadata.get("ls_model_name") or "",
        input_tokens=usage["input_tokens"],
        output_tokens=usage["output_tokens"],
    )


def _citations(agent_id: str, content: Any) -> list[AnyEvent]:
    """Return events for the sources that a provider has annotated in the content."""
    if isinstance(content, str):
        return []
    notes = [fields_of(note) for block in items_of(content) for note in items_of(fields_of(block).get("annotations"))]
    return [
        SourceCited(agent_id=agent_id, title=str(note.get("title") or note["url"]), url=str(note.get("url") or ""))
        for note in notes
        if note.get("url") or note.get("title")
    ]
