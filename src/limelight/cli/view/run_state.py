"""The state of a run for the terminal views: messages, calls, plans and the answer, built from its Records. Pure."""

from collections import Counter
from typing import Any, Literal, TypeVar

import msgspec

from limelight.dialects.base import agent_label, is_structured, text_of
from limelight.display_fields import streamed_code
from limelight.events import (
    AgentFinished,
    AgentStarted,
    AnyEvent,
    ApprovalRequested,
    ApprovalResolved,
    ArtifactMade,
    Decision,
    FinalAnswer,
    Plan,
    PlanDelta,
    Record,
    RunCancelled,
    RunFailed,
    RunFinished,
    RunStarted,
    SourceCited,
    SourceLink,
    Status,
    StepFinished,
    Terminal,
    TextDelta,
    Todo,
    ToolArgsDelta,
    ToolFinished,
    ToolOutputDelta,
    ToolReady,
    ToolStarted,
)
from limelight.streamed_json import FirstFieldDecoder

PYTHON = "python"
"""The language whose code is drawn while the agent writes it."""
MAX_OUTPUT = 4000
"""Maximum length of a tool's output, and of code that streams, in characters. Of longer text only the end is stored."""


class StreamedText(msgspec.Struct):
    """A text of an agent that arrives in pieces: the deltas received so far."""

    agent_id: str
    deltas: list[str] = []

    @property
    def text(self) -> str:
        return "".join(self.deltas)


class Message(StreamedText):
    """A message that an agent has written."""


class Approval(msgspec.Struct):
    """An approval request and its decision. It is listed in its ToolCall, or in `items` if it is not about a call."""

    approval_id: str
    agent_id: str
    call_id: str
    name: str
    args: dict[str, Any] | str
    decision: Decision | None = None
    by: str = ""
    reason: str = ""
    edited_args: dict[str, Any] | str | None = None
    """The changed arguments if the decision is `edit`, or the answer: `{"value": answer}`."""
    question: str = ""
    answered: bool = False


class ToolCall(msgspec.Struct):
    """A tool call with its state, its output so far and its approval requests."""

    call_id: str
    agent_id: str
    name: str
    args: dict[str, Any] | str | None
    state: Literal["running", "waiting", "done", "failed", "stopped", "rejected", "unseen"] = "running"
    """The progress of the call. `unseen` means that it has ended and Limelight did not see its result."""
    duration_ms: int | None = None
    error: str = ""
    output: str = ""
    output_cut: bool = False
    approvals: list[Approval] = []
    summary: str = ""
    """The argument that describes the call best, as text."""
    code_key: str = ""
    """The name of the argument that contains the code to run; "" if there is none."""
    streamed_code: str = ""
    """The end of the Python code that the agent is writing; "" when the arguments are complete."""

    @property
    def ended(self) -> bool:
        return self.state not in ("running", "waiting")


class SubAgent(msgspec.Struct):
    """A sub-agent, its nesting depth and whether it still runs."""

    agent_id: str
    name: str
    """The name, with the title of a branch, or with a number if a sub-agent of this name was running already."""
    depth: int
    state: Literal["running", "done", "failed", "stopped", "rejected"] = "running"
    agent_name: str = ""
    """The name without title and number."""


class PlanText(StreamedText):
    """A plan that an agent has written as text. Plans that are lists of todos are in `RunState.todos` instead."""

    streaming: bool = False


class Note(msgspec.Struct):
    """A line about a file that was created or a source that was cited."""

    agent_id: str
    text: str


Item = Message | ToolCall | SubAgent | PlanText | Note | Approval
ItemT = TypeVar("ItemT", bound=Item)


