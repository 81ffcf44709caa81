"""Translates the stream of a graph into Events. Pure: no graph, no event loop; the clock is a parameter.

A graph streams four kinds of parts, each with a namespace: `messages` (chunks of models, and results of tools), `tools`
(the start, output, end or error of a tool), `tasks` (the start of a node, and its end with result and interrupts) and
`custom` (any data that the code of the graph writes).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from time import perf_counter
from typing import Any, cast

from limelight.events import EVENT_TYPES, AnyEvent, FinalAnswer, Plan, RunFinished, Status, Todo
from limelight.json_values import json_value, safe_text
from limelight.sources.base import Item
from limelight.sources.langgraph.agents import Steps, SubAgent, SubAgents
from limelight.sources.langgraph.approvals import Interrupt, interrupt_of, restored_interrupt
from limelight.sources.langgraph.messages import Messages, usage_of
from limelight.sources.langgraph.stream_parts import (
    Namespace,
    Part,
    calls_in,
    is_command,
    is_hook,
    is_internal,
    is_model_run,
    messages_in,
    task_in,
    text_in,
    todos_in,
)
from limelight.sources.langgraph.tasks import Tasks
from limelight.sources.langgraph.tool_calls import GraphCall, ToolCalls, ToolRun, elapsed_ms, take_equal
from limelight.sources.langgraph.tool_runs import ToolRuns
from limelight.sources.resume_state import ResumeState
from limelight.sources.tool_results import fields_of, final_answer

MAX_STATUS = 500
"""The maximum length of a status text that a graph writes."""
CUT_OFF = "cut off"
"""Beginning of the error text of calls that were open when the graph raised an error."""
MODEL_MESSAGES = ("AIMessageChunk", "ai")
"""The types of model messages: chunks, and complete messages."""
DROPS: Mapping[str, str] = {
    "mode values": "the whole state at every step; only a graph without a checkpointer streams it, for its answer",
    "mode updates": "repeats every message; interrupts are in `tasks` too",
    "mode checkpoints": "the whole state, as it is stored",
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
"""Stream modes and messages that are ignored, each with the reason. A test compares the keys with LangGraph."""


class LangGraphTranslator:
    """Translator from the stream of a graph to the Events of one run, including its pauses for approvals."""

    def __init__(self, max_steps: int | None = None, clock: Callable[[], float] = perf_counter) -> None:
        self.values: Any = None
        """The last state of the graph; only a graph without a checkpointer streams it."""
        self.initial_values: Any = None
        """The state before this turn; None if it is unknown."""
        self._clock = clock
        self._calls = ToolCalls()
        self._agents = SubAgents()
        self._messages = Messages()
        self._steps = Steps(max_steps)
        self._tasks = Tasks()
        self._tool_runs = ToolRuns(self._calls, self._agents, self._tasks)
        self._planned: set[str] = set()
        self._interrupts: dict[str, Interrupt] = {}
        self._expected_messages: Counter[tuple[Namespace, str]] = Counter()
        """How often LangGraph will repeat an already shown tool result as a message, by namespace and raw id."""
        self._returned_count = 0
        self._runs_without_call: dict[Namespace, list[GraphCall]] = {}
        """Calls that stand for tool runs without a model's call, by namespace. A message with the model's call may
        follow until the last task in the namespace ends."""
        self.append = self._messages.append
        """Translates a chunk that only adds text to an open text. Returns None if `feed` has to translate it."""
        self.add_earlier = self._messages.add_earlier

    def restore(self, state: ResumeState) -> None:
        """Restore the state of a run that waited for a person when its server ended."""
        self._calls.restore(state)
        self._agents.restore(state)
        self._steps.restore(state)
        self._messages.ids.count = len(state.message_ids)
        self._planned = set(state.planned)

    def restored_interrupts(self, interrupts: Iterable[Any], state: ResumeState) -> list[Interrupt]:
        """Convert the interrupts in a saved state to approval requests. The log provides their agents and calls."""
        return [restored_interrupt(stop.id, stop.value, state, self._calls.open) for stop in interrupts]

    @property
    def limit_exceeded(self) -> bool:
        """True once the main agent tries to start more steps than its limit. The graph must then be stopped."""
        return self._steps.limit_exceeded

    def agent_at(self, ns: Namespace) -> str:
        """Return the id of the agent at a namespace; that of the main agent if the namespace is unknown."""
        return self._agents.agent_id(ns) or ""

    def feed(self, part: Part) -> list[Item]:
        match part.type:
            case "messages":
                return self._message(part)
            case "tools":
                return self._tool(part)
            case "tasks":
                return self._task_started(part) if "input" in part.data else self._task_ended(part.ns, part.data)
            case "custom":
                return self._custom(part)
            case "values":
                self.values = self.values if part.ns else part.data
                return []
            case _:
                return []

    # Messages

    def _message(self, part: Part) -> list[Item]:
        message, metadata = part.data
        task_id = task_in(metadata)
        if message.type == "tool":
            return self._tool_message(part.ns, message, task_id)
        if message.type not in MODEL_MESSAGES:
            return []
        if is_internal(metadata):
            return [*self._usage(self.agent_at(part.ns), message, metadata)]
        return self._model_message(part.ns, message, metadata, task_id)

    def _model_message(self, ns: Namespace, message: Any, metadata: dict[str, Any], task_id: str) -> list[Item]:
        call = self._agents.task_call(task_id)
        if call is not None:  # a tool has called a model: the reply is output of the tool
            usage = self._usage(call.agent_id, message, metadata)
            return [*call.output_value(text_in(message.content)), *usage]
        if message.type == "ai":
            return self._complete_message(ns, message, metadata, task_id)
        events: list[Item] = [*self._agents.start(ns, metadata.get("lc_agent_name") or "")]
        agent_id = self.agent_at(ns)
        events += self._finish_run_calls(task_id)
        events += self._messages.feed(agent_id, message, task_id)
        for chunk in message.tool_call_chunks:
            events += self._calls.append_chunk(agent_id, message.id, chunk, task_id)
        events += self._usage(agent_id, message, metadata)
        if message.chunk_position == "last":
            events += self._messages.finish(message.id)
        return events

    def _complete_message(self, ns: Namespace, message: Any, metadata: dict[str, Any], task_id: str) -> list[Item]:
        """Show a complete message of a model or a node, unless the message repeats another one."""
        if self._messages.is_known(message.id):
            return []
        is_returned = not is_model_run(metadata)
        if is_returned and self._tasks.is_repeated(task_id, message):
            return []
        events: list[Item] = [*self._agents.start(ns, metadata.get("lc_agent_name") or "")]
        agent_id = self.agent_at(ns)
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
                events += self._calls.start(*call, task_id)
            elif not (is_returned and take_equal(without_id, made["name"], made["args"])):
                events += self._calls.start_new(*call, task_id)
        events += self._usage(agent_id, message, metadata)
        return [*events, *self._messages.finish(message.id)]

    def _is_shown(self, ns: Namespace, task_id: str, agent_id: str, raw_id: str, name: str, args: Any) -> bool:
        """Whether a call in a returned message was already shown, when a model made it or when its tool ran.

        In the second case, the shown call gets the raw id of the call in the message.
        """
        if self._calls.was_made_in(agent_id, raw_id, task_id):
            return True
        return self._calls.assign_id(agent_id, raw_id, name, args, self._runs_without_call.get(ns, []))

    def _usage(self, agent_id: str, message: Any, metadata: dict[str, Any]) -> list[AnyEvent]:
        usage = usage_of(agent_id, message, metadata)
        if usage is None:
            return []
        self._steps.add_usage(usage)
        return [usage]

    def _finish_run_calls(self, task_id: str) -> list[Item]:
        """Finish the calls of a task whose tool runs have ended, because a model replies in the task.

        The model has received the results, although no message has shown them.
        """
        ended = [call for call, run in self._tool_runs.in_task(task_id) if not run.live]
        return [event for call in ended for event in call.finish_with_run()]

    # Tools

    def _tool(self, part: Part) -> list[Item]:
        ns, data = part.ns, part.data
        raw_id, name = data.get("tool_call_id") or "", data.get("tool_name")
        events: list[Item] = [*self._agents.start(ns)]
        call = self._tool_runs.call(raw_id) or self._tool_runs.find_call(ns, raw_id, name)
        if data["event"] == "tool-started":
            if call is None:
                call, started = self._start_run(ns, raw_id, name or "", data.get("input"))
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
                events += self._returned(ns, call, data.get("output"))
            case "tool-error":
                call.error = str(data.get("message") or "Unknown error")
                if run is not None:
                    run.end(self._clock())
            case _:
                pass
        return events

    def _start_run(self, ns: Namespace, run_id: str, name: str, args: Any) -> tuple[GraphCall | None, list[Item]]:
        """Match a tool run to a model's call, or show it as a separate call. Returns the call and the events."""
        call, replaced = self._tool_runs.match(ns, run_id, name, args, self._clock())
        events: list[Item] = [] if replaced is None else self._show_replaced_run(ns, replaced)
        if call is None:
            events += self._start_run_without_call(ns, run_id, name, args)
            call = self._tool_runs.find_call(ns, run_id)
        return call, events

    def _start_run_without_call(self, ns: Namespace, run_id: str, name: str, args: Any) -> list[AnyEvent]:
        """Show a tool run that matches no model's call as a separate call."""
        agent_id = self.agent_at(ns)
        events = self._calls.start(agent_id, run_id, name, args)
        call = self._calls.get(agent_id, run_id)
        self._runs_without_call.setdefault(ns, []).extend([call] if call is not None else [])
        return events

    def _show_replaced_run(self, ns: Namespace, run: ToolRun) -> list[Item]:
        """Show a tool run as a separate call, after a better match has replaced it."""
        events: list[Item] = [*self._start_run_without_call(ns, run.run_id, run.name, run.args)]
        call = self._tool_runs.find_call(ns, run.run_id)
        if call is not None and run.returned:
            events += call.finish_with_value(run.value, duration_ms=run.duration_ms)
        return events

    def _returned_to_node(self, ns: Namespace, call: GraphCall, run: ToolRun, output: Any) -> list[Item]:
        """Store the return value of a tool run until its node returns a message with the value, or ends.

        Messages in the return value are shown at once.
        """
        run.end(self._clock())
        run.returned = True
        run.value = None if is_command(output) else getattr(output, "content", output)
        events: list[Item] = [*self._plan(call.agent_id, output)]
        return [*events, *(event for message in messages_in(output) for event in self._result(ns, message))]

    def _returned(self, ns: Namespace, call: GraphCall, output: Any) -> list[Item]:
        events: list[Item] = [*self._plan(call.agent_id, output)]
        messages = messages_in(output)
        for message in messages:
            events += self._result(ns, message)
            self._expected_messages[ns, getattr(message, "tool_call_id", "")] += 1
        value = None if messages or is_command(output) else output  # a plain value if code has called the tool
        events += self._end_agents(self._agents.ending_with_call(call), None)
        return [*events, *call.finish_with_value(value)]

    def _tool_message(self, ns: Namespace, message: Any, task_id: str) -> list[Item]:
        """Show a tool's result message, unless the tool has returned it before.

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
            call = self._tool_runs.find_call(ns, message.tool_call_id)
        else:  # the result of the first open call of the task
            call = next(iter(self._tool_runs.calls_given(task_id)), None)
        if call is None:
            return events
        self._tool_runs.correct_match(call, task_id)
        failed = message.status == "error"
        events += self._end_agents(self._agents.ending_with_call(call), text_in(message.content) if failed else None)
        return [*events, *call.finish_with_message(message, self._task_duration(call, task_id))]

    def _task_duration(self, call: GraphCall, task_id: str) -> int | None:
        """Return the duration of the task that returns the result of a call; None if a tool has run for the call."""
        task = self._tasks.running.get(task_id)
        if call.started_by_id or call.run is not None or task is None:
            return None
        return elapsed_ms(task.started_at, self._clock())

    def _plan(self, agent_id: str, output: Any) -> list[AnyEvent]:
        """Return a Plan event if the return value of a tool contains a plan."""
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
        events: list[Item] = [*self._agents.start(ns, metadata.get("lc_agent_name") or "")]
        agent_id = self.agent_at(ns)
        calls = calls_in(data["input"])
        self._tasks.start(ns, data["id"], data["input"], self._clock())
        for made in calls:
            events += self._calls.start(agent_id, made["id"], made["name"], made.get("args"))
            call = self._calls.get(agent_id, made["id"])
            if call is not None:
                events += call.ready_with(made.get("args"))
                self._agents.add_task_call(data["id"], call)
        node = data["name"]
        if not calls and not is_hook(node) and node != "tools":
            events += self._steps.start(agent_id, node, data["id"])
        return events

    def _task_ended(self, ns: Namespace, data: dict[str, Any]) -> list[Item]:
        task_id, agent_id = data["id"], self._agents.agent_id(ns)
        events = self._returned_messages(ns, data)
        self._tasks.running.pop(task_id, None)
        is_last = not self._tasks.running_in(ns)
        if is_last:
            self._runs_without_call.pop(ns, None)
        if agent_id is None:
            return events
        ended = self._tool_runs.ending_with(ns, task_id, is_last=is_last)
        events += [event for call, run in ended if run.returned for event in call.finish_with_run()]
        self._tool_runs.end_task(ns, task_id, self._clock(), is_last=is_last)
        if interrupts := data.get("interrupts"):
            return [*events, *(event for stop in interrupts for event in self._interrupt(agent_id, task_id, stop))]
        self._steps.end_task(agent_id, task_id)
        error = None if data.get("error") is None else safe_text(data["error"])
        events += self._end_agents(self._agents.ending_with_task(ns, task_id), error)
        events += self._messages.finish_all(agent_id, task_id)
        return [*events, *self._fail_calls(agent_id, task_id, ended)]

    def _returned_messages(self, ns: Namespace, data: dict[str, Any]) -> list[Item]:
        """Show the messages that a node has returned as dicts or tuples. LangGraph streams only message objects."""
        task_id, events = data["id"], list[Item]()
        for message, is_shown in self._tasks.returned_messages(ns, task_id, data.get("result")):
            if message.type == "tool":
                events += self._tool_message(ns, message, task_id)
            elif is_shown and not is_hook(data["name"]):
                self._returned_count += 1
                message.id = message.id or f"returned-{self._returned_count}"
                events += self._model_message(ns, message, {}, task_id)
        return events

    def _fail_calls(self, agent_id: str, task_id: str, runs: list[tuple[GraphCall, ToolRun]]) -> list[Item]:
        """End the failed calls of a task that has ended, because the graph will not retry them."""
        failed = [c for c in self._calls.open if c.error and c.run is None and c.agent_id == agent_id]
        ended = [c for c in failed if c in self._agents.task_calls(task_id) or not self._agents.has_task(c)]
        ended += [call for call, _ in runs if call.error]
        events: list[Item] = []
        for call in ended:
            events += self._end_agents(self._agents.ending_with_call(call), call.error)
            events += call.fail(call.error)
        return events

    def _interrupt(self, agent_id: str, task_id: str, stop: dict[str, Any]) -> list[AnyEvent]:
        """Add an interrupt. LangGraph reports it in its own namespace first, and then in all enclosing namespaces."""
        if stop["id"] in self._interrupts:
            return []
        own = [call for call in self._calls.open if call.agent_id == agent_id]
        events = [event for call in own for event in call.ready()]
        inside = self._agents.task_call(task_id)
        self._interrupts[stop["id"]] = interrupt_of(stop["id"], stop["value"], agent_id, own, inside)
        return events

    def take_interrupts(self) -> list[Interrupt]:
        """Return and clear the interrupts of a stream that has ended."""
        interrupts, self._interrupts = list(self._interrupts.values()), {}
        for call in self._calls.open:
            call.asked = False
        return interrupts

    # Custom data

    def _custom(self, part: Part) -> list[Item]:
        events: list[Item] = [*self._agents.start(part.ns)]
        data = part.data
        if isinstance(data, EVENT_TYPES):
            return [*events, cast("AnyEvent", data)]
        text = _status_text(data)[:MAX_STATUS]
        return [*events, Status(agent_id=self.agent_at(part.ns), text=text)] if text else events

    # The end

    def _end_agents(self, ending: list[SubAgent], error: str | None) -> list[Item]:
        events: list[Item] = []
        for agent in ending:
            events += self._close(agent.agent_id, error)
            events.append(self._agents.finish(agent, error))
        return events

    def _close(self, agent_id: str, error: str | None) -> list[Item]:
        """End the open messages, calls and step of an agent."""
        events: list[Item] = [*self._messages.finish_all(agent_id)]
        for call in self._calls.open:
            if call.agent_id != agent_id:
                continue
            events += call.finish_with_run()
            events += call.finish_unseen() if error is None else call.fail(f"{CUT_OFF}: {error}")
        return [*events, *self._steps.finish(agent_id, error)]

    def stopped(self) -> list[Item]:
        """End the calls whose tool runs have ended, after the run was stopped. No message has shown their results."""
        return [event for call in self._calls.open if call.run is not None for event in call.finish_with_run()]

    def failed(self, error: str) -> list[Item]:
        """End everything that is open, after the graph has raised an error.

        Calls that have failed end with their own error, all others with this one.
        """
        return [*self._end_agents(self._agents.all_open(), error), *self._close("", error)]

    def end(self, answer: Any, raw_id: str | None, code: str = "") -> list[Item]:
        """End everything that is open, after the graph has ended, and return the final answer and RunFinished.

        `answer` is the answer in the graph's state; `raw_id` is the id of the message that contains it, if there is
        one.
        """
        events = [*self._end_agents(self._agents.all_open(), None), *self._close("", None)]
        return [*events, self._answer(answer, raw_id), RunFinished(code=code)]

    def _answer(self, answer: Any, raw_id: str | None) -> FinalAnswer:
        """Return the final answer with the id of the message that has streamed it, so that clients show it once."""
        if answer is None:
            text, message_id = self._messages.last_text
            return FinalAnswer(content=text, message_id=message_id)
        if not isinstance(answer, str):
            return final_answer(answer, self._messages.find_object(json_value(answer)))
        return FinalAnswer(content=answer, message_id=self._messages.find_text(answer, raw_id))


def _status_text(data: Any) -> str:
    """Return the status text in custom data: the text of a field for people, or else all of the data."""
    fields = fields_of(data)
    for key in ("status", "message", "text", "content", "progress"):
        if isinstance(fields.get(key), str):
            return fields[key]
    value = json_value(data)
    return value if isinstance(value, str) else safe_text(value)


def _todo_status(value: Any) -> Any:
    return value if value in ("pending", "in_progress", "completed") else "pending"
