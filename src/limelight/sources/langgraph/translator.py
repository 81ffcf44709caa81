"""What a graph streams -> Events. Pure: no graph, no loop; the clock is passed in, and the source drives it.

Four streams come together here, each with the place in the graph where it arose: `messages` (what models say, piece by
piece, and the results of tools), `tools` (calls that start, print, end or fail), `tasks` (nodes that start and end,
with what they return and with interrupts) and `custom` (whatever the graph's own code writes).
"""

from collections import Counter
from collections.abc import Callable, Iterable
from time import perf_counter
from typing import Any, cast

from limelight.events import EVENT_TYPES, AnyEvent, FinalAnswer, Plan, RunFinished, Status, TextDelta, Todo
from limelight.sources.base import Item
from limelight.sources.langgraph.agents import Actor, Actors
from limelight.sources.langgraph.approvals import Interrupt, interrupt_again, interrupt_of
from limelight.sources.langgraph.messages import Speech, usage_of
from limelight.sources.langgraph.node_messages import NodeUpdates
from limelight.sources.langgraph.steps import Steps
from limelight.sources.langgraph.stream_parts import (
    Namespace,
    Part,
    call_ids_in,
    calls_before,
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
from limelight.sources.langgraph.tool_calls import Call, Calls, NodeRun, take_same
from limelight.sources.langgraph.tool_runs import RUN_ID, NodeRuns
from limelight.sources.resume_state import SoFar
from limelight.sources.values import fields_of, final_answer, json_value, safe_text

MAX_STATUS = 500
CUT_OFF = "cut off"
"""What a call is that had no part in what ended it."""
SPOKEN = ("AIMessageChunk", "ai")
"""The types of messages that models say, in pieces and whole."""


class LangGraphTranslator:
    """Translates one run, including its pauses for approvals. `dropped_parts.py` lists what is not translated."""

    def __init__(self, max_steps: int | None = None, clock: Callable[[], float] = perf_counter) -> None:
        self._clock = clock
        self._calls = Calls()
        self._actors = Actors(self._calls)
        self._speech = Speech()
        self._steps = Steps(max_steps)
        self.values: Any = None
        """The newest state of the graph; streamed only by one that keeps none."""
        self.began_with: Any = None
        """What its state was before this turn, as far as that is known."""
        self._planned: set[str] = set()
        self._interrupts: dict[str, Interrupt] = {}
        self._returns: Counter[tuple[Namespace, str]] = Counter()
        """Results that tools have handed over and that will come again as messages, by place and raw id."""
        self._running: dict[str, tuple[Namespace, Any]] = {}
        """The tasks that run, each with its place and what it was given."""
        self._given_ids: dict[str, tuple[list[str], list[str]]] = {}
        """The ids of calls in what they were given: of single calls, and of those in the last messages."""
        self._began: dict[str, float] = {}
        """When each of them began."""
        self._updates = NodeUpdates()
        self._node_runs = NodeRuns()
        self._tool_names: set[str] = set()
        """The names of the tools that have run."""
        self._returned_count = 0
        self._loose: dict[Namespace, list[Call]] = {}
        """Runs of tools without a call of a model, by place, while a task runs there: its message may follow."""

    def restore(self, so_far: SoFar) -> None:
        """Be where the run was when its server ended: it waits for a person."""
        for part in (self._calls, self._actors, self._steps, self._speech):
            part.restore(so_far)
        self._planned = set(so_far.planned)

    def waits_for(self, stops: Iterable[Any], so_far: SoFar) -> list[Interrupt]:
        """What a graph waits for, by its state; whose questions these are, the log says."""
        return [interrupt_again(stop.id, stop.value, so_far, self._calls.open) for stop in stops]

    @property
    def over_limit(self) -> bool:
        """True once the main agent would need more rounds than it may have: time to stop the graph."""
        return self._steps.exceeded

    def agent_at(self, place: Namespace) -> str:
        """The agent whose graph is at this place; the main one if it is not known."""
        return self._actors.agent_id(place) or ""

    def past(self, raw_ids: Iterable[str | None]) -> None:
        """The ids of the messages that were there before."""
        self._speech.past(raw_ids)

    def feed(self, part: Part) -> list[Item]:
        match part.type:
            case "messages":
                return self._message(part)
            case "tools":
                return self._tool(part)
            case "tasks":
                return self._task(part)
            case "custom":
                return self._custom(part)
            case "values":
                self.values = self.values if part.ns else part.data
                return []
            case _:
                return []

    # What models say

    def goes_on(self, message: Any) -> TextDelta | None:
        """One more plain piece of a text; None if `feed` has to look at it."""
        return self._speech.goes_on(message)

    def _message(self, part: Part) -> list[Item]:
        message, metadata = part.data
        task_id = task_in(metadata)
        if message.type == "tool":
            return self._tool_message(part.ns, message, task_id)
        if message.type not in SPOKEN:
            return []
        if is_internal(metadata):
            return [*self._cost(self._actors.agent_id(part.ns) or "", message, metadata)]
        return self._said(part.ns, message, metadata, task_id)

    def _said(self, ns: Namespace, message: Any, metadata: dict[str, Any], task_id: str) -> list[Item]:
        inside = self._actors.call_of_task(task_id)
        if inside is not None:
            return self._inside_tool(inside, message, metadata)
        if message.type == "ai":
            return self._whole_message(ns, message, metadata, task_id)
        events = self._speaker(ns, metadata)
        agent_id = self._actors.agent_id(ns) or ""
        events += self._settled_by_speech(task_id)
        events += self._speech.chunk(agent_id, message, task_id)
        events += [e for c in message.tool_call_chunks for e in self._calls.chunk(agent_id, message.id, c, task_id)]
        events += self._cost(agent_id, message, metadata)
        if message.chunk_position == "last":
            events += self._speech.finish(message.id)
        return events

    def _speaker(self, ns: Namespace, metadata: dict[str, Any]) -> list[Item]:
        if self._actors.agent_id(ns) is not None:
            return []
        return [*self._actors.begin(ns, metadata.get("lc_agent_name") or "")]

    def _whole_message(self, ns: Namespace, message: Any, metadata: dict[str, Any], task_id: str) -> list[Item]:
        """A message that comes whole: a model has made it, or a node returns it. The latter may repeat the former."""
        if self._speech.knows(message.id):
            return []
        is_returned = not is_model_run(metadata)
        if is_returned and self._updates.repeats(task_id, message):
            return []
        events = self._speaker(ns, metadata)
        agent_id = self._actors.agent_id(ns) or ""
        if not is_returned:
            events += self._settled_by_speech(task_id)
        if not (is_returned and self._speech.repeats(task_id, text_in(message.content))):
            events += self._speech.chunk(agent_id, message, task_id)
        without_id = self._calls.open_with(agent_id, "")
        for made in [*message.tool_calls, *message.invalid_tool_calls]:
            call = (agent_id, made["id"] or "", made["name"], made["args"])
            if is_returned and self._is_shown(ns, task_id, *call):
                continue
            if made["id"]:
                events += self._calls.whole(*call, task_id)
            elif not (is_returned and take_same(without_id, made["name"], made["args"])):
                events += self._calls.begin_whole(*call, task_id)
        events += self._cost(agent_id, message, metadata)
        return [*events, *self._speech.finish(message.id)]

    def _is_shown(self, ns: Namespace, task_id: str, agent_id: str, raw_id: str, name: str, args: Any) -> bool:
        """Whether a call in a message that a node returns was seen when a model made it, or when its tool ran."""
        seen = self._calls.was_made_in(agent_id, raw_id, task_id)
        return seen or self._calls.adopt(agent_id, raw_id, name, args, self._loose.get(ns, []))

    def _cost(self, agent_id: str, message: Any, metadata: dict[str, Any]) -> list[AnyEvent]:
        usage = usage_of(agent_id, message, metadata)
        if usage is None:
            return []
        self._steps.add(usage)
        return [usage]

    def _inside_tool(self, call: Call, message: Any, metadata: dict[str, Any]) -> list[Item]:
        """A tool that asks a model itself: what that says is the tool's output, not the agent's."""
        cost = self._cost(call.agent_id, message, metadata)
        return [*self._calls.output(call, text_in(message.content)), *cost]

    # What tools do

    def _tool(self, part: Part) -> list[Item]:
        data = part.data
        events: list[Item] = [*self._actors.begin(part.ns)]
        raw_id, name = data.get("tool_call_id") or "", data.get("tool_name")
        call = self._node_runs.call(raw_id) or self._call(part.ns, raw_id, name)
        if call is None and data["event"] == "tool-started":
            call, replaced = self._run_by_node(part.ns, raw_id, data)
            events += self._run_without_call(part.ns, replaced) if replaced is not None else []
            if call is None:
                events += self._begin_loose(part.ns, raw_id, name or "", data.get("input"))
                call = self._call(part.ns, raw_id)
        if data["event"] == "tool-started":
            self._tool_names.add(name or "")
        if call is None:
            return events
        run = call.run if self._node_runs.call(raw_id) is call else None
        match data["event"]:
            case "tool-started":
                call.error = ""
                if run is None:
                    call.running = True
                    self._find_task(part.ns, call)
                events += self._calls.ready(call, data.get("input"))
            case "tool-output-delta":
                events += self._calls.output(call, data.get("delta"))
            case "tool-finished" if run is not None:
                events += self._returned_to_node(part.ns, call, run, data.get("output"))
            case "tool-finished":
                events += self._returned(part.ns, call, data.get("output"))
            case "tool-error":
                call.error = str(data.get("message") or "Unknown error")
                if run is not None:
                    run.end(self._clock())
            case _:
                pass
        return events

    def _call(self, ns: Namespace, raw_id: str, name: str | None = None) -> Call | None:
        """The call with this id: of the agent at this place or, for a subgraph that runs tools, of one above it."""
        own = self._calls.get(self._actors.agent_id(ns) or "", raw_id)
        if own is not None:
            return own
        agents, spawning = self._actors.above(ns)
        calls = [call for agent_id in agents if (call := self._calls.get(agent_id, raw_id)) is not None]
        return next((c for c in calls if not c.over and c not in spawning and name in (None, c.name)), None)

    def _begin_loose(self, ns: Namespace, run_id: str, name: str, args: Any) -> list[AnyEvent]:
        """Start a row of its own for a run that no call of a model fits."""
        agent_id = self._actors.agent_id(ns) or ""
        events = self._calls.whole(agent_id, run_id, name, args)
        call = self._calls.get(agent_id, run_id)
        self._loose.setdefault(ns, []).extend([call] if call is not None else [])
        return events

    def _run_without_call(self, ns: Namespace, run: NodeRun) -> list[Item]:
        """Give a run a row of its own after its call has got a run that fits better."""
        events: list[Item] = [*self._begin_loose(ns, run.run_id, run.name, run.args)]
        call = self._call(ns, run.run_id)
        if call is not None and run.returned:
            events += self._calls.returned(call, run.value, duration_ms=run.duration_ms)
        return events

    def _run_by_node(self, ns: Namespace, run_id: str, data: dict[str, Any]) -> tuple[Call | None, NodeRun | None]:
        """The call for which a node runs a tool without its id, and the run that the call had by mistake."""
        if not RUN_ID.fullmatch(run_id):
            return None, None
        agents, _ = self._actors.above(ns)
        name, given = data.get("tool_name") or "", data.get("input")
        matches = (self._calls.match(agent_id, name, given) for agent_id in (self._actors.agent_id(ns) or "", *agents))
        matched = next((match for match in matches if match is not None), None)
        running = {task_id: self._calls_given(task_id) for task_id, (place, _) in self._running.items() if place == ns}
        call = matched or self._calls.match_given(list(running.values()), name, given, self._tool_names)
        if call is None:
            return None, None
        task_id = _task_running(running, call)
        run = NodeRun(run_id, name, given, task_id, ns, self._clock(), guessed=matched is None)
        return call, self._node_runs.start(call, run)

    def _calls_given(self, task_id: str) -> list[Call]:
        """The open calls that a task carries out: a model has made them in it, or they are in its input.

        Single calls in the input come before those of its last messages, which each task of a fan-out may be given.
        """
        ns, task_input = self._running.get(task_id, ((), None))
        made_here = self._calls.open_made_in(task_id)
        if made_here or task_id not in self._running:
            return made_here
        if task_id not in self._given_ids:
            self._given_ids[task_id] = (call_ids_in(task_input), calls_before(task_input))
        alone, in_messages = self._given_ids[task_id]
        return self._open_calls(ns, alone) or self._open_calls(ns, in_messages)

    def _open_calls(self, ns: Namespace, raw_ids: list[str]) -> list[Call]:
        """The open calls with these ids, in their order. Models repeat and omit ids: each id means another call."""
        calls: list[Call] = []
        for raw_id in raw_ids:
            first = self._call(ns, raw_id)
            same = [] if first is None else self._calls.open_with(first.agent_id, raw_id)
            calls += [call for call in same if call not in calls][:1]
        return calls

    def _returned_to_node(self, ns: Namespace, call: Call, run: NodeRun, output: Any) -> list[Item]:
        """What the tool returned is kept, until the node has made a message of it or ends."""
        run.end(self._clock())
        run.returned = True
        run.value = None if is_command(output) else getattr(output, "content", output)
        todos = todos_in(output)
        events: list[Item] = [] if todos is None else [self._plan(call.agent_id, todos)]
        return [*events, *(event for message in messages_in(output) for event in self._result(ns, message))]

    def _settled_by_speech(self, task_id: str) -> list[Item]:
        """A model speaks in a task that has run tools: it has got their results, though no message has shown them."""
        return [e for call, run in self._node_runs.in_task(task_id) if not run.live for e in self._calls.settle(call)]

    def _find_task(self, ns: Namespace, call: Call) -> None:
        """Which task runs a call is not said where a node takes several calls out of the state: look for it there."""
        if self._actors.has_task(call):
            return
        for task_id, (place, _) in self._running.items():
            if place == ns and call in self._calls_given(task_id):
                self._actors.task_runs(task_id, call)

    def _returned(self, ns: Namespace, call: Call, output: Any) -> list[Item]:
        todos = todos_in(output)
        events: list[Item] = [] if todos is None else [self._plan(call.agent_id, todos)]
        messages = messages_in(output)
        for message in messages:
            events += self._result(ns, message)
            self._returns[ns, getattr(message, "tool_call_id", "")] += 1
        if messages or is_command(output):
            return [*events, *self._end_call(call, None)]
        return [*events, *self._end_call(call, output)]  # code of the graph has called the tool as a function

    def _end_call(self, call: Call, value: Any) -> list[Item]:
        return [*self._end_actors(self._actors.ending_with_call(call), None), *self._calls.returned(call, value)]

    def _tool_message(self, ns: Namespace, message: Any, task_id: str) -> list[Item]:
        """The message of a result, which its tool has handed over already: of calls with one id it ends no other."""
        returned = (ns, message.tool_call_id)
        if self._returns[returned]:
            self._returns[returned] -= 1
            return []
        return self._result(ns, message, task_id)

    def _result(self, ns: Namespace, message: Any, task_id: str = "") -> list[Item]:
        if getattr(message, "type", "") != "tool":
            return []
        events: list[Item] = [*self._actors.begin(ns)]
        call = self._call(ns, message.tool_call_id) if message.tool_call_id else self._next_call(ns, task_id)
        if call is None:
            return events
        self._node_runs.correct(call, task_id)
        failed = message.status == "error"
        events += self._end_actors(self._actors.ending_with_call(call), text_in(message.content) if failed else None)
        return [*events, *self._calls.finish(call, message, self._node_time(call, task_id))]

    def _next_call(self, ns: Namespace, task_id: str) -> Call | None:
        """The call of a result that does not name it: the first one that the task was given and that is open."""
        return next(iter(self._calls_given(task_id)), None)

    def _node_time(self, call: Call, task_id: str) -> int | None:
        """How long a call took that no tool has run: as long as the node that returns its result."""
        if call.running or call.run is not None or task_id not in self._began:
            return None
        return max(0, round((self._clock() - self._began[task_id]) * 1000))

    def _plan(self, agent_id: str, todos: list[dict[str, Any]]) -> Plan:
        items = tuple(Todo(str(t.get("content") or ""), _status(t.get("status"))) for t in todos)
        update = agent_id in self._planned
        self._planned.add(agent_id)
        return Plan(agent_id=agent_id, items=items, update=update)

    # What nodes do

    def _task(self, part: Part) -> list[Item]:
        data = part.data
        if "input" in data:
            return self._task_began(part.ns, data)
        return self._task_ended(part.ns, data)

    def _task_began(self, ns: Namespace, data: dict[str, Any]) -> list[Item]:
        metadata = fields_of(data.get("metadata"))
        events: list[Item] = [*self._actors.begin(ns, metadata.get("lc_agent_name") or "")]
        agent_id = self._actors.agent_id(ns) or ""
        calls = calls_in(data["input"])
        self._running[data["id"]] = (ns, data["input"])
        self._began[data["id"]] = self._clock()
        self._updates.began(ns, data["id"], data["input"])
        for made in calls:
            events += self._calls.whole(agent_id, made["id"], made["name"], made.get("args"))
            call = self._calls.get(agent_id, made["id"])
            if call is not None:
                events += self._calls.ready(call, made.get("args"))
                self._actors.task_runs(data["id"], call)
        node = data["name"]
        if not calls and not is_hook(node) and node != "tools":
            events += self._steps.begin(agent_id, node, data["id"])
        return events

    def _task_ended(self, ns: Namespace, data: dict[str, Any]) -> list[Item]:
        task_id, agent_id = data["id"], self._actors.agent_id(ns)
        events = self._returned_messages(ns, data)
        self._running.pop(task_id, None)
        self._began.pop(task_id, None)
        self._given_ids.pop(task_id, None)
        is_last = ns not in [place for place, _ in self._running.values()]
        if is_last:
            self._loose.pop(ns, None)
        if agent_id is None:
            return events
        ended = self._node_runs.ending_with(ns, task_id, is_last=is_last)
        events += [event for call, run in ended if run.returned for event in self._calls.settle(call)]
        self._node_runs.task_ended(ns, task_id, self._clock(), is_last=is_last)
        if stops := data.get("interrupts"):
            return [*events, *(event for stop in stops for event in self._interrupted(agent_id, task_id, stop))]
        self._steps.task_ended(agent_id, task_id)
        error = None if data.get("error") is None else safe_text(data["error"])
        events += self._end_actors(self._actors.ending_with_task(ns, task_id), error)
        return [*events, *self._speech.finish_all(agent_id, task_id), *self._failed(agent_id, task_id, ended)]

    def _returned_messages(self, ns: Namespace, data: dict[str, Any]) -> list[Item]:
        """The messages that a node has returned as dicts or tuples: LangGraph streams only those that are objects."""
        task_id, events = data["id"], list[Item]()
        for message, is_said in self._updates.ended(ns, task_id, data.get("result")):
            if message.type == "tool":
                events += self._tool_message(ns, message, task_id)
            elif is_said and not is_hook(data["name"]):
                self._returned_count += 1
                message.id = message.id or f"returned-{self._returned_count}"
                events += self._said(ns, message, {}, task_id)
        return events

    def _failed(self, agent_id: str, task_id: str, runs: list[tuple[Call, NodeRun]]) -> list[Item]:
        """End the failed calls of a task that has ended, with the runs of its nodes: it does not try them again."""
        mine = [c for c in self._calls.open if c.error and c.run is None and c.agent_id == agent_id]
        ended = [c for c in mine if c in self._actors.calls_of_task(task_id) or not self._actors.has_task(c)]
        ended += [call for call, _ in runs if call.error]
        events: list[Item] = []
        for call in ended:
            events += self._end_actors(self._actors.ending_with_call(call), call.error)
            events += self._calls.fail(call, call.error)
        return events

    def _interrupted(self, agent_id: str, task_id: str, stop: dict[str, Any]) -> list[AnyEvent]:
        """A stop is told at its own place first and then at all above it; the first time counts."""
        if stop["id"] in self._interrupts:
            return []
        mine = [call for call in self._calls.open if call.agent_id == agent_id]
        events = [event for call in mine for event in self._calls.ready(call)]
        inside = self._actors.call_of_task(task_id)
        self._interrupts[stop["id"]] = interrupt_of(stop["id"], stop["value"], agent_id, mine, inside)
        return events

    def take_interrupts(self) -> list[Interrupt]:
        """What the graph waits for at the end of its stream."""
        waiting, self._interrupts = list(self._interrupts.values()), {}
        for call in self._calls.open:
            call.asked = False
        return waiting

    # What the graph's own code writes

    def _custom(self, part: Part) -> list[Item]:
        events: list[Item] = [*self._actors.begin(part.ns)]
        data = part.data
        if isinstance(data, EVENT_TYPES):
            return [*events, cast("AnyEvent", data)]
        text = _status_text(data)[:MAX_STATUS]
        return [*events, Status(agent_id=self._actors.agent_id(part.ns) or "", text=text)] if text else events

    # How it ends

    def _end_actors(self, ending: list[Actor], error: str | None) -> list[Item]:
        events: list[Item] = []
        for actor in ending:
            events += self._close(actor.agent_id, error)
            events.append(self._actors.finish(actor, error))
        return events

    def _close(self, agent_id: str, error: str | None) -> list[Item]:
        events: list[Item] = [*self._speech.finish_all(agent_id)]
        for call in self._calls.open:
            if call.agent_id != agent_id:
                continue
            events += self._calls.settle(call)
            events += self._calls.unseen(call) if error is None else self._calls.fail(call, f"{CUT_OFF}: {error}")
        return [*events, *self._steps.finish(agent_id, error)]

    def stopped(self) -> list[Item]:
        """The run is stopped: what tools have returned to their nodes is known, though no message has shown it."""
        return [event for call in self._calls.open if call.run is not None for event in self._calls.settle(call)]

    def broken(self, error: str) -> list[Item]:
        """The graph has raised: what failed ends with its own error, the rest with this one."""
        return [*self._end_actors(self._actors.all_open(), error), *self._close("", error)]

    def end(self, answer: Any, raw_id: str | None, code: str = "") -> list[Item]:
        """The graph is through. `answer` is what its state says; `raw_id` names the message, if it is one."""
        events = [*self._end_actors(self._actors.all_open(), None), *self._close("", None)]
        return [*events, self._answer(answer, raw_id), RunFinished(code=code)]

    def _answer(self, answer: Any, raw_id: str | None) -> FinalAnswer:
        """An answer that was streamed names the text that it repeats, so that nobody shows it twice."""
        if answer is None:
            said, message_id = self._speech.newest
            return FinalAnswer(content=said, message_id=message_id)
        if not isinstance(answer, str):
            return final_answer(answer, self._speech.id_of_object(json_value(answer)))
        return FinalAnswer(content=answer, message_id=self._speech.id_of(answer, raw_id))


def _task_running(running: dict[str, list[Call]], call: Call) -> str:
    """The task that runs a call: the only one that was given it, or the only one; empty if several can be meant."""
    given_it = [task_id for task_id, calls in running.items() if call in calls]
    meant = given_it or list(running)
    return meant[0] if len(meant) == 1 else ""


def _status_text(data: Any) -> str:
    """What a graph writes for people, out of the forms that it may have."""
    fields = fields_of(data)
    for key in ("status", "message", "text", "content", "progress"):
        if isinstance(fields.get(key), str):
            return fields[key]
    made = json_value(data)
    return made if isinstance(made, str) else safe_text(made)


def _status(value: Any) -> Any:
    return value if value in ("pending", "in_progress", "completed") else "pending"
