"""What has happened so far in a run, folded from its Records into things that can be drawn. Pure; no terminal here."""

from typing import Any, Literal

import msgspec

from limelight.cli.view.main_argument import telling_argument
from limelight.dialects.base import text_of
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
    Status,
    StepFinished,
    Terminal,
    TextDelta,
    Todo,
    ToolFinished,
    ToolOutputDelta,
    ToolReady,
    ToolStarted,
)

OUTPUT_LINES = 6
MOST_OUTPUT = 4000
"""Characters of what a tool prints; of more the end is kept."""


class Said(msgspec.Struct):
    """A message of an agent."""

    agent_id: str
    pieces: list[str] = []

    @property
    def text(self) -> str:
        return "".join(self.pieces)


class Asked(msgspec.Struct):
    """A question to a person. One about a call belongs to that call, any other stands for itself."""

    approval_id: str
    agent_id: str
    call_id: str
    name: str
    args: dict[str, Any] | str
    decision: Decision | None = None
    by: str = ""
    reason: str = ""
    edited: dict[str, Any] | str | None = None
    """The arguments that were approved instead."""


class Call(msgspec.Struct):
    """A tool call."""

    call_id: str
    agent_id: str
    name: str
    args: dict[str, Any] | str | None
    state: Literal["running", "waiting", "done", "failed", "unseen"] = "running"
    """`unseen` is a call that is over and whose result was not seen."""
    duration_ms: int | None = None
    error: str = ""
    output: str = ""
    output_cut: bool = False
    asked: list[Asked] = []

    @property
    def about(self) -> str:
        return telling_argument(self.args)

    @property
    def waits(self) -> bool:
        return any(asked.decision is None for asked in self.asked)


class Helper(msgspec.Struct):
    """A sub-agent."""

    agent_id: str
    name: str
    depth: int
    state: Literal["running", "done", "failed"] = "running"


class Planned(msgspec.Struct):
    """A plan in words. One of items is no thing, because it changes as long as the run goes on."""

    agent_id: str
    pieces: list[str] = []
    is_growing: bool = False

    @property
    def text(self) -> str:
        return "".join(self.pieces)


class Note(msgspec.Struct):
    """Anything that is one line: a file, a citation."""

    agent_id: str
    text: str


Thing = Said | Call | Helper | Planned | Note | Asked


