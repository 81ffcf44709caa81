"""Tracks which sub-agents of a LangGraph graph are running, and which step each agent is in. Pure.

A subgraph is shown as a sub-agent. If a tool call has started the subgraph, the sub-agent ends with that call. If the
subgraph is a node of its parent graph, the sub-agent ends with the node's task. In an agent's loop, a step is one model
call with the tools that follow; in any other graph, a step is one node. A task that runs beside others of its graph is
shown as a sub-agent too, a branch, because an agent has one open step at a time.
"""

from collections import Counter

import msgspec

from limelight.events import AgentFinished, AgentStarted, AnyEvent, StepFinished, StepStarted, Usage
from limelight.json_values import fields_of
from limelight.sources.langgraph.stream_parts import Namespace, node_of, task_of
from limelight.sources.langgraph.tool_calls import GraphCall
from limelight.sources.resume_state import ResumeState

MODEL_NODES = frozenset({"model", "agent", "model_request", "call_model", "chatbot", "llm"})
"""Names of graph nodes that call the model in an agent's loop. A step of such a node has the kind `action`; the kind of
any other step is the name of its node."""
PLANNING = "planning"
"""Step kind that clients display as planning. A step of a node with this name gets the kind `plan` instead."""


class SubAgent(msgspec.Struct):
    """A running sub-agent of a graph, with the tool call that started it."""

    agent_id: str
    ns: Namespace
    call: GraphCall | None
    """The tool call that started the sub-agent; None if the sub-agent is a node of its parent graph."""
    is_branch: bool = False
    has_ended: bool = False
    """Whether the task of a branch has ended, and the branch stays open for calls that later nodes execute."""


