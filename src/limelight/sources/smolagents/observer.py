"""The one who listens to a run: hands signals over, and numbers calls and agents.

It lives in the thread that runs the agent, and in those that smolagents starts for tools that run at once. Whoever
speaks after the run was stopped gets Left, and so comes to an end wherever he is.
"""

import itertools
from collections import Counter
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from threading import Lock
from typing import Any

from limelight.sources.smolagents.signals import Signal
from limelight.sources.threads import Left, ThreadBridge


class Observer:
    """Listens to one run."""

    def __init__(self, bridge: ThreadBridge[Signal]) -> None:
        self.tell = bridge.put
        """Hand over a signal; raises Left if nobody listens any more."""
        self._bridge = bridge
        self._tickets = itertools.count(1)
        self._agents: Counter[str] = Counter()
        self._lock = Lock()
        self._pictures: dict[int, Any] = {}
        self._at_work: Counter[str] = Counter()

    @property
    def left(self) -> bool:
        """True once the run was stopped."""
        return self._bridge.left

    def check(self) -> None:
        """Before anything that costs time or money: raise Left if the run was stopped."""
        if self._bridge.left:
            raise Left

    def ticket(self) -> int:
        """A number for a call."""
        return next(self._tickets)

    @contextmanager
    def works(self, tool: str, caller: str = "") -> Generator[None]:
        """While a tool runs. A `caller` that waits for it, as code does, is not at work itself meanwhile."""
        with self._lock:
            self._at_work.update({tool: 1, caller: -1})
        try:
            yield
        finally:
            with self._lock:
                self._at_work.update({tool: -1, caller: 1})

    @property
    def at_work(self) -> list[str]:
        """The tools that run now."""
        with self._lock:
            return [tool for tool in +self._at_work if tool]

    def agent_id(self, name: str) -> str:
        """An id for a managed agent that begins: `helper-1`."""
        with self._lock:
            self._agents[name] += 1
            return f"{name}-{self._agents[name]}"

    def new_pictures(self, images: Iterable[Any]) -> list[Any]:
        """Those among the pictures that were not seen before. Holding them keeps their identities theirs."""
        new = {id(image): image for image in images if id(image) not in self._pictures}
        self._pictures |= new
        return list(new.values())
