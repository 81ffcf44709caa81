"""The sub-agents of a graph and the steps of its agents. Pure.

A subgraph is shown as a sub-agent. If a tool call has started the subgraph, the sub-agent ends with that call. If the
subgraph is a node of its parent graph, the sub-agent ends with the node's task. In an agent's loop, a step is one model
call with the tools that follow; in any other graph, a step is one node.
"""

from collections import Counter

import msgspec

from limelight.events import AgentFinished, AgentStarted, AnyEvent, StepFinished, StepStarted, Usage
from limelight.sources.langgraph.stream_parts import Namespace, node_of, task_of
from limelight.sources.langgraph.tool_calls import GraphCall
from limelight.sources.resume_state import ResumeState
from limelight.sources.tool_results import fields_of

MODEL_NODES = frozenset({"model", "agent", "model_request", "call_model", "chatbot", "llm"})
"""Names of nodes that call the model in an agent's loop. Their steps have the kind `action`; the kind of any other step
is the name of its node."""
PLANNING = "planning"
"""The step kind that is reserved for plans. A step whose node has this name gets the kind `plan` instead."""


class SubAgent(msgspec.Struct):
    """A running sub-agent."""

    agent_id: str
    ns: Namespace
    call: GraphCall | None
    """The tool call that has started the sub-agent; None if the sub-agent is a node."""


class SubAgents:
    """The running sub-agents of one run by namespace, and the tool calls that each task executes."""

    def __init__(self) -> None:
        self._open: dict[Namespace, SubAgent] = {}
        self._task_calls: dict[str, list[GraphCall]] = {}
        self._counts: dict[str, int] = {}
        self._restored: list[AgentStarted] = []
        """The sub-agents of a resumed run whose namespaces are not known yet."""

    def restore(self, state: ResumeState) -> None:
        """Restore the sub-agents of a resumed run from its log."""
        self._restored = list(state.agents.values())
        self._counts = dict(Counter(state.agent_names))

    # Calls of tasks

    def add_task_call(self, task_id: str, call: GraphCall) -> None:
        """Record that a task executes a tool call. Sub-agents and output of the task then belong to that call."""
        calls = self._task_calls.setdefault(task_id, [])
        if call not in calls:
            calls.append(call)

    def task_call(self, task_id: str) -> GraphCall | None:
        """Return the first open tool call that a task executes; None if there is none."""
        return next(iter(self.task_calls(task_id)), None)

    def task_calls(self, task_id: str) -> list[GraphCall]:
        return [call for call in self._task_calls.get(task_id, ()) if not call.finished]

    def has_task(self, call: GraphCall) -> bool:
        return any(call in calls for calls in self._task_calls.values())

    # Agents by namespace

    def agent_id(self, ns: Namespace) -> str | None:
        """Return the id of the agent at a namespace; None if the agent has not started."""
        if not ns:
            return ""
        agent = self._open.get(ns)
        return None if agent is None else agent.agent_id

    def ancestors(self, ns: Namespace) -> tuple[list[str], list[GraphCall]]:
        """Return the ids of the agents above a namespace, nearest first, and the tool calls that started the agents.

        The tool calls include the one that started the agent at the namespace itself.
        """
        parents = [ns[:depth] for depth in range(len(ns) - 1, -1, -1)]
        path = [agent.call for place in (ns, *parents) if (agent := self._open.get(place)) is not None]
        return [self.agent_id(parent) or "" for parent in parents], [call for call in path if call is not None]

    def start(self, ns: Namespace, name: str = "") -> list[AnyEvent]:
        """Start the agent at a namespace and the agents above it, unless they have started."""
        if not ns or ns in self._open:
            return []
        events = self.start(ns[:-1])
        parent_id = self.agent_id(ns[:-1]) or ""
        call = self._spawning_call(parent_id, task_of(ns[-1]))
        call_id = "" if call is None else call.call_id
        restored = next((a for a in self._restored if (a.parent_id, a.call_id) == (parent_id, call_id)), None)
        if restored is not None:
            self._restored.remove(restored)
            self._open[ns] = SubAgent(restored.agent_id, ns, call)
            return events
        name = name or _name_in(call) or node_of(ns[-1])
        number = self._counts[name] = self._counts.get(name, 0) + 1
        agent = self._open[ns] = SubAgent(f"{name}-{number}", ns, call)
        if call is not None:
            events += call.ready()
        return [*events, AgentStarted(agent_id=agent.agent_id, name=name, parent_id=parent_id, call_id=call_id)]

    def _spawning_call(self, parent_id: str, task_id: str) -> GraphCall | None:
        """Return the tool call that has started a sub-agent in a task; None if there is none.

        It is the first call of the task that has not started another sub-agent, or else the first call.
        """
        calls = [call for call in self.task_calls(task_id) if call.agent_id == parent_id]
        busy = [agent.call for agent in self._open.values()]
        return next((call for call in calls if call not in busy), calls[0] if calls else None)

    # Ends of agents

    def ending_with_call(self, call: GraphCall) -> list[SubAgent]:
        """Return the sub-agents that end with a tool call, innermost first."""
        return self._inside_out([agent for agent in self._open.values() if agent.call is call])

    def ending_with_task(self, ns: Namespace, task_id: str) -> list[SubAgent]:
        """Return the sub-agents that end with a task, innermost first.

        These are subgraphs that are nodes, and all sub-agents nested in them.
        """
        nodes = [a for a in self._open.values() if a.call is None and a.ns[:-1] == ns and task_of(a.ns[-1]) == task_id]
        return self._inside_out(nodes)

    def all_open(self) -> list[SubAgent]:
        return self._inside_out(list(self._open.values()))

    def _inside_out(self, ending: list[SubAgent]) -> list[SubAgent]:
        """Return these sub-agents and all sub-agents nested in them, innermost first."""
        roots = [agent.ns for agent in ending]
        inside = [a for a in self._open.values() if any(a.ns[: len(root)] == root for root in roots)]
        return sorted(inside, key=lambda agent: -len(agent.ns))

    def finish(self, agent: SubAgent, error: str | None) -> AgentFinished:
        self._open.pop(agent.ns, None)
        return AgentFinished(agent_id=agent.agent_id, error=error)