class SubAgents:
    """The running sub-agents of one run by LangGraph namespace, and the tool calls that each graph task executes."""

    def __init__(self) -> None:
        self._open: dict[Namespace, SubAgent] = {}
        self._task_calls: dict[str, list[GraphCall]] = {}
        self._counts: dict[str, int] = {}
        self._restored: list[AgentStarted] = []
        """The sub-agents of a resumed run whose LangGraph namespaces are not known yet."""
        self._branches: dict[str, SubAgent] = {}
        """The branches that are running, by the id of their graph task."""
        self._inside: dict[str, SubAgent] = {}
        """The branches to which tasks belong that are not branches themselves, by task id."""
        self._titles: dict[Namespace, str] = {}
        """The titles of branches that are subgraphs, which start with the first task of the subgraph."""

    def restore(self, state: ResumeState) -> None:
        """Restore the sub-agents that were open at the end of a resumed run's log."""
        self._restored = list(state.agents.values())
        self._counts = dict(Counter(state.agent_names))

    # Calls of tasks

    def add_task_call(self, task_id: str, call: GraphCall) -> None:
        """Record that a graph task executes a tool call; sub-agents and output of the task then belong to it."""
        calls = self._task_calls.setdefault(task_id, [])
        if call not in calls:
            calls.append(call)

    def task_call(self, task_id: str) -> GraphCall | None:
        """Return the first open tool call that a graph task executes; None if there is none."""
        return next(iter(self.task_calls(task_id)), None)

    def task_calls(self, task_id: str) -> list[GraphCall]:
        return [call for call in self._task_calls.get(task_id, ()) if not call.finished]

    def has_task(self, call: GraphCall) -> bool:
        return any(call in calls for calls in self._task_calls.values())

    # Agents by namespace

    def agent_id(self, ns: Namespace, task_id: str = "") -> str | None:
        """Return the id of the agent at a LangGraph namespace; None if the agent has not started.

        With a `task_id`, it is the branch of this task if the task is one or belongs to one.
        """
        branch = self._branches.get(task_id) or self._inside.get(task_id)
        if branch is not None:
            return branch.agent_id
        if not ns:
            return ""
        agent = self._open.get(ns)
        return None if agent is None else agent.agent_id

    def ancestors(self, ns: Namespace) -> tuple[list[str], list[GraphCall]]:
        """Return the ids of the agents above a namespace, nearest first, and the tool calls that started them.

        The tool calls include the one that started the agent at the namespace itself.
        """
        parents = [ns[:depth] for depth in range(len(ns) - 1, -1, -1)]
        path = [agent.call for place in (ns, *parents) if (agent := self._open.get(place)) is not None]
        ids = [id_ for parent in parents for id_ in (self.agent_id(parent) or "", *self.branch_ids(parent))]
        return ids, [call for call in path if call is not None]

    def start(self, ns: Namespace, name: str = "") -> list[AnyEvent]:
        """Return the events that start the agent at a namespace and its parents, if they have not started yet."""
        if not ns or ns in self._open:
            return []
        events = self.start(ns[:-1])
        parent_id = self.agent_id(ns[:-1], task_of(ns[-1])) or ""
        call = self._spawning_call(parent_id, task_of(ns[-1]))
        title = self._titles.pop(ns, None)
        name = name or _name_in(call) or node_of(ns[-1])
        return [*events, *self._start(ns, name, parent_id, call, title)]

    def _start(
        self, ns: Namespace, name: str, parent_id: str, call: GraphCall | None, title: str | None
    ) -> list[AnyEvent]:
        """Start a sub-agent, or continue one of a resumed run. It is a branch if it has a title, which may be empty."""
        call_id = "" if call is None else call.call_id
        restored = next((a for a in self._restored if _continues(a, name, parent_id, call_id, title)), None)
        if restored is not None:
            self._restored.remove(restored)
            self._register(SubAgent(restored.agent_id, ns, call, is_branch=restored.branch))
            return []
        number = self._counts[name] = self._counts.get(name, 0) + 1
        agent = self._register(SubAgent(f"{name}-{number}", ns, call, is_branch=title is not None))
        ready = [] if call is None else call.ready()
        started = AgentStarted(
            agent_id=agent.agent_id,
            name=name,
            parent_id=parent_id,
            call_id=call_id,
            title=title or "",
            branch=agent.is_branch,
        )
        return [*ready, started]

    def _register(self, agent: SubAgent) -> SubAgent:
        self._open[agent.ns] = agent
        if agent.is_branch:
            self._branches[task_of(agent.ns[-1])] = agent
        return agent

    def _spawning_call(self, parent_id: str, task_id: str) -> GraphCall | None:
        """Return the tool call that started a sub-agent in a task; None if there is none.

        It is the first call of the task that has not started another sub-agent, or else the first call.
        """
        calls = [call for call in self.task_calls(task_id) if call.agent_id == parent_id]
        busy = [agent.call for agent in self._open.values()]
        return next((call for call in calls if call not in busy), calls[0] if calls else None)

    # Branches

    def start_branch(
        self, ns: Namespace, node: str, task_id: str, title: str, *, caller_id: str = "", call: GraphCall | None = None
    ) -> list[AnyEvent]:
        """Start the branch of a graph task. `caller_id` is the task that called it, `call` the call that it executes.

        A graph that the task runs belongs to the branch: its namespace is that of the branch.
        """
        place = (*ns, f"{node}:{task_id}")
        if place in self._open:
            return []
        return self._start(place, node, self.agent_id(ns, caller_id) or "", call, title)

    def expect_branch(self, ns: Namespace, node: str, task_id: str, title: str) -> None:
        """Let the sub-agent of a node that is a subgraph start as a branch with this title."""
        self._titles[*ns, f"{node}:{task_id}"] = title

    def join_branch(self, task_id: str, caller_id: str) -> None:
        """Let a task belong to the branch of the task that called it, if that is one."""
        branch = self._branches.get(caller_id) or self._inside.get(caller_id)
        if branch is not None:
            self._inside[task_id] = branch

    def is_branch(self, task_id: str) -> bool:
        return task_id in self._branches

    def branch_ids(self, ns: Namespace) -> list[str]:
        """Return the ids of the running branches of the graph at a namespace, and of those that wait for calls."""
        if not self._branches:
            return []
        return [branch.agent_id for branch in self._branches.values() if branch.ns[:-1] == ns]

    def keep_branch(self, task_id: str) -> SubAgent | None:
        """Keep the branch of a task that has ended, because later nodes execute its calls. Returns the branch."""
        branch = self._branches.get(task_id)
        if branch is not None:
            branch.has_ended = True
        return branch

    @property
    def kept_branches(self) -> list[SubAgent]:
        """The branches that were kept after their tasks."""
        return [branch for branch in self._branches.values() if branch.has_ended]

    # Ends of agents

    def ending_with_call(self, call: GraphCall) -> list[SubAgent]:
        """Return the sub-agents that end when a tool call ends, innermost first."""
        return self._inside_out([agent for agent in self._open.values() if agent.call is call])

    def ending_with_task(self, ns: Namespace, task_id: str) -> list[SubAgent]:
        """Return the sub-agents that end when a graph task ends, innermost first.

        These are subgraphs that are nodes, and all sub-agents nested in them.
        """
        nodes = [a for a in self._open.values() if a.call is None and a.ns[:-1] == ns and task_of(a.ns[-1]) == task_id]
        return self._inside_out(nodes)

    def all_open(self) -> list[SubAgent]:
        return self._inside_out(list(self._open.values()))

    def _inside_out(self, ending: list[SubAgent]) -> list[SubAgent]:
        """Return the given sub-agents and all sub-agents nested in them, innermost first."""
        roots = [agent.ns for agent in ending]
        inside = [a for a in self._open.values() if any(a.ns[: len(root)] == root for root in roots)]
        return sorted(inside, key=lambda agent: -len(agent.ns))

    def finish(self, agent: SubAgent, error: str | None) -> AgentFinished:
        self._open.pop(agent.ns, None)
        if agent.is_branch:
            self._branches = {task_id: each for task_id, each in self._branches.items() if each is not agent}
            self._inside = {task_id: each for task_id, each in self._inside.items() if each is not agent}
        return AgentFinished(agent_id=agent.agent_id, error=error)


