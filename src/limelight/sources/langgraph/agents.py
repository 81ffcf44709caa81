"""Who acts: the places of a graph -> agents. Pure.

A subgraph is a sub-agent. One that a tool call has started belongs to that call and ends with it; one that is a node of
its parent ends with the task of that node.
"""

from collections import Counter

import msgspec

from limelight.events import AgentFinished, AgentStarted, AnyEvent
from limelight.sources.langgraph.stream_parts import Namespace, node_of, task_of
from limelight.sources.langgraph.tool_calls import Call, Calls
from limelight.sources.resume_state import SoFar
from limelight.sources.values import fields_of


class Actor(msgspec.Struct):
    """A sub-agent at work."""

    agent_id: str
    ns: Namespace
    call: Call | None


class Actors:
    """All agents of one run."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._open: dict[Namespace, Actor] = {}
        self._tasks: dict[str, list[Call]] = {}
        self._counts: dict[str, int] = {}
        self._left: list[AgentStarted] = []
        """Sub-agents of a run whose server ended, whose places are not known again yet."""

    def restore(self, so_far: SoFar) -> None:
        """Know again who was at work when the server of a run ended."""
        self._left = list(so_far.agents.values())
        self._counts = dict(Counter(so_far.agent_names))

    def task_runs(self, task_id: str, call: Call) -> None:
        """Remember which call a task carries out, so that what happens in the task is known to be the call's."""
        calls = self._tasks.setdefault(task_id, [])
        if call not in calls:
            calls.append(call)

    def call_of_task(self, task_id: str) -> Call | None:
        """The call that a task carries out, if it is one; the first of several that is not over."""
        return next(iter(self.calls_of_task(task_id)), None)

    def calls_of_task(self, task_id: str) -> list[Call]:
        return [call for call in self._tasks.get(task_id, ()) if not call.over]

    def has_task(self, call: Call) -> bool:
        return any(call in calls for calls in self._tasks.values())

    def above(self, ns: Namespace) -> tuple[list[str], list[Call]]:
        """The agents above a place, the nearest first, and the calls that have started those on the way."""
        places = [ns[:depth] for depth in range(len(ns) - 1, -1, -1)]
        on_the_way = [actor.call for place in (ns, *places) if (actor := self._open.get(place)) is not None]
        return [self.agent_id(place) or "" for place in places], [call for call in on_the_way if call is not None]

    def agent_id(self, ns: Namespace) -> str | None:
        """The agent at a place, if it has begun."""
        if not ns:
            return ""
        actor = self._open.get(ns)
        return None if actor is None else actor.agent_id

    def begin(self, ns: Namespace, name: str = "") -> list[AnyEvent]:
        """Somebody acts at this place: start whoever it is, and those above."""
        if not ns or ns in self._open:
            return []
        events = self.begin(ns[:-1])
        parent_id = self.agent_id(ns[:-1]) or ""
        call = self._spawning(parent_id, task_of(ns[-1]))
        left = self._left_at(parent_id, call)
        if left is not None:
            self._left.remove(left)
            self._open[ns] = Actor(left.agent_id, ns, call)
            return events
        name = name or _named_by(call) or node_of(ns[-1])
        number = self._counts[name] = self._counts.get(name, 0) + 1
        actor = self._open[ns] = Actor(f"{name}-{number}", ns, call)
        if call is not None:
            events += self._calls.ready(call)
        started = AgentStarted(
            agent_id=actor.agent_id,
            name=name,
            parent_id=parent_id,
            call_id=call.call_id if call else "",
        )
        return [*events, started]

    def _left_at(self, parent_id: str, call: Call | None) -> AgentStarted | None:
        call_id = "" if call is None else call.call_id
        return next((left for left in self._left if (left.parent_id, left.call_id) == (parent_id, call_id)), None)

    def _spawning(self, parent_id: str, task_id: str) -> Call | None:
        """The call that has started an agent. Of several in one task it is one that has none yet, in their order."""
        calls = [call for call in self.calls_of_task(task_id) if call.agent_id == parent_id]
        busy = [actor.call for actor in self._open.values()]
        return next((call for call in calls if call not in busy), calls[0] if calls else None)

    def ending_with_call(self, call: Call) -> list[Actor]:
        return self._inside_out([actor for actor in self._open.values() if actor.call is call])

    def ending_with_task(self, ns: Namespace, task_id: str) -> list[Actor]:
        """Agents that are nodes of their parent; those of calls wait for their call to end."""
        mine = [a for a in self._open.values() if a.call is None and a.ns[:-1] == ns and task_of(a.ns[-1]) == task_id]
        return self._inside_out(mine)

    def all_open(self) -> list[Actor]:
        return self._inside_out(list(self._open.values()))

    def _inside_out(self, ending: list[Actor]) -> list[Actor]:
        """These and all below them, the innermost first."""
        roots = [actor.ns for actor in ending]
        below = [a for a in self._open.values() if any(a.ns[: len(root)] == root for root in roots)]
        return sorted(below, key=lambda actor: -len(actor.ns))

    def finish(self, actor: Actor, error: str | None) -> AgentFinished:
        self._open.pop(actor.ns, None)
        return AgentFinished(agent_id=actor.agent_id, error=error)


def _named_by(call: Call | None) -> str:
    """How the call that spawned it calls the sub-agent."""
    return str(fields_of(call.args if call is not None else {}).get("subagent_type") or "")