class RunState:
    """The state of one run. `items` has its messages, calls and notes in the order in which they began."""

    def __init__(self) -> None:
        self.started: RunStarted | None = None
        self.started_at = 0
        self.ended_at = 0
        self.terminal: Terminal | None = None
        self.status = ""
        self.todos: dict[str, tuple[Todo, ...]] = {}
        """The todos of each agent that has some, by `agent_id`."""
        self.answer = ""
        """The answer; "" if it was streamed and is therefore a Message in `items`."""
        self.title = ""
        self.sources: tuple[SourceLink, ...] = ()
        self.items: list[Item] = []
        self.calls: dict[str, ToolCall] = {}
        self.messages: dict[str, Message] = {}
        self.sub_agents: dict[str, SubAgent] = {}
        self.approvals: dict[str, Approval] = {}
        self._name_counts: Counter[str] = Counter()
        """How many sub-agents have had the same name."""
        self._streaming_plans: dict[str, PlanText] = {}
        self._streaming_code: dict[str, FirstFieldDecoder] = {}
        """The decoders of the arguments of Python tools, by `call_id`."""

    def depth(self, agent_id: str) -> int:
        """Return the nesting depth of an agent; 0 is the main agent."""
        sub_agent = self.sub_agents.get(agent_id)
        return 0 if sub_agent is None else sub_agent.depth

    def agent_name(self, agent_id: str) -> str:
        """Return the name of an agent; an unknown id is the main agent."""
        if agent_id in self.sub_agents:
            return self.sub_agents[agent_id].name
        return "the agent" if self.started is None else self.started.agent

    def owner(self, agent_id: str) -> str:
        """Return the name of a sub-agent as a prefix for its lines; "" for the main agent or the only sub-agent."""
        sub_agent = self.sub_agents.get(agent_id)
        return f"{sub_agent.name}: " if sub_agent is not None and len(self.sub_agents) > 1 else ""

    def feed(self, record: Record) -> None:
        """Update the state of the run with one Record."""
        event = record.event
        match event:
            case RunStarted():
                self.started, self.started_at = event, record.at
            case RunFinished() | RunFailed() | RunCancelled():
                self.terminal, self.ended_at = event, record.at
            case TextDelta():
                if event.message_id not in self.messages:
                    self.messages[event.message_id] = self._add(Message(event.agent_id))
                self.messages[event.message_id].deltas.append(event.text)
            case PlanDelta():
                if event.agent_id not in self._streaming_plans:
                    self._streaming_plans[event.agent_id] = self._add(PlanText(event.agent_id, streaming=True))
                self._streaming_plans[event.agent_id].deltas.append(event.text)
            case Plan():
                self._set_plan(event)
            case StepFinished():
                self._finish_plan(event.agent_id)
            case Status():
                self.status = event.text
            case FinalAnswer():
                self._set_answer(event)
            case _:
                self._feed_work(event)

    def _label(self, event: AgentStarted) -> str:
        """Return the name of a sub-agent that starts, different from the names of those that run."""
        self._name_counts[event.name] += 1
        is_running = any(a.state == "running" and a.agent_name == event.name for a in self.sub_agents.values())
        if event.title or not is_running:
            return agent_label(event)
        return f"{event.name} {self._name_counts[event.name]}"

    def _finish_plan(self, agent_id: str) -> PlanText | None:
        """Mark the plan that the agent is streaming as complete, and return it; None if there is none."""
        plan = self._streaming_plans.pop(agent_id, None)
        if plan is not None:
            plan.streaming = False
        return plan

    def _set_plan(self, event: Plan) -> None:
        plan = self._finish_plan(event.agent_id)
        if event.items:
            self.todos[event.agent_id] = event.items
        elif event.text:
            if plan is None:
                plan = self._add(PlanText(event.agent_id))
            if not (event.truncated and plan.text.startswith(event.text)):  # deltas have more than a preview
                plan.deltas = [event.text]
        else:
            self.todos.pop(event.agent_id, None)

    def _set_answer(self, event: FinalAnswer) -> None:
        """Store the answer of the run with its title and sources.

        The text of a streamed answer is already in `items` and stays there, unless it is the last item and has a title,
        sources or data: then it moves to `answer`, so that it is drawn below the title.
        """
        self.title, self.sources = event.title, event.source_links
        message = self.messages.get(event.message_id) if event.message_id is not None else None
        is_last = message is not None and self.items[-1] is message
        if is_last and is_structured(event) and not event.truncated:
            self.items.pop()
        elif event.message_id is not None:
            return
        self.answer = text_of(event.content)

    def _feed_work(self, event: AnyEvent) -> None:
        match event:
            case ToolStarted():
                call = ToolCall(event.call_id, event.agent_id, event.name, event.args)
                call.summary, call.code_key = event.summary, event.code_key
                self.calls[event.call_id] = self._add(call)
                if event.args is None and event.language == PYTHON:
                    self._streaming_code[event.call_id] = streamed_code()
            case ToolArgsDelta() if event.call_id in self._streaming_code:
                code = self._streaming_code[event.call_id].feed(event.text)
                call = self.calls[event.call_id]
                call.streamed_code = (call.streamed_code + code)[-MAX_OUTPUT:]
            case ToolReady() | ToolOutputDelta() | ToolFinished() if event.call_id in self.calls:
                self._feed_call(self.calls[event.call_id], event)
            case AgentStarted():
                depth, label = self.depth(event.parent_id) + 1, self._label(event)
                sub_agent = SubAgent(event.agent_id, label, depth, agent_name=event.name)
                self.sub_agents[event.agent_id] = self._add(sub_agent)
            case AgentFinished() if event.agent_id in self.sub_agents:
                self.sub_agents[event.agent_id].state = event.outcome or ("failed" if event.error else "done")
                self._finish_plan(event.agent_id)
            case ApprovalRequested():
                self._request_approval(event)
            case ApprovalResolved() if event.approval_id in self.approvals:
                self._resolve_approval(self.approvals[event.approval_id], event)
            case ArtifactMade():
                self._add(Note(event.agent_id, f"+ {event.name} ({event.size:,} bytes)"))
            case SourceCited():
                self._add(Note(event.agent_id, f"@ {event.title} {event.url}".rstrip()))
            case _:
                pass  # steps, usage, reasoning and the arguments of other tools are not drawn

    def _feed_call(self, call: ToolCall, event: ToolReady | ToolOutputDelta | ToolFinished) -> None:
        match event:
            case ToolReady():
                call.args, call.summary, call.code_key = event.args, event.summary, event.code_key
                call.streamed_code = ""
                self._streaming_code.pop(event.call_id, None)
            case ToolOutputDelta():
                output = call.output + event.text
                call.output_cut = call.output_cut or len(output) > MAX_OUTPUT
                call.output = output[-MAX_OUTPUT:]
            case ToolFinished():
                ended = "failed" if event.error is not None else "done" if event.result_seen else "unseen"
                call.state = event.outcome or ended
                call.duration_ms, call.error = event.duration_ms, event.error or ""

    def _request_approval(self, event: ApprovalRequested) -> None:
        call = self.calls.get(event.call_id) or self._requesting_call(event)
        call_id = "" if call is None else call.call_id
        approval = Approval(event.approval_id, event.agent_id, call_id, event.name, event.args, question=event.question)
        self.approvals[event.approval_id] = approval
        if call is None:
            self._add(approval)
        else:
            call.approvals.append(approval)
            call.state = "waiting"

    def _requesting_call(self, event: ApprovalRequested) -> ToolCall | None:
        """Return the tool call that a request without `call_id` is about; None if it cannot be determined.

        It is the running call of this tool with the same arguments, or else the only running call of the tool.
        """
        running = [call for call in self.calls.values() if call.name == event.name and call.state == "running"]
        matching = [call for call in running if call.args == event.args]
        return matching[0] if matching else running[0] if len(running) == 1 else None

    def _resolve_approval(self, approval: Approval, event: ApprovalResolved) -> None:
        approval.decision, approval.by, approval.reason = event.decision, event.by, event.reason
        approval.answered = event.answered
        call = self.calls.get(approval.call_id)
        if call is not None:
            call.state = "waiting" if any(one.decision is None for one in call.approvals) else "running"
        if event.decision == "edit":
            approval.edited_args = event.args
            if call is not None and not event.answered:
                call.args, call.summary, call.code_key = event.args, event.summary, event.code_key

    def _add(self, item: ItemT) -> ItemT:
        self.status = ""  # the status described the work before this item
        self.items.append(item)
        return item
