"""One turn of an agent, as its thread plays it: make or take the copy, tap it, and let it run to its end."""

from collections.abc import Sequence
from typing import Any

from limelight.events import Status
from limelight.messages import Message
from limelight.sources.base import Options, Turn
from limelight.sources.smolagents.conversation import Conversation
from limelight.sources.smolagents.files import pictures_of
from limelight.sources.smolagents.instrument import settle, tapped
from limelight.sources.smolagents.managed_agents import began
from limelight.sources.smolagents.observer import Observer
from limelight.sources.threads import ThreadBridge


class Performance:
    """A turn. `conversation` is what it goes on with, and what is left of it; none before it has begun."""

    def __init__(
        self,
        target: Any,
        options: Options,
        turn: Turn,
        conversation: Conversation | None,
        history: Sequence[Message],
    ) -> None:
        self.conversation = conversation
        self._target = target
        self._options = options
        self._turn = turn
        self._history = history
        self._observer: Observer | None = None

    @property
    def at_work(self) -> list[str]:
        """The tools that run now."""
        return self._observer.at_work if self._observer is not None else []

    def play(self, bridge: ThreadBridge[Any]) -> None:
        """In the thread: the whole turn."""
        observer = self._observer = Observer(bridge, self._options.approve)
        if self.conversation is None:
            self.conversation = Conversation(self._target, self._history)
        agent = self.conversation.agent()
        clone = self._instructed(tapped(agent, observer))
        observer.tell(began(clone))
        images = self._images(observer)
        steps = clone.run(
            self._turn.question.text,
            stream=True,
            reset=False,
            images=images or None,
            max_steps=self._turn.max_steps or self._options.max_steps,
        )
        for _ in steps:  # the taps have told what it was
            pass
        settle(clone, agent)

    def _images(self, observer: Observer) -> list[Any]:
        images, left_out = pictures_of(self._turn.question)
        if left_out:
            self._turn.context.emit(Status(text=f"Left out, as this agent takes pictures only: {', '.join(left_out)}"))
        return observer.new_pictures(images)

    def _instructed(self, clone: Any) -> Any:
        """What the configuration and the client ask for, this time."""
        if self._turn.instructions:
            clone.instructions = "\n\n".join(filter(None, (clone.instructions, self._turn.instructions)))
        if self._options.planning_interval is not None:
            clone.planning_interval = self._options.planning_interval
        return clone