def _continues(left: AgentStarted, name: str, parent_id: str, call_id: str, title: str | None) -> bool:
    """Whether a sub-agent that starts is one that was left open by a resumed run."""
    if (left.parent_id, left.call_id) != (parent_id, call_id):
        return False
    return left.name == name and left.title == title if left.branch else title is None


def _name_in(call: GraphCall | None) -> str:
    """Return the sub-agent's name from the arguments of the tool call that started it; "" if they have none."""
    return str(fields_of(call.args if call is not None else {}).get("subagent_type") or "")


class Step(msgspec.Struct):
    """An open step of an agent in a graph, with the tokens that its model requests have used."""

    number: int
    kind: str
    task_id: str
    input_tokens: int | None = None
    output_tokens: int | None = None


class Steps:
    """The open step of each agent in a run, and the step limit of the main agent."""

    def __init__(self, limit: int | None = None) -> None:
        self.limit_exceeded = False
        """True once the main agent tries to start more steps than its limit."""
        self._limit = limit
        self._open: dict[str, Step] = {}
        self._numbers: dict[str, int] = {}

    def restore(self, state: ResumeState) -> None:
        """Restore the steps that were open at the end of a resumed run's log."""
        self._numbers = dict(state.step_numbers)
        self._open = {a: Step(s.number, s.step_kind, "") for a, s in state.steps.items()}

    def start(self, agent_id: str, node: str, task_id: str) -> list[AnyEvent]:
        """Start a step when a node starts that no other node runs beside. It ends the agent's open step."""
        current = self._open.get(agent_id)
        if current is not None and current.task_id == task_id:
            return []
        count = self._numbers.get(agent_id, 0)
        if not agent_id and self._limit is not None and count >= self._limit:
            self.limit_exceeded = True
            return []
        events = self.finish(agent_id)
        self._numbers[agent_id] = count + 1
        step = self._open[agent_id] = Step(count + 1, _step_kind(node), task_id)
        return [*events, StepStarted(agent_id=agent_id, number=step.number, step_kind=step.kind)]

    def task_of(self, agent_id: str) -> str:
        """Return the id of the graph task in which the agent's open step began; "" if there is none."""
        step = self._open.get(agent_id)
        return "" if step is None else step.task_id

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
