"""What agents say and think, as streams; and the answer, which is the last of what was said or comes by itself."""

from collections.abc import Callable

from limelight.dialects.base import cut_of
from limelight.dialects.v2.final_answer import answer_of
from limelight.dialects.v2.message import Metadata, beginning, numbered
from limelight.dialects.v2.steps import Steps
from limelight.dialects.v2.text_stream import Stream
from limelight.dialects.v2.writer import Outbox
from limelight.events import FinalAnswer, ReasoningDelta, ReasoningFinished, RunStarted, TextDelta, TextFinished

THINKS_ALOUD = frozenset({"smolagents"})
"""Frameworks whose reasoning is the agent's thought of a step, not that of a model beside its text."""


class Voice:
    """A text of the main agent that has ended is held back until it is known whether it was the answer."""

    def __init__(self, outbox: Outbox, steps_of: Callable[[str], Steps]) -> None:
        self._outbox = outbox
        self._steps_of = steps_of
        self._live = True
        self._thought_type = "reasoning"
        self._streams: dict[tuple[str, str], Stream] = {}
        self._overtaken: set[tuple[str, str]] = set()
        """Texts that were still open when their agent called a tool."""
        self._held: tuple[str, Stream] | None = None

    def begin(self, event: RunStarted) -> None:
        self._live = event.enable_streaming
        self._thought_type = "action_thought" if event.framework in THINKS_ALOUD else "reasoning"

    def grow(self, event: TextDelta | ReasoningDelta) -> None:
        key = (event.agent_id, event.message_id)
        if key not in self._streams:
            self.settle(event.agent_id)
            self._streams[key] = self._open(event)
        self._streams[key].grow(event.text)

    def has_room(self, event: TextDelta | ReasoningDelta) -> bool:
        stream = self._streams.get((event.agent_id, event.message_id))
        return stream is None or stream.has_room(event.text)

    def finish(self, event: TextFinished | ReasoningFinished) -> None:
        key = (event.agent_id, event.message_id)
        if key not in self._streams:
            return
        may_be_the_answer = isinstance(event, TextFinished) and not event.agent_id and key not in self._overtaken
        self._overtaken.discard(key)
        if may_be_the_answer:
            self.settle("")
            self._held = (event.message_id, self._streams.pop(key))
        else:
            self._end(event.agent_id, self._streams.pop(key))

    def acts(self, agent_id: str) -> None:
        """Before a tool: what the agent has said is no answer, and neither is what it is saying along with the call."""
        self.settle(agent_id)
        self._overtaken.update(key for key in self._streams if key[0] == agent_id)

    def settle(self, agent_id: str, *, unless: str | None = None) -> None:
        """The agent goes on, so what it said last was a thought, unless it is this message."""
        if self._held is not None and not agent_id and self._held[0] != unless:
            stream, self._held = self._held[1], None
            self._end("", stream)

    def _end(self, agent_id: str, stream: Stream) -> None:
        stream.end(**_thought(stream))
        if not self.holds(agent_id):
            self._steps_of(agent_id).release()

    def holds(self, agent_id: str) -> bool:
        """Whether something that the agent says is not told whole yet, or may be the answer: its step does not end
        before that is known."""
        is_held = self._held is not None and not agent_id
        return is_held or any(speaker == agent_id for speaker, _ in self._streams)

    def answer(self, event: FinalAnswer) -> None:
        """Behind the last step. What is still held is the answer: whatever else was said has been settled before.

        One that was too long for one message was told in pages, and none of them is the answer: that begins anew, with
        as much of it as there is room for.
        """
        self.settle("", unless=event.message_id)
        stream = None if self._held is None else self._held[1]
        if stream is not None and stream.is_parted:
            self.settle("")
        self._held = None
        self._steps_of("").close()
        found = answer_of(event)
        about: Metadata = {"step_type": "final_answer", "agent_status": "writing", "is_final_answer": True}
        about |= {"is_active": False, **found.metadata, **cut_of(event)}
        if stream is not None and not stream.is_parted and (self._live or not found.structured):
            stream.end("final_answer", **about)
            return
        shown = found.markdown
        if stream is not None and event.truncated and not found.structured:
            shown = stream.first_page
        still: Metadata = {"streaming": False, "is_delta": False, **numbered(self._steps_of("").number)}
        self._outbox.send("final_answer", shown, **still, **about)

    def _open(self, event: TextDelta | ReasoningDelta) -> Stream:
        steps = self._steps_of(event.agent_id)
        steps.speaks()
        is_text = isinstance(event, TextDelta)
        about: Metadata = {**steps.about, "agent_status": "thinking", "is_raw_thought": not is_text}
        kind = "action_thought" if is_text else self._thought_type
        return Stream(self._outbox, kind, event.agent_id, about, live=self._live)


def _thought(stream: Stream) -> Metadata:
    return {"thoughts_content": beginning(stream.first_page), "full_thought_length": stream.length}
