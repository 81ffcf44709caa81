"""The one who listens to a run: hands signals over, and numbers calls and agents.

It lives in the thread that runs the agent, and in those that smolagents starts for tools that run at once. Whoever
speaks after the run was stopped gets Left, and so comes to an end wherever he is.
"""

import itertools
from collections import Counter
from collections.abc import Collection, Generator, Iterable
from contextlib import contextmanager
from threading import Lock
from typing import Any, cast

from limelight.sources.base import Approval
from limelight.sources.smolagents.approvals import Asked, Rejected
from limelight.sources.smolagents.signals import Signal
from limelight.sources.threads import Left, ThreadBridge

UNNAMED = "arguments"
"""How arguments that are no object are shown to whoever is asked."""


LOOK_SECONDS = 0.5


class Observer:
    """Listens to one run."""

    def __init__(self, bridge: ThreadBridge[Signal], approve: Collection[str] = ()) -> None:
        """`approve` names the tools before which a person is asked."""
        self.tell = bridge.put
        """Hand over a signal; raises Left if nobody listens any more."""
        self._bridge = bridge
        self._tickets = itertools.count(1)
        self._agents: Counter[str] = Counter()
        self._lock = Lock()
        self._pictures: dict[int, Any] = {}
        self._at_work: Counter[str] = Counter()
        self._approve = frozenset(approve)

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

    def permitted(self, agent_id: str, ticket: int, tool: str, args: Any) -> Any:
        """The arguments with which a tool may run: what a person makes of them, if one has to be asked.

        Raises Rejected if it may not.
        """
        if tool not in self._approve:
            return args
        named = isinstance(args, dict)
        asked = Asked(agent_id, ticket, tool, cast("dict[str, Any]", args) if named else {UNNAMED: args})
        self.tell(asked)
        approval = self._answer_to(asked)
        if not approval:
            raise Rejected(approval)
        if approval.decision != "edit":
            return args
        return approval.args if named else approval.args.get(UNNAMED, args)

    def _answer_to(self, asked: Asked) -> Approval:
        """Looks up now and then: a question that was on its way when the run was stopped is never answered."""
        while True:
            try:
                return asked.answer.result(timeout=LOOK_SECONDS)
            except TimeoutError:
                self.check()

    def asks_before(self, tools: Collection[str]) -> bool:
        """Whether somebody may have to be asked before one of these."""
        return not self._approve.isdisjoint(tools)

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
