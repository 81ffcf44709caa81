"""Checks that a run's events come in a legal order, and tracks which calls, texts and agents are open.

One Grammar follows one run. It checks every event before that event is appended to the log. It does no I/O and has no
clock; the engine and the recovery after a crash use it.

The rules in short: `run_started` comes first and only once; every other event needs an open agent; ids of calls,
agents, approvals and messages are used once per run; arguments stream before a call is ready, output comes after;
everything that was opened is closed before its agent ends, and before the one terminal event.
"""

from typing import Any, assert_never

import msgspec

from limelight.errors import BadEvent
from limelight.events import (
    NO_RESULT_SEEN,
    AgentFinished,
    AgentStarted,
    AnyEvent,
    ApprovalRequested,
    ApprovalResolved,
    ArtifactMade,
    FinalAnswer,
    Plan,
    PlanDelta,
    ReasoningDelta,
    ReasoningFinished,
    RunCancelled,
    RunFailed,
    RunFinished,
    RunStarted,
    SourceCited,
    Status,
    StepFinished,
    StepStarted,
    Terminal,
    TextDelta,
    TextFinished,
    ToolArgsDelta,
    ToolFinished,
    ToolOutputDelta,
    ToolReady,
    ToolStarted,
    Usage,
    kind_of,
)

RUN_ENDED = "the run ended before this did"
"""Error text of the calls, steps and sub-agents that are still open when a run finishes."""
RUN_STOPPED = "stopped"
"""Error text of the calls, steps and sub-agents that are still open when a run is stopped."""


class OpenCall(msgspec.Struct):
    """A tool call of the run that has not ended yet."""

    agent_id: str
    args_text: list[str] | None
    """The streamed pieces of the arguments; None once the arguments are complete."""
    approval_id: str = ""
    """The id of the approval for which the call waits; "" if none."""


class OpenAgent(msgspec.Struct, frozen=True):
    """A sub-agent of the run that has not ended yet."""

    parent_id: str
    call_id: str