class Story:
    """One run, from its `run_started`. `things` are in the order in which they began."""

    def __init__(self) -> None:
        self.started: RunStarted | None = None
        self.run_id = ""
        self.began_at = 0
        self.ended_at = 0
        self.terminal: Terminal | None = None
        self.status = ""
        self.plans: dict[str, tuple[Todo, ...]] = {}
        """The items of each agent that has some."""
        self.answer = ""
        """The answer, unless it is among the things."""
        self.title = ""
        self.sources: tuple[str, ...] = ()
        self.things: list[Thing] = []
        self._calls: dict[str, Call] = {}
        self._said: dict[str, Said] = {}
        self._helpers: dict[str, Helper] = {}
        self._asked: dict[str, Asked] = {}
        self._growing: dict[str, Planned] = {}
        """The plan that each agent writes now."""

    def depth(self, agent_id: str) -> int:
        helper = self._helpers.get(agent_id)
        return 0 if helper is None else helper.depth

    def call(self, call_id: str) -> Call | None:
        return self._calls.get(call_id)

    def asked(self, approval_id: str) -> Asked | None:
        return self._asked.get(approval_id)

    def said(self, message_id: str) -> Said | None:
        return self._said.get(message_id)

    def owner(self, agent_id: str) -> str:
        """Whose it is, where that is not clear from its place: there are several helpers."""
        helper = self._helpers.get(agent_id)
        return f"{helper.name}: " if helper is not None and len(self._helpers) > 1 else ""

    def helper(self, agent_id: str) -> Helper | None:
        return self._helpers.get(agent_id)

    def feed(self, record: Record) -> None:
        """Take in one more Record."""
        event = record.event
        match event:
            case RunStarted():
                self.started, self.run_id, self.began_at = event, record.run_id, record.at
            case RunFinished() | RunFailed() | RunCancelled():
                self.terminal, self.ended_at = event, record.at
            case TextDelta():
                if event.message_id not in self._said:
                    self._said[event.message_id] = self._add(Said(event.agent_id))
                self._said[event.message_id].pieces.append(event.text)
            case PlanDelta():
                if event.agent_id not in self._growing:
                    self._growing[event.agent_id] = self._add(Planned(event.agent_id, is_growing=True))
                self._growing[event.agent_id].pieces.append(event.text)
            case Plan():
                self._plan(event)
            case StepFinished():
                self._grown(event.agent_id)
            case Status():
                self.status = event.text
            case FinalAnswer():
                self._conclude(event)
            case _:
                self._feed_work(event)

    def _grown(self, agent_id: str) -> Planned | None:
        """The plan that the agent wrote, of which no more comes."""
        plan = self._growing.pop(agent_id, None)
        if plan is not None:
            plan.is_growing = False
        return plan

    def _plan(self, event: Plan) -> None:
        plan = self._grown(event.agent_id)
        if event.items:
            self.plans[event.agent_id] = event.items
        elif event.text:
            if plan is None:
                plan = self._add(Planned(event.agent_id))
            if not (event.truncated and plan.text.startswith(event.text)):  # of a preview the pieces had more
                plan.pieces = [event.text]
        else:
            self.plans.pop(event.agent_id, None)

    def _conclude(self, event: FinalAnswer) -> None:
        """A streamed answer is among the things. If it came last, it is taken back, to stand below its title."""
        self.title, self.sources = event.title, event.sources
        said = self._said.get(event.message_id) if event.message_id is not None else None
        is_last = said is not None and self.things[-1] is said
        if is_last and (event.title or event.sources) and not event.truncated:
            self.things.pop()
        elif event.message_id is not None:
            return
        self.answer = text_of(event.content)

    def _feed_work(self, event: AnyEvent) -> None:
        match event:
            case ToolStarted():
                call = Call(event.call_id, event.agent_id, event.name, event.args)
                self._calls[event.call_id] = self._add(call)
            case ToolReady() | ToolOutputDelta() | ToolFinished() if event.call_id in self._calls:
                self._feed_call(self._calls[event.call_id], event)
            case AgentStarted():
                depth = self.depth(event.parent_id) + 1
                self._helpers[event.agent_id] = self._add(Helper(event.agent_id, event.name, depth))
            case AgentFinished() if event.agent_id in self._helpers:
                self._helpers[event.agent_id].state = "failed" if event.error else "done"
                self._grown(event.agent_id)
            case ApprovalRequested():
                self._ask(event)
            case ApprovalResolved() if event.approval_id in self._asked:
                self._decide(self._asked[event.approval_id], event)
            case ArtifactMade():
                self._add(Note(event.agent_id, f"+ {event.name} ({event.size:,} bytes)"))
            case SourceCited():
                self._add(Note(event.agent_id, f"@ {event.title} {event.url}".rstrip()))
            case _:
                pass  # steps, usage, thoughts and pieces of arguments are not drawn

    def _feed_call(self, call: Call, event: ToolReady | ToolOutputDelta | ToolFinished) -> None:
        match event:
            case ToolReady():
                call.args = event.args
            case ToolOutputDelta():
                output = call.output + event.text
                call.output_cut = call.output_cut or len(output) > MOST_OUTPUT
                call.output = output[-MOST_OUTPUT:]
            case ToolFinished():
                call.state = "failed" if event.error is not None else "done" if event.result_seen else "unseen"
                call.duration_ms, call.error = event.duration_ms, event.error or ""

    def _ask(self, event: ApprovalRequested) -> None:
        call = self._calls.get(event.call_id) or self._call_that_asks(event)
        call_id = "" if call is None else call.call_id
        asked = Asked(event.approval_id, event.agent_id, call_id, event.name, event.args)
        self._asked[event.approval_id] = asked
        if call is None:
            self._add(asked)
        else:
            call.asked.append(asked)
            call.state = "waiting"

    def _call_that_asks(self, event: ApprovalRequested) -> Call | None:
        """A tool that asks by itself does not name its call: it is the one that runs with these arguments, or alone."""
        running = [call for call in self._calls.values() if call.name == event.name and call.state == "running"]
        fitting = [call for call in running if call.args == event.args]
        return fitting[0] if fitting else running[0] if len(running) == 1 else None

    def _decide(self, asked: Asked, event: ApprovalResolved) -> None:
        asked.decision, asked.by, asked.reason = event.decision, event.by, event.reason
        call = self._calls.get(asked.call_id)
        if call is not None:
            call.state = "waiting" if call.waits else "running"
        if event.decision == "edit":
            asked.edited = event.args
            if call is not None:
                call.args = event.args

    def _add(self, thing: Any) -> Any:
        self.status = ""  # it spoke of what came before
        self.things.append(thing)
        return thing


def took(milliseconds: int | None) -> str:
    """A duration for people."""
    if milliseconds is None:
        return ""
    if milliseconds < 1000:
        return f"{milliseconds} ms"
    seconds = milliseconds / 1000
    return f"{seconds:.1f} s" if seconds < 60 else f"{int(seconds // 60)} min {int(seconds % 60)} s"


def ending(story: Story) -> str:
    """How it ended, in one line."""
    time = took(story.ended_at - story.began_at)
    match story.terminal:
        case RunFinished(code=""):
            return f"Finished in {time}."
        case RunFinished(code=code):
            return f"Finished in {time} ({code})."
        case RunFailed(message=message, code=code):
            return f"Failed after {time}: {message} ({code})"
        case RunCancelled(reason=reason):
            return f"Stopped after {time}: {reason}" if reason else f"Stopped after {time}."
        case None:
            return ""
