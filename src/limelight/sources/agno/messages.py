"""What one agent says: messages and thoughts that open with their first piece and are ended by whatever comes next.

Pure. One Talk belongs to one agent; the Ids are shared by all agents of a run, so that no id comes twice.
"""

from collections.abc import Iterable
from typing import Any

from limelight.events import ReasoningDelta, ReasoningFinished, TextDelta, TextFinished
from limelight.sources.base import Item


class Ids:
    """Numbers the messages and names the agents of one run."""

    def __init__(self) -> None:
        self._messages = 0
        self._agents: set[str] = set()

    def restore(self, messages: int, agents: Iterable[str]) -> None:
        """Count on from what a run had before its server ended."""
        self._messages = messages
        self._agents.update(agents)

    def message(self) -> str:
        self._messages += 1
        return f"msg-{self._messages}"

    def agent(self, name: str) -> str:
        """The name itself, or with a number if somebody has it already: a member can be asked twice."""
        agent_id, number = name, 1
        while agent_id in self._agents:
            number += 1
            agent_id = f"{name}-{number}"
        self._agents.add(agent_id)
        return agent_id


class Talk:
    """The open message and the open thought of one agent, and the last message that it said."""

    def __init__(self, agent_id: str, ids: Ids) -> None:
        self.agent_id = agent_id
        self.last: str | None = None
        """The id of the last message."""
        self._ids = ids
        self._pieces: list[str] = []
        self._text_id: str | None = None
        self._thought_id: str | None = None

    @property
    def last_text(self) -> str:
        return "".join(self._pieces)

    def say(self, text: str) -> list[Item]:
        if not text:
            return []
        events = self._end_thought()
        if self._text_id is None:
            self._text_id = self.last = self._ids.message()
            self._pieces = []
        self._pieces.append(text)
        return [*events, TextDelta(agent_id=self.agent_id, message_id=self._text_id, text=text)]

    def goes_on(self, text: str) -> TextDelta | None:
        """One more piece of the open message, if there is one: the same as `say` makes of it, and quicker."""
        if self._text_id is None:
            return None
        self._pieces.append(text)
        return TextDelta(agent_id=self.agent_id, message_id=self._text_id, text=text)

    def think(self, text: str) -> list[Item]:
        if not text:
            return []
        events = self._end_text()
        if self._thought_id is None:
            self._thought_id = self._ids.message()
        return [*events, ReasoningDelta(agent_id=self.agent_id, message_id=self._thought_id, text=text)]

    def pause(self) -> list[Item]:
        """End what is open."""
        return [*self._end_thought(), *self._end_text()]

    def _end_text(self) -> list[Item]:
        text_id, self._text_id = self._text_id, None
        return [] if text_id is None else [TextFinished(agent_id=self.agent_id, message_id=text_id)]

    def _end_thought(self) -> list[Item]:
        thought_id, self._thought_id = self._thought_id, None
        return [] if thought_id is None else [ReasoningFinished(agent_id=self.agent_id, message_id=thought_id)]


def thought_text(step: Any) -> str:
    """One step of a chain of thoughts."""
    title = getattr(step, "title", None)
    parts = [f"**{title}**" if title else "", *(getattr(step, name, None) or "" for name in ("reasoning", "result"))]
    text = "\n".join(part for part in parts if part)
    return f"{text}\n\n" if text else ""