class Grammar:
    """The state of one run: its open calls, texts, steps, agents and approvals, and its terminal event."""

    def __init__(self) -> None:
        self.started = False
        self.terminal: Terminal | None = None
        self.answered = False
        self.agents: dict[str, OpenAgent] = {}
        """Open sub-agents by id, in the order in which they started."""
        self.texts: dict[str, str] = {}
        """The agents whose text messages are open, by message id."""
        self.reasonings: dict[str, str] = {}
        """The agents whose reasoning messages are open, by message id."""
        self.calls: dict[str, OpenCall] = {}
        self.steps: dict[str, StepStarted] = {}
        """The open step of each agent, by agent id."""
        self.approvals: dict[str, ApprovalRequested] = {}
        self._used_ids: set[tuple[str, str]] = set()

    @property
    def waiting(self) -> bool:
        """Whether the run waits for a person's decision on an approval."""
        return bool(self.approvals)

    @property
    def busy(self) -> bool:
        """Whether a tool call or an approval is open, so that silence of the source is normal."""
        return bool(self.calls or self.approvals)

    def check(self, event: AnyEvent) -> None:
        """Check an event's order and update the state. Raises BadEvent, and changes nothing, if it is illegal."""
        if type(event) is TextDelta and self.texts.get(event.message_id) == event.agent_id and self.terminal is None:
            return  # a fast path for most events: another delta of an open message
        if self.terminal is not None:
            raise _bad(event, "the run has already ended")
        if isinstance(event, RunStarted):
            self._start(event)
            return
        if not self.started:
            raise _bad(event, "a run begins with run_started")
        if isinstance(event, AgentStarted):
            self._agent_started(event)
            return
        if event.agent_id and event.agent_id not in self.agents:
            raise _bad(event, f"agent {event.agent_id!r} is not open")
        self._apply(event)

    def closing_events(self, reason: str, agent_id: str = "", *, succeeded: bool = False) -> list[AnyEvent]:
        """Return the events that close everything that an agent and its sub-agents have open, innermost first.

        For the main agent, these are all open things of the run; the terminal event is not included. Calls, steps and
        sub-agents end with the outcome `stopped` and `reason` as their error. If the agent `succeeded`, an open call
        ends without an error, with a result that was not seen; a call that waits for an approval is stopped in either
        case, because it did not run.
        """
        events: list[AnyEvent] = []
        for child, agent in self.agents.items():
            if agent.parent_id == agent_id:
                events += self._closing_agent(reason, child, succeeded=succeeded)
        events += [TextFinished(agent_id=a, message_id=m) for m, a in self.texts.items() if a == agent_id]
        events += [ReasoningFinished(agent_id=a, message_id=m) for m, a in self.reasonings.items() if a == agent_id]
        requests = [r for r in self.approvals.values() if r.agent_id == agent_id and not r.call_id]
        events += [_rejection(request, reason) for request in requests]
        for call_id, call in reversed(self.calls.items()):  # newest first, because a call may have started a later call
            if call.agent_id == agent_id:
                unseen = succeeded and not call.approval_id
                events += self._before_call_end(reason, call_id)
                events.append(unseen_result(agent_id, call_id) if unseen else _stopped_call(agent_id, call_id, reason))
        if agent_id in self.steps:
            step = self.steps[agent_id]
            events.append(
                StepFinished(
                    agent_id=agent_id, number=step.number, step_kind=step.step_kind, error=reason, outcome="stopped"
                )
            )
        return events

    def missing_before(self, event: AnyEvent, reason: str) -> list[AnyEvent]:
        """Return the events that must come before this event, because it ends a run, agent or call with open parts."""
        match event:
            case RunFinished() | RunFailed() | RunCancelled():
                return self.closing_events(reason, succeeded=isinstance(event, RunFinished))
            case AgentFinished() if event.agent_id in self.agents:
                return self.closing_events(reason, event.agent_id, succeeded=event.error is None)
            case ToolFinished() if event.call_id in self.calls:
                succeeded = event.error is None
                spawned = [child for child, agent in self.agents.items() if agent.call_id == event.call_id]
                closed = [e for child in spawned for e in self._closing_agent(reason, child, succeeded=succeeded)]
                return closed + self._before_call_end(reason, event.call_id)
            case _:
                return []

    def _closing_agent(self, reason: str, agent_id: str, *, succeeded: bool) -> list[AnyEvent]:
        closed = self.closing_events(reason, agent_id, succeeded=succeeded)
        return [*closed, AgentFinished(agent_id=agent_id, error=reason, outcome="stopped")]

    def _before_call_end(self, reason: str, call_id: str) -> list[AnyEvent]:
        """Return the event that must come before the end of a call, a rejection or `tool_ready`, or none."""
        call = self.calls[call_id]
        if call.approval_id:
            return [_rejection(self.approvals[call.approval_id], reason)]
        if call.args_text is not None:
            return [ToolReady(agent_id=call.agent_id, call_id=call_id, args=parse_args("".join(call.args_text)))]
        return []

    def _start(self, event: RunStarted) -> None:
        if self.started:
            raise _bad(event, "a run starts once")
        if event.agent_id:
            raise _bad(event, "the main agent starts a run")
        self.started = True

    def _agent_started(self, event: AgentStarted) -> None:
        if not event.agent_id:
            raise _bad(event, "a sub-agent needs an agent_id of its own")
        if event.parent_id and event.parent_id not in self.agents:
            raise _bad(event, f"its parent {event.parent_id!r} is not open")
        if event.call_id:
            call = self.calls.get(event.call_id)
            if call is None or call.agent_id != event.parent_id:
                raise _bad(event, f"its parent has no open call {event.call_id!r}")
        self._use_once(event, "agent", event.agent_id)
        self.agents[event.agent_id] = OpenAgent(event.parent_id, event.call_id)

    def _apply(self, event: AnyEvent) -> None:
        match event:
            case TextDelta():
                self._message_delta(event, self.texts, "text")
            case TextFinished():
                self._message_finished(event, self.texts)
            case ReasoningDelta():
                self._message_delta(event, self.reasonings, "reasoning")
            case ReasoningFinished():
                self._message_finished(event, self.reasonings)
            case StepStarted():
                if event.agent_id in self.steps:
                    raise _bad(event, f"step {self.steps[event.agent_id].number} is still open")
                self.steps[event.agent_id] = event
            case StepFinished():
                step = self.steps.get(event.agent_id)
                if step is None or step.number != event.number:
                    raise _bad(event, f"step {event.number} is not open")
                del self.steps[event.agent_id]
            case ToolStarted():
                self._use_once(event, "call", event.call_id)
                self.calls[event.call_id] = OpenCall(event.agent_id, [] if event.args is None else None)
            case ToolArgsDelta() | ToolReady() | ToolOutputDelta() | ToolFinished():
                self._call(event)
            case ApprovalRequested():
                self._approval_requested(event)
            case ApprovalResolved():
                self._approval_resolved(event)
            case AgentFinished():
                self._agent_finished(event)
            case FinalAnswer():
                self._final_answer(event)
            case RunFinished() | RunFailed() | RunCancelled():
                self._end(event)
            case Status() | PlanDelta() | Plan() | SourceCited() | ArtifactMade() | Usage():
                pass
            case RunStarted() | AgentStarted():
                raise AssertionError("check() handles these")
            case _:
                assert_never(event)

    def _use_once(self, event: AnyEvent, what: str, id_: str) -> None:
        if not id_:
            raise _bad(event, f"it needs a {what} id")
        if (what, id_) in self._used_ids:
            raise _bad(event, f"the {what} id {id_!r} was used before")
        self._used_ids.add((what, id_))

    def _message_delta(self, event: TextDelta | ReasoningDelta, open_: dict[str, str], what: str) -> None:
        owner = open_.get(event.message_id)
        if owner is None:
            self._use_once(event, what, event.message_id)
            open_[event.message_id] = event.agent_id
        elif owner != event.agent_id:
            raise _bad(event, f"message {event.message_id!r} belongs to agent {owner!r}")

    def _message_finished(self, event: TextFinished | ReasoningFinished, open_: dict[str, str]) -> None:
        if open_.get(event.message_id) != event.agent_id:
            raise _bad(event, f"message {event.message_id!r} is not open")
        del open_[event.message_id]

    def _call(self, event: ToolArgsDelta | ToolReady | ToolOutputDelta | ToolFinished) -> None:
        call = self.calls.get(event.call_id)
        if call is None or call.agent_id != event.agent_id:
            raise _bad(event, f"call {event.call_id!r} is not open")
        match event:
            case ToolArgsDelta():
                if call.args_text is None:
                    raise _bad(event, f"the arguments of {event.call_id!r} are already complete")
                call.args_text.append(event.text)
            case ToolReady():
                if call.args_text is None:
                    raise _bad(event, f"call {event.call_id!r} was ready before")
                call.args_text = None
            case ToolOutputDelta() | ToolFinished():
                if call.args_text is not None:
                    raise _bad(event, f"the arguments of {event.call_id!r} are not complete yet")
                if call.approval_id:
                    raise _bad(event, f"call {event.call_id!r} waits for approval {call.approval_id!r}")
                if isinstance(event, ToolFinished):
                    self._require_closed(event)
                    del self.calls[event.call_id]

    def _approval_requested(self, event: ApprovalRequested) -> None:
        call = None
        if event.call_id:
            call = self.calls.get(event.call_id)
            if call is None or call.agent_id != event.agent_id:
                raise _bad(event, f"call {event.call_id!r} is not open")
            if call.args_text is not None:
                raise _bad(event, f"the arguments of {event.call_id!r} are not complete yet")
            if call.approval_id:
                raise _bad(event, f"call {event.call_id!r} already waits for an approval")
        self._use_once(event, "approval", event.approval_id)
        self.approvals[event.approval_id] = event
        if call is not None:
            call.approval_id = event.approval_id

    def _approval_resolved(self, event: ApprovalResolved) -> None:
        request = self.approvals.get(event.approval_id)
        if request is None or request.agent_id != event.agent_id:
            raise _bad(event, f"approval {event.approval_id!r} is not open")
        del self.approvals[event.approval_id]
        if request.call_id:
            self.calls[request.call_id].approval_id = ""

    def _agent_finished(self, event: AgentFinished) -> None:
        if not event.agent_id:
            raise _bad(event, "the main agent ends with the run")
        self._require_closed(event)
        del self.agents[event.agent_id]

    def _final_answer(self, event: FinalAnswer) -> None:
        if event.agent_id:
            raise _bad(event, "only the main agent gives the final answer")
        if self.answered:
            raise _bad(event, "a run has only one final answer")
        if event.message_id is not None and ("text", event.message_id) not in self._used_ids:
            raise _bad(event, f"message {event.message_id!r} was never sent")
        self.answered = True

    def _end(self, event: Terminal) -> None:
        if event.agent_id:
            raise _bad(event, "only the main agent ends a run")
        if isinstance(event, RunFinished) and not self.answered:
            raise _bad(event, "a finished run has a final_answer")
        self._require_closed(event)
        self.terminal = event

    def _require_closed(self, event: AnyEvent) -> None:
        missing = self.missing_before(event, "")
        if missing:
            raise _bad(event, f"still missing: {', '.join(sorted({kind_of(e) for e in missing}))}")