def _name_in(call: GraphCall | None) -> str:
    """Return the name of a sub-agent from the arguments of the tool call that started it; "" if there is none."""
    return str(fields_of(call.args if call is not None else {}).get("subagent_type") or "")


class Step(msgspec.Struct):
    """An open step."""

    number: int
    kind: str
    task_id: str
    running: bool = True
    input_tokens: int | None = None
    output_tokens: int | None = None


class Steps:
    """The open step of each agent, and the step limit of the main agent."""

    def __init__(self, limit: int | None = None) -> None:
        self.limit_exceeded = False
        """True once the main agent tries to start more steps than its limit."""
        self._limit = limit
        self._open: dict[str, Step] = {}
        self._numbers: dict[str, int] = {}

    def restore(self, state: ResumeState) -> None:
        """Restore the steps of a resumed run from its log."""
        self._numbers = dict(state.step_numbers)
        self._open = {a: Step(s.number, s.step_kind, "", running=False) for a, s in state.steps.items()}

    def start(self, agent_id: str, node: str, task_id: str) -> list[AnyEvent]:
        """Start a step with a node. A node in parallel with the node of the open step belongs to the open step."""
        current = self._open.get(agent_id)
        if current is not None and (current.running or current.task_id == task_id):
            return []
        count = self._numbers.get(agent_id, 0)
        if not agent_id and self._limit is not None and count >= self._limit:
            self.limit_exceeded = True
            return []
        events = self.finish(agent_id)
        self._numbers[agent_id] = count + 1
        step = self._open[agent_id] = Step(count + 1, _step_kind(node), task_id)
        return [*events, StepStarted(agent_id=agent_id, number=step.number, step_kind=step.kind)]

    def end_task(self, agent_id: str, task_id: str) -> None:
        """Record that the node of the open step has ended. The step lasts until the next node starts."""
        step = self._open.get(agent_id)
        if step is not None and step.task_id == task_id:
            step.running = False

    def add_usage(self, usage: Usage) -> None:
        step = self._open.get(usage.agent_id)
        if step is not None:
            step.input_tokens = (step.input_tokens or 0) + usage.input_tokens
            step.output_tokens = (step.output_tokens or 0) + usage.output_tokens

    def finish(self, agent_id: str, error: str | None = None) -> list[AnyEvent]:
        step = self._open.pop(agent_id, None)
        if step is None:
            return []
        finished = StepFinished(
            agent_id=agent_id,
            number=step.number,
            step_kind=step.kind,
            input_tokens=step.input_tokens,
            output_tokens=step.output_tokens,
            error=error,
        )
        return [finished]


def _step_kind(node: str) -> str:
    if node in MODEL_NODES:
        return "action"
    return "plan" if node == PLANNING else node
