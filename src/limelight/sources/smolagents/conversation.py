"""An agent's copy in one conversation, between its turns: what it remembers, and how a broken-off turn is mended."""

import copy
from collections.abc import Sequence
from typing import Any

from limelight.messages import Message
from limelight.sources.smolagents.agent_copy import copy_of
from limelight.sources.smolagents.executor_state import WatchedState
from limelight.sources.smolagents.history import marked, steps_of

BROKEN_OFF = "This task was broken off here, before it was finished."
"""What the agent's memory says of a turn that was stopped or failed."""


class Conversation:
    """One conversation with an agent. Copies take their time, so they are made in the thread of a turn."""

    def __init__(self, target: Any, history: Sequence[Message] = ()) -> None:
        self._target = target
        self._agent = copy_of(target)
        self._abandoned: Any = None
        if history:
            self._agent.memory.steps = steps_of(history, getattr(target, "code_block_tags", None))

    def agent(self) -> Any:
        """In the thread of a turn: the agent that plays it."""
        if self._abandoned is not None:
            old, self._abandoned = self._abandoned, None
            steps, self._agent = self._agent.memory.steps, copy_of(self._target)
            self._agent.memory.steps = steps
            _hand_over(old, self._agent)
        return self._agent

    def mend(self) -> None:
        """After a turn without an answer: no call is left without its result, and the agent knows what happened."""
        steps = self._agent.memory.steps
        last = steps[-1] if steps else None
        if last is None:
            return
        said = None
        if type(last).__name__ == "ActionStep" and last.error is None and last.observations is None:
            steps.pop()
            said = last.model_output
        steps.append(marked(BROKEN_OFF, said, len(steps)))

    def abandon(self) -> None:
        """As `mend`, if a thread is still at work on the agent: that one is left to it, and another one goes on."""
        self._abandoned, self._agent = self._agent, copy.copy(self._agent)
        self._agent.memory = copy.copy(self._agent.memory)
        self._agent.memory.steps = list(self._agent.memory.steps)
        self.mend()

    def close(self) -> None:
        """Give back what the copy holds outside of this process: an executor's container, say."""
        _clean(self._agent)


def _hand_over(old: Any, new: Any) -> None:
    """State, and the variables of code. Functions that code has defined stay behind: they belong to the old state."""
    new.state.update(old.state)
    variables = getattr(getattr(old, "python_executor", None), "state", None)
    if isinstance(variables, WatchedState):
        values = {name: value for name, value in dict(variables).items() if not callable(value)}
        new.python_executor.state.update(values)


def _clean(agent: Any) -> None:
    cleanup = getattr(getattr(agent, "python_executor", None), "cleanup", None)
    if callable(cleanup):
        cleanup()
    for managed in agent.managed_agents.values():
        _clean(managed)
