"""Translates models' message chunks into events for text, reasoning, citations and token usage. Pure.

LangGraph identifies messages by ids, and parallel nodes may stream several messages of one agent at once. A message may
contain reasoning and text in any order; its text stays open until the message ends.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from limelight.events import AnyEvent, ReasoningDelta, ReasoningFinished, SourceCited, TextDelta, TextFinished, Usage
from limelight.grammar import parse_args
from limelight.json_values import fields_of, items_of
from limelight.sources.langgraph.stream_parts import arguments_in, reasoning_in, text_in
from limelight.sources.messages import MessageIds


class StreamedMessage(msgspec.Struct):
    """A model's message while it is streamed.

    Its `message_id` is generated, because LangGraph's own id (`raw_id`) may occur twice in a run.
    """

    agent_id: str
    message_id: str
    raw_id: str
    task_id: str
    pieces: list[str] = []
    reasonings: int = 0
    text_open: bool = False
    reasoning_id: str = ""
    """The id of the reasoning that is being streamed; "" if there is none."""
    ended: bool = False
    returned: bool = False
    """Whether the node has also returned the text of this message in another message."""

    @property
    def text(self) -> str:
        return "".join(self.pieces)


class Messages:
    """The messages that the models of a graph stream in one run, by LangGraph's message id."""

    def __init__(self) -> None:
        self.ids = MessageIds()
        self._messages: dict[str, StreamedMessage] = {}
        self._open: dict[str, StreamedMessage] = {}
        self._main: list[StreamedMessage] = []
        """The main agent's messages that have text."""
        self._earlier: set[str] = set()
        """LangGraph's ids of messages from before this run."""
        self._structured: set[str] = set()
        """LangGraph's ids of structured output."""

    def add_earlier(self, raw_ids: Iterable[str | None]) -> None:
        """Register messages from before this run, so that they are ignored if the graph returns them again."""
        self._earlier.update(raw_id for raw_id in raw_ids if raw_id)

    def append(self, message: Any) -> TextDelta | None:
        """Translate a chunk that only adds text to an open message (the fast path); return None for any other chunk."""
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
        """Translate the text, reasoning and citations of a message chunk or of a complete message."""
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

    def feed_structured(self, agent_id: str, message: Any, task_id: str = "") -> list[AnyEvent]:
        """Translate a chunk of structured output, or the complete message, into reasoning.

        It is data for the node, which decides what becomes of it, and not a message of the conversation. If the node
        returns the message all the same, it is shown like any other.
        """
        if message.id in self._structured and message.id not in self._open:
            return []
        self._structured.add(message.id)
        streamed = self._open.get(message.id)
        if streamed is None:
            streamed = self._open[message.id] = StreamedMessage(agent_id, self.ids.next_text(), message.id, task_id)
        return _add_reasoning(streamed, reasoning_in(message) + (text_in(message.content) or arguments_in(message)))

    def finish(self, raw_id: str) -> list[AnyEvent]:
        """Return the events that end the open message with this LangGraph id."""
        streamed = self._open.pop(raw_id, None)
        if streamed is None:
            return []
        streamed.ended = True
        events = _end_reasoning(streamed)
        if streamed.text_open:
            events.append(TextFinished(agent_id=streamed.agent_id, message_id=streamed.message_id))
        return events

    def finish_all(self, agent_id: str, task_id: str = "") -> list[AnyEvent]:
        """Return the events that end all open messages of an agent, or only those of one graph task."""
        own = [m for m in self._open.values() if m.agent_id == agent_id and task_id in ("", m.task_id)]
        return [event for message in own for event in self.finish(message.raw_id)]

    def is_known(self, raw_id: str) -> bool:
        """Whether events were already emitted for a message, in this run or in an earlier one."""
        return raw_id in self._messages or raw_id in self._earlier

    def has_changed(self, raw_id: str, text: str) -> bool:
        """Whether this text differs from that of this run's message with the same LangGraph id, which has ended."""
        streamed = self._messages.get(raw_id)
        return streamed is not None and streamed.ended and streamed.text.strip() != text.strip()

    def has_said(self, agent_id: str, text: str) -> bool:
        """Whether an agent has a message with this text."""
        return any(m.agent_id == agent_id and m.text.strip() == text.strip() for m in self._messages.values())

    def is_repeated(self, task_id: str, text: str) -> bool:
        """Whether a text repeats a message that a model has streamed in the same graph task.

        Each streamed message counts as repeated only once.
        """
        candidates = (m for m in self._messages.values() if task_id and m.task_id == task_id and not m.returned)
        same = next((m for m in candidates if m.text.strip() == text.strip()), None)
        if same is not None:
            same.returned = True
        return same is not None

    @property
    def last_text(self) -> tuple[str, str | None]:
        """The last text of the main agent, and the id of its message."""
        last = self._main[-1] if self._main else None
        return ("", None) if last is None else (last.text, last.message_id)

    def find_text(self, text: str, raw_id: str | None) -> str | None:
        """Return the id of a main agent's message with this text, preferably the one with this LangGraph id."""
        same = [message for message in reversed(self._main) if message.text == text]
        chosen = next((message for message in same if message.raw_id == raw_id), same[0] if same else None)
        return None if chosen is None else chosen.message_id

    def find_object(self, value: Any) -> str | None:
        """Return the id of the main agent's last message if its text is this value as JSON, else None."""
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
    """Return events for the sources that a model provider has annotated in a message's content."""
    if isinstance(content, str):
        return []
    notes = [fields_of(note) for block in items_of(content) for note in items_of(fields_of(block).get("annotations"))]
    return [
        SourceCited(agent_id=agent_id, title=str(note.get("title") or note["url"]), url=str(note.get("url") or ""))
        for note in notes
        if note.get("url") or note.get("title")
    ]
