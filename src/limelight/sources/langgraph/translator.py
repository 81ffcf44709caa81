"""Translates the stream of a LangGraph graph into Events. Pure: no graph, no event loop; the clock is a parameter.

A graph streams four kinds of parts, each with a namespace: `messages` (chunks of models, and results of tools), `tools`
(the start, output, end or error of a tool), `tasks` (the start of a node, and its end with result and interrupts) and
`custom` (any data that the code of the graph writes). A graph with a cache also streams `updates`, because they are all
that it reports of a node whose result was cached.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from time import perf_counter
from typing import Any, cast

from limelight.events import EVENT_TYPES, AnyEvent, FinalAnswer, Plan, RunFinished, Status, Todo
from limelight.json_values import fields_of, json_text, json_value, safe_text
from limelight.sources.base import Item
from limelight.sources.langgraph.agents import Steps, SubAgent, SubAgents
from limelight.sources.langgraph.approvals import Interrupt, Interrupted, interrupt_of, restored_interrupt
from limelight.sources.langgraph.branches import Branches
from limelight.sources.langgraph.messages import Messages, usage_of
from limelight.sources.langgraph.stream_parts import (
    Namespace,
    Part,
    Written,
    calls_in,
    is_command,
    is_hook,
    is_internal,
    is_model_run,
    is_structured,
    messages_in,
    task_in,
    text_in,
    todos_in,
)
from limelight.sources.langgraph.tasks import RETURN, Task, Tasks, returned_call_ids
from limelight.sources.langgraph.tool_calls import GraphCall, ToolCalls, ToolRun, elapsed_ms, take_equal
from limelight.sources.langgraph.tool_runs import ToolRuns, ToolTasks
from limelight.sources.resume_state import ResumeState
from limelight.sources.tool_results import args_value, final_answer

MAX_STATUS = 500
"""The maximum length of a status text that a graph writes."""
CUT_OFF = "cut off"
"""Beginning of the error text of calls that were open when the graph failed."""
MODEL_MESSAGES = ("AIMessageChunk", "ai")
"""LangChain's types of model messages: of chunks, and of complete messages."""
DROPS: Mapping[str, str] = {
    "mode values": "the whole state at every step; only a graph without a checkpointer streams it, for its answer",
    "mode updates": "repeats every message, and interrupts are in `tasks` too; cached results are not dropped",
    "mode checkpoints": "the whole state, as stored",
    "mode debug": "`tasks` and `checkpoints` in another form",
    "message human": "the question, or a prompt of the graph for its models",
    "message HumanMessageChunk": "as `human`",
    "message system": "instructions",
    "message SystemMessageChunk": "as `system`",
    "message chat": "its role does not say who has written it",
    "message ChatMessageChunk": "as `chat`",
    "message function": "the result of a call in a form from before calls had ids",
    "message FunctionMessageChunk": "as `function`",
    "message ToolMessageChunk": "results are not streamed in chunks; output is",
    "message remove": "an instruction to the state",
    "message of a middleware": "a model's reply to a middleware, such as a summary; its usage is reported",
    "message again": "the complete message after its chunks, or a message of an earlier turn",
    "result of another turn": "of a call that this run has not made",
}
"""The stream modes and messages of LangGraph that are ignored, with the reasons. A test compares the keys with
LangGraph."""


