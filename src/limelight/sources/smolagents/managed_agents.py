"""A managed agent as its manager sees it: something to call, which reports. Every call is an agent of its own.

smolagents would run two calls at once on one object, whose memory they share and spoil. Here the second one gets a copy
of its own; calls one after the other go to the same agent, as they do without us.
"""

from collections.abc import Callable
from contextvars import ContextVar
from threading import Lock
from typing import Any

from limelight.sources.base import SPEAKER
from limelight.sources.smolagents.agent_copy import copy_of
from limelight.sources.smolagents.error_text import told
from limelight.sources.smolagents.observer import Observer
from limelight.sources.smolagents.signals import AgentBegan, AgentEnded
from limelight.sources.threads import Left

SPAWNING: ContextVar[int] = ContextVar("limelight_smolagents_call", default=0)
"""The ticket of the tool call that this code runs in."""


class ManagedAgent:
    """Stands for a managed agent in its manager's table; what is asked of it, the agent itself answers."""

    def __init__(
        self, agent: Any, observer: Observer, parent_id: str, tapped: Callable[[Any, Observer, str], Any]
    ) -> None:
        self._agent = agent
        self._observer = observer
        self._parent_id = parent_id
        self._tapped = tapped
        self._busy = Lock()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_agent":
            raise AttributeError(name)
        return getattr(self._agent, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self._observer.check()
        alone = self._busy.acquire(blocking=False)
        try:
            return self._run(self._agent if alone else copy_of(self._agent), args, kwargs)
        finally:
            if alone:
                self._busy.release()

    def _run(self, agent: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        name = str(agent.name)
        agent_id = self._observer.agent_id(name)
        clone = self._tapped(agent, self._observer, agent_id)
        self._observer.tell(began(clone, agent_id, name, self._parent_id, SPAWNING.get()))
        speaker = SPEAKER.set(lambda: agent_id)
        try:
            report = clone(*args, **kwargs)
        except Left:
            raise
        except BaseException as error:
            self._observer.tell(AgentEnded(agent_id, told(error)))
            raise
        finally:
            SPEAKER.reset(speaker)
        self._observer.tell(AgentEnded(agent_id))
        return report


def began(agent: Any, agent_id: str = "", name: str = "", parent_id: str = "", ticket: int = 0) -> AgentBegan:
    """The signal that an agent begins, with what has to be known to understand what it says."""
    tags = getattr(agent, "code_block_tags", None)
    structured = bool(getattr(agent, "_use_structured_outputs_internally", False))
    return AgentBegan(agent_id, name, parent_id, ticket, tuple(tags) if tags else None, structured)