def closing_reason(terminal: Terminal) -> str:
    """Return the error text for calls, steps and sub-agents that this terminal event closes."""
    match terminal:
        case RunFinished():
            return RUN_ENDED
        case RunFailed():
            return terminal.message
        case RunCancelled():
            return RUN_STOPPED


def unseen_result(agent_id: str, call_id: str) -> ToolFinished:
    """Return the `tool_finished` event of a call whose result the agent did not report; it may have failed."""
    return ToolFinished(agent_id=agent_id, call_id=call_id, result=NO_RESULT_SEEN, result_seen=False)


def parse_args(text: str) -> dict[str, Any] | str:
    """Parse the JSON text of a call's arguments. Return the text unchanged if it is not a JSON object."""
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return text


def _stopped_call(agent_id: str, call_id: str, reason: str) -> ToolFinished:
    result = f"Error: {reason}"
    return ToolFinished(agent_id=agent_id, call_id=call_id, result=result, error=reason, outcome="stopped")


def _rejection(request: ApprovalRequested, reason: str) -> ApprovalResolved:
    return ApprovalResolved(
        agent_id=request.agent_id, approval_id=request.approval_id, decision="reject", reason=reason, by="system"
    )


def _bad(event: AnyEvent, reason: str) -> BadEvent:
    return BadEvent(f"{kind_of(event)}: {reason}")
