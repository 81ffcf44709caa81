"""Writes the texts and the reasoning of agents, and the final answer, as streams of v2 messages.

A text of the main agent is streamed as `action_thought`. If it is the answer, its last message is a `final_answer` with
the same id, so that no answer appears twice. Whether a text is the answer is known only after the text has ended, so
its last message is held until then.
"""

from collections.abc import Callable

from limelight.dialects.base import is_structured, truncation_fields
from limelight.dialects.v2.message_writer import MessageWriter, Metadata, step_number
from limelight.dialects.v2.previews import preview
from limelight.dialects.v2.steps import Steps
from limelight.dialects.v2.text_stream import TextStream
from limelight.events import FinalAnswer, ReasoningDelta, ReasoningFinished, RunStarted, TextDelta, TextFinished
from limelight.structured_answers import markdown_of, to_text

REASONING_IS_THOUGHT = frozenset({"smolagents"})
"""Frameworks whose reasoning events are the agent's thought in a step, not a model's hidden reasoning."""


class ThoughtsAndAnswer:
    """Writes all agents' texts and reasoning, and the final answer, as v2 messages."""

    def __init__(self, writer: MessageWriter, steps_of: Callable[[str], Steps]) -> None:
        self._writer = writer
        self._steps_of = steps_of
        self._reasoning_type = "reasoning"
        self._streams: dict[tuple[str, str], TextStream] = {}
        """Open texts, by agent and message id."""
        self._before_calls: set[tuple[str, str]] = set()
        """Texts that were open when their agent called a tool, and so cannot be the answer."""
        self._held: tuple[str, TextStream] | None = None
        """The main agent's last text, whose end is not written while it may be the answer, and its message id."""

    def begin(self, event: RunStarted) -> None:
        """Choose the type of the messages that show reasoning, which depends on the run's framework."""
        self._reasoning_type = "action_thought" if event.framework in REASONING_IS_THOUGHT else "reasoning"

    def append(self, event: TextDelta | ReasoningDelta) -> None:
        """Write a delta of an agent's text or reasoning."""
        key = (event.agent_id, event.message_id)
        if key not in self._streams:
            self.release_held(event.agent_id)
            self._streams[key] = self._new_stream(event)
        self._streams[key].append(event.text)

    def fits(self, event: TextDelta | ReasoningDelta) -> bool:
        """Whether a delta joined from several fits into the current message of its text."""
        stream = self._streams.get((event.agent_id, event.message_id))
        return stream is None or stream.fits(event.text)

    def finish(self, event: TextFinished | ReasoningFinished) -> None:
        """Write the end of a text; if the text may be the answer, hold its end back."""
        key = (event.agent_id, event.message_id)
        if key not in self._streams:
            return
        may_be_answer = isinstance(event, TextFinished) and not event.agent_id and key not in self._before_calls
        self._before_calls.discard(key)
        if may_be_answer:
            self.release_held("")
            self._held = (event.message_id, self._streams.pop(key))
        else:
            self._finish_thought(event.agent_id, self._streams.pop(key))

    def begin_tool_call(self, agent_id: str) -> None:
        """Mark an agent's last text and open texts as not being the answer, because it calls a tool."""
        self.release_held(agent_id)
        self._before_calls.update(key for key in self._streams if key[0] == agent_id)

    def release_held(self, agent_id: str, *, unless: str | None = None) -> None:
        """End the held text of an agent as a thought, unless the text has the message id `unless`."""
        if self._held is not None and not agent_id and self._held[0] != unless:
            stream, self._held = self._held[1], None
            self._finish_thought("", stream)

    def has_open(self, agent_id: str) -> bool:
        """Whether an agent has an open or held text, so that its step's footer must wait."""
        is_held = self._held is not None and not agent_id
        return is_held or any(owner == agent_id for owner, _ in self._streams)

    def final_answer(self, event: FinalAnswer) -> None:
        """Write the final answer, as the end of the held text or as a separate message.

        A text of several pages ends as a thought. The answer is then a separate message, with as much text as fits.
        """
        self.release_held("", unless=event.message_id)
        stream = None if self._held is None else self._held[1]
        if stream is not None and stream.is_split:
            self.release_held("")
        self._held = None
        self._steps_of("").close()
        metadata: Metadata = {"step_type": "final_answer", "agent_status": "writing", "is_final_answer": True}
        metadata |= {"is_active": False, **_answer_metadata(event), **truncation_fields(event)}
        if stream is not None and not stream.is_split and (self._writer.streams or not is_structured(event)):
            stream.finish("final_answer", **metadata)
            return
        content = markdown_of(event)
        if stream is not None and event.truncated and not is_structured(event):
            content = stream.first_page
        state: Metadata = {"streaming": False, "is_delta": False, **step_number(self._steps_of("").number)}
        self._writer.write("final_answer", content, **state, **metadata)

    def _new_stream(self, event: TextDelta | ReasoningDelta) -> TextStream:
        steps = self._steps_of(event.agent_id)
        steps.begin_text()
        is_text = isinstance(event, TextDelta)
        metadata: Metadata = {**steps.metadata, "agent_status": "thinking", "is_raw_thought": not is_text}
        message_type = "action_thought" if is_text else self._reasoning_type
        return TextStream(self._writer, message_type, event.agent_id, metadata)

    def _finish_thought(self, agent_id: str, stream: TextStream) -> None:
        stream.finish(thoughts_content=preview(stream.first_page), full_thought_length=stream.length)
        if not self.has_open(agent_id):
            self._steps_of(agent_id).finish_pending()


def _answer_metadata(event: FinalAnswer) -> Metadata:
    """Return the metadata of an answer: whether it is structured and, if so, its title, content and sources."""
    if not is_structured(event):
        return {"has_structured_data": False}
    return {
        "has_structured_data": True,
        "answer_title": event.title,
        "answer_content": to_text(event.content),
        "answer_sources": list(event.sources),
        "answer_format": "json",
    }