class LangGraphTranslator:
    """Translates the stream of a graph into the Events of one run, including its pauses for approvals."""

    def __init__(
        self,
        max_steps: int | None = None,
        clock: Callable[[], float] = perf_counter,
        subgraphs: frozenset[tuple[str, ...]] = frozenset(),
    ) -> None:
        self.values: Any = None
        """The graph's last state; streamed only by a graph without a checkpointer."""
        self.initial_values: Any = None
        """The graph's state before this turn; None if it is unknown."""
        self.tool_tasks = ToolTasks()
        """The graph tasks in which tools run; LangGraph's stream does not contain them."""
        self._clock = clock
        self._calls = ToolCalls()
        self._agents = SubAgents()
        self._messages = Messages()
        self._steps = Steps(max_steps)
        self._tasks = Tasks()
        self._branches = Branches(self._tasks, self._agents, subgraphs)
        self._tool_runs = ToolRuns(self._calls, self._agents, self._tasks)
        self._planned: set[str] = set()
        self._interrupts: dict[str, Interrupt] = {}
        self._expected_messages: Counter[tuple[Namespace, str]] = Counter()
        """How often LangGraph will still repeat, as a message, a tool result that was already emitted; by namespace and
        LangGraph's call id."""
        self._returned_count = 0
        self._streamed_ids: set[str] = set()
        """LangChain's ids of the complete messages that LangGraph has streamed."""
        self._runs_without_call: dict[Namespace, list[GraphCall]] = {}
        """Calls that represent tool runs without a model's call, by namespace. A message with the model's call may
        follow until the namespace's last task ends."""
        self.append = self._messages.append
        """Translates a chunk that only adds text to an open message. Returns None if `feed` has to translate it."""
        self.add_earlier = self._messages.add_earlier

    def restore(self, state: ResumeState) -> None:
        """Restore the translator of a run that was waiting for a person when its server ended."""
        self._calls.restore(state)
        self._agents.restore(state)
        self._steps.restore(state)
        self._branches.restore(state)
        self._messages.ids.count = len(state.message_ids)
        self._planned = set(state.planned)

    def restored_interrupts(self, tasks: Iterable[Any], state: ResumeState) -> list[Interrupt]:
        """Convert the interrupts of saved tasks to approval requests; the log supplies their agents and calls."""
        return [
            restored_interrupt(
                Interrupted(stop.id, stop.value, getattr(stop, "response_schema", None), task.id, task.name),
                state,
                self._calls.open,
            )
            for task in tasks
            for stop in task.interrupts
        ]

    @property
    def limit_exceeded(self) -> bool:
        """True once the main agent tries to start more steps than its limit. The graph must then be stopped."""
        return self._steps.limit_exceeded

    def agent_at(self, ns: Namespace, task_id: str = "") -> str:
        """Return the id of the agent at a LangGraph namespace; the main agent's if the namespace is unknown.

        With a `task_id`, it is the branch of this task if the task is one.
        """
        return self._agents.agent_id(self._tasks.without_callers(ns), task_id) or ""

    def feed(self, part: Part) -> list[Item]:
        if part.ns:
            part = part._replace(ns=self._tasks.without_callers(part.ns))
        is_start = part.type == "tasks" and "input" in part.data
        events = [*self._task_started(part)] if is_start else [*self._feed_other(part)]
        for branch in self._agents.kept_branches:
            if not self._calls.has_open(branch.agent_id):
                events += self._end_agents([branch], None)
        return events

    def _feed_other(self, part: Part) -> list[Item]:
        self._branches.end_start_of_nodes(part.ns)
        match part.type:
            case "messages":
                return self._message(part)
            case "tools":
                return self._tool(part)
            case "tasks":
                return self._task_ended(part.ns, part.data)
            case "custom":
                return self._custom(part)
            case "updates":
                return self._cached_results(part)
            case "values":
                self.values = self.values if part.ns else part.data
                return []
            case _:
                return []

    # Messages

    def _message(self, part: Part) -> list[Item]:
        message, metadata = part.data
        task_id = task_in(metadata)
        if message.type in ("ai", "tool") and not is_structured(metadata):
            self._streamed_ids.add(message.id)
        if message.type == "tool":
            return self._tool_message(part.ns, message, task_id)
        if message.type not in MODEL_MESSAGES:
            return []
        if is_internal(metadata):
            return [*self._usage(self.agent_at(part.ns, task_id), message, metadata)]
        return self._model_message(part.ns, message, metadata, task_id)

    def _model_message(self, ns: Namespace, message: Any, metadata: dict[str, Any], task_id: str) -> list[Item]:
        call = self._agents.task_call(task_id)
        if call is not None:  # a tool has called a model: the reply is output of the tool
            usage = self._usage(call.agent_id, message, metadata)
            return [*call.output_value(text_in(message.content)), *usage]
        if message.type == "ai" and not is_structured(metadata):
            return self._complete_message(ns, message, metadata, task_id)
        events = self._start_speaking(ns, task_id, metadata)
        agent_id = self.agent_at(ns, task_id)
        events += self._finish_run_calls(task_id)
        if is_structured(metadata):
            return [*events, *self._structured_output(agent_id, message, metadata, task_id)]
        events += self._messages.feed(agent_id, message, task_id)
        for chunk in message.tool_call_chunks:
            events += self._calls.append_chunk(agent_id, message.id, chunk, task_id)
        events += self._usage(agent_id, message, metadata)
        if message.chunk_position == "last":
            events += self._messages.finish(message.id)
        return events

    def _structured_output(self, agent_id: str, message: Any, metadata: dict[str, Any], task_id: str) -> list[Item]:
        events: list[Item] = [*self._messages.feed_structured(agent_id, message, task_id)]
        events += self._usage(agent_id, message, metadata)
        is_end = message.type == "ai" or message.chunk_position == "last"
        return [*events, *(self._messages.finish(message.id) if is_end else ())]

    def _complete_message(self, ns: Namespace, message: Any, metadata: dict[str, Any], task_id: str) -> list[Item]:
        """Return the events of a complete message of a model or a node; none if it repeats another message."""
        is_returned = not is_model_run(metadata)
        if self._messages.is_known(message.id):
            return self._changed_calls(message, task_id)
        if is_returned and self._tasks.is_repeated(task_id, message):
            return []
        events = self._start_speaking(ns, task_id, metadata)
        agent_id = self.agent_at(ns, task_id)
        if not is_returned:
            events += self._finish_run_calls(task_id)
        if not (is_returned and self._messages.is_repeated(task_id, text_in(message.content))):
            events += self._messages.feed(agent_id, message, task_id)
        without_id = self._calls.open_with_id(agent_id, "")
        for made in [*message.tool_calls, *message.invalid_tool_calls]:
            call = (agent_id, made["id"] or "", made["name"], made["args"])
            if is_returned and self._is_shown(ns, task_id, *call):
                continue
            if made["id"]:
                events += self._calls.start(*call, task_id, message.id)
            elif not (is_returned and take_equal(without_id, made["name"], made["args"])):
                events += self._calls.start_new(*call, task_id)
        events += self._usage(agent_id, message, metadata)
        return [*events, *self._messages.finish(message.id)]

    def _start_speaking(self, ns: Namespace, task_id: str, metadata: dict[str, Any]) -> list[Item]:
        """Return the events that start the agent and the step in which a task's message is shown, if necessary."""
        events: list[Item] = [*self._agents.start(ns, metadata.get("lc_agent_name") or "")]
        task = self._tasks.running.get(task_id)
        if task is None or not task.is_step:
            return events
        task.is_active = True
        if self._branches.is_late(task):
            calls = self._tool_runs.calls_given(task_id)
            events += self._branches.start_late(task, calls[0] if calls else None)
        agent_id = self.agent_at(ns, task_id)
        if self._branches.has_called_functions(task_id) and self._steps.task_of(agent_id) != task_id:
            events += self._steps.start(agent_id, task.node, task_id)  # the caller of a function speaks again
        return events

    def _is_shown(self, ns: Namespace, task_id: str, agent_id: str, raw_id: str, name: str, args: Any) -> bool:
        """Whether events were already emitted for a call in a returned message.

        They were emitted when a model made the call or when its tool ran.

        In the second case, the emitted call gets the LangGraph id of the call in the message.
        """
        if self._calls.was_made_in(agent_id, raw_id, task_id):
            return True
        return self._calls.assign_id(agent_id, raw_id, name, args, self._runs_without_call.get(ns, []))

    def _changed_calls(self, message: Any, task_id: str, *, is_hook: bool = False) -> list[Item]:
        """Return the events of calls to which a node has given other arguments before their tools run.

        The node returns the message that contains them again, under the same id. If clients know the arguments as
        complete, the call ends without a result, and another call takes its place. Not so after a middleware's hook:
        the approval that it has requested contains the arguments of the person.
        """
        events: list[Item] = []
        for made in message.tool_calls:
            call, args = self._calls.waiting_in(message.id, made["id"] or ""), args_value(made["args"])
            if call is None or (call.name, call.known_args) == (made["name"], args):
                continue
            if call.name == made["name"] and call.args is None:
                events += call.ready(args)
            elif not is_hook:
                events += call.finish_unseen()
                events += self._calls.start_new(call.agent_id, call.raw_id, made["name"], args, task_id, message.id)
        return events

    def _usage(self, agent_id: str, message: Any, metadata: dict[str, Any]) -> list[AnyEvent]:
        usage = usage_of(agent_id, message, metadata)
        if usage is None:
            return []
        self._steps.add_usage(usage)
        return [usage]

    def _finish_run_calls(self, task_id: str) -> list[Item]:
        """Finish a task's calls whose tools have ended, because a model replies in the task.

        The model has received the results, although no message has shown them.
        """
        ended = [call for call, run in self._tool_runs.in_task(task_id) if not run.live]
        return [event for call in ended for event in call.finish_with_run()]

    # Tools

    def _tool(self, part: Part) -> list[Item]:
        ns, data = part.ns, part.data
        raw_id, name = data.get("tool_call_id") or "", data.get("tool_name")
        task_id = self.tool_tasks.take(data["event"], raw_id)
        events: list[Item] = [*self._agents.start(ns)]
        call = self._tool_runs.call(raw_id) or self._tool_runs.find_call(ns, raw_id, name, task_id, data.get("input"))
        if data["event"] == "tool-started":
            if (task := self._tasks.running.get(task_id)) is not None:
                task.is_active = True
            if call is None:
                call, started = self._start_run(ns, raw_id, name or "", data.get("input"), task_id)
                events += started
            self._tool_runs.tool_names.add(name or "")
        if call is None:
            return events
        run = call.run if self._tool_runs.call(raw_id) is call else None
        match data["event"]:
            case "tool-started":
                call.error = ""
                if run is None:
                    call.start_by_id()
                    self._tool_runs.find_task(ns, call)
                events += call.ready_with(data.get("input"))
            case "tool-output-delta":
                events += call.output_value(data.get("delta"))
            case "tool-finished" if run is not None:
                events += self._returned_to_node(ns, call, run, data.get("output"))
            case "tool-finished":
                events += self._returned(ns, call, data.get("output"), task_id)
            case "tool-error":
                call.error = str(data.get("message") or "Unknown error")
                if run is not None:
                    run.end(self._clock())
            case _:
                pass
        return events

    def _start_run(
        self, ns: Namespace, run_id: str, name: str, args: Any, task_id: str
    ) -> tuple[GraphCall | None, list[Item]]:
        """Match a tool run to a model's call, or emit it as a call of its own. Returns the call and the events."""
        call, replaced = self._tool_runs.match(ns, run_id, name, args, self._clock(), task_id)
        events: list[Item] = [] if replaced is None else self._show_replaced_run(ns, replaced)
        if call is None:
            events += self._start_run_without_call(ns, run_id, name, args, task_id)
            call = self._tool_runs.find_call(ns, run_id, None, task_id)
        return call, events

    def _start_run_without_call(self, ns: Namespace, run_id: str, name: str, args: Any, task_id: str) -> list[AnyEvent]:
        """Start a call of its own for a tool run that matches no model's call."""
        agent_id = self.agent_at(ns, task_id)
        events = self._calls.start(agent_id, run_id, name, args)
        call = self._calls.get(agent_id, run_id)
        self._runs_without_call.setdefault(ns, []).extend([call] if call is not None else [])
        return events

    def _show_replaced_run(self, ns: Namespace, run: ToolRun) -> list[Item]:
        """Emit a tool run as a call of its own, after a better match has replaced it."""
        events: list[Item] = [*self._start_run_without_call(ns, run.run_id, run.name, run.args, run.task_id)]
        call = self._tool_runs.find_call(ns, run.run_id, None, run.task_id)
        if call is not None and run.returned:
            events += call.finish_with_value(run.value, duration_ms=run.duration_ms)
        return events

    def _returned_to_node(self, ns: Namespace, call: GraphCall, run: ToolRun, output: Any) -> list[Item]:
        """Store a tool's return value until its node returns a message with the value, or ends.

        Messages in the return value are shown at once.
        """
        run.end(self._clock())
        run.returned = True
        run.value = None if is_command(output) else getattr(output, "content", output)
        events: list[Item] = [*self._plan(call.agent_id, output)]
        messages = messages_in(output)
        return [*events, *(event for message in messages for event in self._result(ns, message, run.task_id))]

    def _returned(self, ns: Namespace, call: GraphCall, output: Any, task_id: str) -> list[Item]:
        events: list[Item] = [*self._plan(call.agent_id, output)]
        messages = messages_in(output)
        for message in messages:
            events += self._result(ns, message, task_id)
            self._expected_messages[ns, getattr(message, "tool_call_id", "")] += 1
        value = None if messages or is_command(output) else output  # a plain value if code has called the tool
        events += self._end_agents(self._agents.ending_with_call(call), None)
        return [*events, *call.finish_with_value(value)]

    def _tool_message(self, ns: Namespace, message: Any, task_id: str) -> list[Item]:
        """Return the events of a tool's result message, unless the result was already emitted.

        A repeated message must not end another call with the same id.
        """
        expected = (ns, message.tool_call_id)
        if self._expected_messages[expected]:
            self._expected_messages[expected] -= 1
            return []
        return self._result(ns, message, task_id)

    def _result(self, ns: Namespace, message: Any, task_id: str = "") -> list[Item]:
        if getattr(message, "type", "") != "tool":
            return []
        events: list[Item] = [*self._agents.start(ns)]
        if message.tool_call_id:
            call = self._tool_runs.find_call(ns, message.tool_call_id, None, task_id)
        else:  # the result of the first open call of the task
            call = next(iter(self._tool_runs.calls_given(task_id)), None)
        if call is None:
            return events
        self._tool_runs.correct_match(call, task_id)
        failed = message.status == "error"
        events += self._end_agents(self._agents.ending_with_call(call), text_in(message.content) if failed else None)
        return [*events, *call.finish_with_message(message, self._task_duration(call, task_id))]

    def _task_duration(self, call: GraphCall, task_id: str) -> int | None:
        """Return the duration of the graph task that returned a call's result; None if a tool ran for the call."""
        task = self._tasks.running.get(task_id)
        if call.started_by_id or call.run is not None or task is None:
            return None
        return elapsed_ms(task.started_at, self._clock())

    def _plan(self, agent_id: str, output: Any) -> list[AnyEvent]:
        """Return a Plan event if a tool's return value contains a plan."""
        todos = todos_in(output)
        if todos is None:
            return []
        items = tuple(Todo(str(t.get("content") or ""), _todo_status(t.get("status"))) for t in todos)
        update = agent_id in self._planned
        self._planned.add(agent_id)
        return [Plan(agent_id=agent_id, items=items, update=update)]

    # Tasks

    def _task_started(self, part: Part) -> list[Item]:
        ns, data = part.ns, part.data
        metadata = fields_of(data.get("metadata"))
        task_id, node, calls = data["id"], data["name"], calls_in(data["input"])
        if self._tasks.has_ended(task_id):
            return []  # a resumed graph reports it again
        events: list[Item] = []
        if self._branches.is_next_step(ns, data["input"], data.get("triggers")):
            for task in self._tasks.running_in(ns):  # LangGraph does not report the end of tasks with cached results
                events += self._task_ended(ns, {"id": task.task_id, "name": task.node})
        events += self._agents.start(ns, metadata.get("lc_agent_name") or "")
        agent_id = self.agent_at(ns)
        task = self._tasks.start(ns, task_id, data["input"], self._clock(), node, data.get("triggers"))
        for made in calls:
            call = self._tool_runs.find_branch_call(ns, made["id"], task_id, made.get("args"))
            if call is None:
                events += self._calls.start(agent_id, made["id"], made["name"], made.get("args"))
                call = self._calls.get(agent_id, made["id"])
            if call is not None:
                events += call.ready_with(made.get("args"))
                self._agents.add_task_call(task_id, call)
        if not calls and not is_hook(node) and node != "tools":
            task.is_step = True
            events += self._step_started(task)
        return events

    def _step_started(self, task: Task) -> list[AnyEvent]:
        """Return the events that start a task's step, or its branch if other tasks run beside it."""
        if self._agents.is_branch(task.task_id):
            return []  # it continues after an interrupt
        if self._branches.is_alone(task):
            return self._steps.start(self._branches.begin_alone(task), task.node, task.task_id)
        events: list[AnyEvent] = []
        for branch in self._branches.begin_beside(task, self._tool_runs.runs_given_calls):
            events += branch.events
            if branch.has_step:
                agent_id = self.agent_at(branch.task.ns, branch.task.task_id)
                events += self._steps.start(agent_id, branch.task.node, branch.task.task_id)
        return events

    def _task_ended(self, ns: Namespace, data: dict[str, Any]) -> list[Item]:
        task_id, agent_id = data["id"], self._agents.agent_id(ns)
        events = self._returned_messages(ns, data)
        interrupts = data.get("interrupts")
        self._tasks.end(task_id, is_interrupted=bool(interrupts))
        is_last = not self._tasks.running_in(ns)
        if is_last:
            self._runs_without_call.pop(ns, None)
        if agent_id is None:
            return events
        agent_id = self.agent_at(ns, task_id)
        ended = self._tool_runs.ending_with(ns, task_id, is_last=is_last)
        events += [event for call, run in ended if run.returned for event in call.finish_with_run()]
        self._tool_runs.end_task(ns, task_id, self._clock(), is_last=is_last)
        if interrupts:
            return [*events, *(event for stop in interrupts for event in self._interrupt(ns, agent_id, data, stop))]
        error = None if data.get("error") is None else safe_text(data["error"])
        ending = self._agents.ending_with_task(ns, task_id)
        if error is None and self._has_calls_for_others(agent_id, data.get("result")):
            kept = self._agents.keep_branch(task_id)
            ending = [agent for agent in ending if agent is not kept]
            events += self._steps.finish(agent_id) if kept is not None else []
        events += self._end_agents(ending, error)
        events += self._messages.finish_all(agent_id, task_id)
        return [*events, *self._fail_calls({agent_id, self.agent_at(ns)}, task_id, ended)]

    def _has_calls_for_others(self, agent_id: str, result: Any) -> bool:
        """Whether a task has put messages with open calls of its agent into the state, which later nodes execute."""
        open_ids = self._calls.open_ids(agent_id)
        return bool(open_ids) and not open_ids.isdisjoint(returned_call_ids(result))

    def _returned_messages(self, ns: Namespace, data: dict[str, Any]) -> list[Item]:
        """Return the events of messages that a node has returned as dicts or tuples, which LangGraph never streams."""
        task_id, events = data["id"], list[Item]()
        for message, is_shown, is_object in self._tasks.returned_messages(ns, task_id, data.get("result")):
            is_streamed = is_object and (message.id in self._streamed_ids or self._messages.is_known(message.id))
            if message.type == "tool":
                events += [] if is_streamed else self._tool_message(ns, message, task_id)
            elif is_hook(data["name"]):
                events += self._changed_calls(message, task_id, is_hook=True)
            elif not is_shown:
                continue
            elif is_streamed:
                events += self._changed_message(ns, message, task_id)
            elif not (is_object and self._repeats_inner_message(ns, task_id, message)):
                self._returned_count += 1
                new_id = message.id or f"returned-{self._returned_count}"
                complete = message.model_copy(update={"id": new_id, "type": "ai"})
                events += self._model_message(ns, complete, {}, task_id)
        return events

    def _repeats_inner_message(self, ns: Namespace, task_id: str, message: Any) -> bool:
        """Whether a returned message is a copy of one that a sub-agent inside the task has made, as after a handoff."""
        inner = [agent.agent_id for agent in self._agents.ending_with_task(ns, task_id)]
        calls = [call["id"] or "" for call in message.tool_calls]
        if any(all(self._calls.get(agent_id, raw_id) is None for agent_id in inner) for raw_id in calls):
            return False
        text = text_in(message.content)
        return any(self._messages.has_said(agent_id, text) for agent_id in inner) if text else bool(calls)

    def _changed_message(self, ns: Namespace, message: Any, task_id: str) -> list[Item]:
        """Return the events of a message that a node has returned again with another text or with other calls."""
        text, events = text_in(message.content), self._changed_calls(message, task_id)
        if not text.strip() or not self._messages.has_changed(message.id, text):
            return events
        events += self._start_speaking(ns, task_id, {})
        events += self._messages.feed(self.agent_at(ns, task_id), message, task_id)
        return [*events, *self._messages.finish(message.id)]

    def _cached_results(self, part: Part) -> list[Item]:
        """Return the events at the end of tasks whose results were cached; LangGraph reports only their updates."""
        if not fields_of(fields_of(part.data).get("__metadata__")).get("cached"):
            return []
        events: list[Item] = []
        for node, update in fields_of(part.data).items():
            running = (task for task in self._tasks.running_in(part.ns) if task.node == node)
            if (task := next(running, None)) is not None:
                result = fields_of(update) or {RETURN: update}
                events += self._task_ended(part.ns, {"id": task.task_id, "name": node, "result": result})
        return events

    def _fail_calls(self, agent_ids: set[str], task_id: str, runs: list[tuple[GraphCall, ToolRun]]) -> list[Item]:
        """End the failed calls of a task that has ended; the graph will not retry them."""
        failed = [c for c in self._calls.open if c.error and c.run is None and c.agent_id in agent_ids]
        ended = [c for c in failed if c in self._agents.task_calls(task_id) or not self._agents.has_task(c)]
        ended += [call for call, _ in runs if call.error]
        events: list[Item] = []
        for call in ended:
            events += self._end_agents(self._agents.ending_with_call(call), call.error)
            events += call.fail(call.error)
        return events

    def _interrupt(self, ns: Namespace, agent_id: str, task: dict[str, Any], stop: dict[str, Any]) -> list[AnyEvent]:
        """Store an interrupt once, although LangGraph reports it again in each enclosing namespace.

        The ids of interrupts that nodes raise as exceptions are all alike, so their values tell them apart.
        """
        raised = Interrupted(stop["id"], stop["value"], stop.get("response_schema"), task["id"], task["name"])
        key = raised.interrupt_id if raised.takes_value else f"{raised.interrupt_id} {safe_text(raised.value)}"
        if key in self._interrupts:
            return []
        agent_ids = {agent_id, *self._agents.branch_ids(ns)} if agent_id == self.agent_at(ns) else {agent_id}
        own = [call for call in self._calls.open if call.agent_id in agent_ids]
        events = [event for call in own for event in call.ready()]
        inside = self._agents.task_call(raised.task_id)
        self._interrupts[key] = interrupt_of(raised, agent_id, own, inside)
        return events

    def take_interrupts(self) -> list[Interrupt]:
        """Return and clear the stored interrupts of a stream that has ended."""
        interrupts, self._interrupts = list(self._interrupts.values()), {}
        for call in self._calls.open:
            call.asked = False
        return interrupts

    # Custom data

    def _custom(self, part: Part) -> list[Item]:
        events: list[Item] = [*self._agents.start(part.ns)]
        written = part.data if isinstance(part.data, Written) else Written("", part.data)
        if isinstance(written.data, EVENT_TYPES):
            return [*events, cast("AnyEvent", written.data)]
        text = _status_text(written.data)[:MAX_STATUS]
        return [*events, Status(agent_id=self.agent_at(part.ns, written.task_id), text=text)] if text else events

    # The end

    def _end_agents(self, ending: list[SubAgent], error: str | None) -> list[Item]:
        events: list[Item] = []
        for agent in ending:
            events += self._close(agent.agent_id, error)
            events.append(self._agents.finish(agent, error))
        return events

    def _close(self, agent_id: str, error: str | None) -> list[Item]:
        """Return the events that end an agent's open messages, calls and step."""
        events: list[Item] = [*self._messages.finish_all(agent_id)]
        for call in self._calls.open:
            if call.agent_id != agent_id:
                continue
            events += call.finish_with_run()
            events += call.finish_unseen() if error is None else call.fail(f"{CUT_OFF}: {error}", "stopped")
        return [*events, *self._steps.finish(agent_id, error)]

    def stopped(self) -> list[Item]:
        """After a Stop, end the calls whose tools have ended, because no message has reported their results."""
        return [event for call in self._calls.open if call.run is not None for event in call.finish_with_run()]

    def failed(self, error: str) -> list[Item]:
        """Return the events that end everything open after the graph has raised an error.

        Calls that have failed end with their own error, all others with this one.
        """
        return [*self._end_agents(self._agents.all_open(), error), *self._close("", error)]

    def end(self, answer: Any, raw_id: str | None, code: str = "") -> list[Item]:
        """Return the last events of a graph that has ended: what closes open items, the answer and RunFinished.

        `answer` is the answer in the graph's state; `raw_id` is the id of the message that contains it, if there is
        one.
        """
        events = [*self._end_agents(self._agents.all_open(), None), *self._close("", None)]
        return [*events, self._answer(answer, raw_id), RunFinished(code=code)]

    def _answer(self, answer: Any, raw_id: str | None) -> FinalAnswer:
        """Return the final answer with the id of the message that streamed it, so that clients show it once."""
        if answer is None:
            text, message_id = self._messages.last_text
            return FinalAnswer(content=text, message_id=message_id)
        if not isinstance(answer, str):
            return final_answer(answer, self._messages.find_object(json_value(answer)))
        return FinalAnswer(content=answer, message_id=self._messages.find_text(answer, raw_id))


def _status_text(data: Any) -> str:
    """Return the status text in a graph's custom data: a text field meant for people, else all of the data as JSON."""
    fields = fields_of(data)
    for key in ("status", "message", "text", "content", "progress"):
        if isinstance(fields.get(key), str):
            return fields[key]
    value = json_value(data)
    return value if isinstance(value, str) else json_text(value)


def _todo_status(value: Any) -> Any:
    return value if value in ("pending", "in_progress", "completed") else "pending"
