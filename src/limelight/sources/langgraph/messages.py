"""What the agents of a graph say: chunks of messages -> text, reasoning and usage. Pure."""

from collections.abc import Iterable
from typing import Any

import msgspec

from limelight.events import AnyEvent, ReasoningDelta, ReasoningFinished, SourceCited, TextDelta, TextFinished, Usage
from limelight.grammar import args_of
from limelight.sources.langgraph.stream_parts import reasoning_in, text_in
from limelight.sources.resume_state import SoFar
from limelight.sources.values import fields_of, items_of


class Spoken(msgspec.Struct):
    """A message on its way. `message_id` is ours: the framework's ids may come again in the same run."""

    agent_id: str
    message_id: str
    raw_id: str
    task_id: str
    text: list[str] = []
    thoughts: int = 0
    text_open: bool = False
    reasoning_id: str = ""
    """The thought that is open."""
    over: bool = False
    repeated: bool = False
    """Whether its node has returned it, as another message."""


class Speech:
    """All messages of one run. An agent has one at a time, but for parallel nodes; each is known by its raw id."""

    def __init__(self) -> None:
        self._messages: dict[str, Spoken] = {}
        self._unfinished: dict[str, Spoken] = {}
        self._main: list[Spoken] = []
        """Those of the main agent that have text."""
        self._past: set[str] = set()
        self._count = 0

    def restore(self, so_far: SoFar) -> None:
        """Count on from the messages that a run had before its server ended."""
        self._count = len(so_far.message_ids)

    def past(self, raw_ids: Iterable[str | None]) -> None:
        """Messages that were said before this run: a graph may hand them over again."""
        self._past.update(raw_id for raw_id in raw_ids if raw_id)

    def goes_on(self, message: Any) -> TextDelta | None:
        """One more plain piece of a message that has begun: nine chunks in ten, and nothing else is in them."""
        spoken = self._unfinished.get(message.id)
        if (
            spoken is None
            or not spoken.text_open
            or spoken.reasoning_id
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
        spoken.text.append(text)
        return TextDelta(agent_id=spoken.agent_id, message_id=spoken.message_id, text=text)

    def chunk(self, agent_id: str, message: Any, task_id: str = "") -> list[AnyEvent]:
        """One piece of a message, or a message that came whole."""
        spoken = self._messages.get(message.id)
        if spoken is None or spoken.over:
            spoken = self._begin(agent_id, message.id, task_id)
        events: list[AnyEvent] = []
        content = message.content
        if message.additional_kwargs or (content and not isinstance(content, str)):
            events += self._reasoning(spoken, reasoning_in(message))
            events += _citations(agent_id, content)
            content = text_in(content)
        if content:
            events += self._text(spoken, content)
        return events

    def _begin(self, agent_id: str, raw_id: str, task_id: str) -> Spoken:
        self._count += 1
        spoken = Spoken(agent_id, f"msg-{self._count}", raw_id, task_id)
        self._messages[raw_id] = self._unfinished[raw_id] = spoken
        return spoken

    def _text(self, spoken: Spoken, text: str) -> list[AnyEvent]:
        events = self._end_reasoning(spoken)
        if not spoken.text and not spoken.agent_id:
            self._main.append(spoken)
        spoken.text_open = True
        spoken.text.append(text)
        return [*events, TextDelta(agent_id=spoken.agent_id, message_id=spoken.message_id, text=text)]

    def _reasoning(self, spoken: Spoken, text: str) -> list[AnyEvent]:
        if not text:
            return []
        if not spoken.reasoning_id:  # thinking that goes on after some text is another thought
            spoken.thoughts += 1
            number = f"-{spoken.thoughts}" if spoken.thoughts > 1 else ""
            spoken.reasoning_id = f"{spoken.message_id}{number}"
        return [ReasoningDelta(agent_id=spoken.agent_id, message_id=spoken.reasoning_id, text=text)]

    def _end_reasoning(self, spoken: Spoken) -> list[AnyEvent]:
        if not spoken.reasoning_id:
            return []
        finished = ReasoningFinished(agent_id=spoken.agent_id, message_id=spoken.reasoning_id)
        spoken.reasoning_id = ""
        return [finished]

    def finish(self, raw_id: str) -> list[AnyEvent]:
        """The message is whole, or will stay as it is."""
        spoken = self._unfinished.pop(raw_id, None)
        if spoken is None:
            return []
        spoken.over = True
        events = self._end_reasoning(spoken)
        if spoken.text_open:
            events.append(TextFinished(agent_id=spoken.agent_id, message_id=spoken.message_id))
        return events

    def finish_all(self, agent_id: str, task_id: str = "") -> list[AnyEvent]:
        """The agent ends, or one of its tasks does: a model that was cut off has left its message open."""
        mine = [m for m in self._unfinished.values() if m.agent_id == agent_id and task_id in ("", m.task_id)]
        return [event for message in mine for event in self.finish(message.raw_id)]

    def knows(self, raw_id: str) -> bool:
        """Whether a message was said already, in this run or before it."""
        return raw_id in self._messages or raw_id in self._past

    def repeats(self, task_id: str, text: str) -> bool:
        """Whether a node returns a text that a model has said in it: once for each time that it was said."""
        said = (m for m in self._messages.values() if task_id and m.task_id == task_id and not m.repeated)
        same = next((m for m in said if "".join(m.text).strip() == text.strip()), None)
        if same is not None:
            same.repeated = True
        return same is not None

    @property
    def newest(self) -> tuple[str, str | None]:
        """The newest text of the main agent, and its id."""
        last = self._main[-1] if self._main else None
        return ("", None) if last is None else ("".join(last.text), last.message_id)

    def id_of(self, text: str, raw_id: str | None) -> str | None:
        """Under which id the main agent has said this, if it has; by preference in the message that has this raw id."""
        same = [spoken for spoken in reversed(self._main) if "".join(spoken.text) == text]
        chosen = next((spoken for spoken in same if spoken.raw_id == raw_id), same[0] if same else None)
        return None if chosen is None else chosen.message_id

    def id_of_object(self, value: Any) -> str | None:
        """The same for an answer that is an object: a model may write it as JSON."""
        text, message_id = self.newest
        return message_id if text and args_of(text) == value else None


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
