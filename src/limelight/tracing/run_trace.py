"""Converts the Records of one run to spans, by OpenTelemetry's conventions for generative AI. Pure.

An agent becomes a span `invoke_agent`, a step with a known model a span `chat`, and a tool call a span `execute_tool`.
The span of a sub-agent is a child of the call that started it. Spans contain input, arguments, results, answers
and error texts only if `content` is set, and only as far as the log contains them.
"""

from collections.abc import Sequence
from typing import assert_never

from limelight.events import (
    AgentFinished,
    AgentStarted,
    ApprovalRequested,
    ApprovalResolved,
    ArtifactMade,
    FinalAnswer,
    JsonValue,
    Outcome,
    Plan,
    PlanDelta,
    ReasoningDelta,
    ReasoningFinished,
    Record,
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
    terminal_of,
)
from limelight.models import state_after
from limelight.tracing import semantic_conventions as conventions
from limelight.tracing.span import NS_PER_MS, Attributes, Span, parse_traceparent, span_id_of, trace_id_of

CANCELLED = "cancelled"
"""The `error.type` of spans that were open when their run was stopped."""
STOPPED = "stopped"
"""The `error.type` of spans that were open when their agent ended, or when their run finished."""
REJECTED = "rejected"
"""The `error.type` of the spans of calls whose approval was rejected or has expired."""


class RunTrace:
    """Creates the spans of one run from its Records, beginning with `run_started`."""

    def __init__(self, run_id: str, session_id: str, *, content: bool = False) -> None:
        self._run_id = run_id
        self._session_id = session_id
        self._content = content
        self._trace_id = trace_id_of(run_id)
        self._is_sampled = True
        self._agents: dict[str, Span] = {}
        """Open spans of agents, by agent id. The id of the main agent is ""."""
        self._steps: dict[str, Span] = {}
        """Open spans of steps, by agent id."""
        self._calls: dict[str, Span] = {}
        """Open spans of tool calls, by call id."""
        self._approvals: dict[str, Span] = {}
        """Spans with an open approval, by approval id."""
        self._stopped_type = STOPPED
        """The `error.type` of stopped spans: the code of the run's end, if the run ends with the current Records."""

    def feed(self, records: Sequence[Record]) -> list[Span]:
        """Process Records that were committed together. Return the spans that end with them, the run's span last."""
        terminal = terminal_of(records[-1].event)
        if terminal is not None:
            self._stopped_type = _stopped_type(terminal)
        ended = (self._feed_record(record) for record in records)
        return [span for span in ended if span is not None]

    def _feed_record(self, record: Record) -> Span | None:
        match event := record.event:
            case TextDelta() | ReasoningDelta() | ToolOutputDelta():  # a shortcut for most Records
                return None
            case RunStarted():
                self._begin(event, record)
            case StepStarted():
                agent = self._agents.get(event.agent_id)
                attributes = conventions.step_attributes(event)
                self._steps[event.agent_id] = self._open(record, f"step {event.number}", agent, attributes)
            case ToolStarted():
                name, parent = f"execute_tool {event.name}", self._parent(event.agent_id)
                span = self._open(record, name, parent, conventions.call_attributes(event))
                self._calls[event.call_id] = span
                self._set_content(span, conventions.ARGUMENTS, event.args)
            case ToolReady():
                self._set_content(self._calls.get(event.call_id), conventions.ARGUMENTS, event.args)
            case AgentStarted():
                parent = self._calls.get(event.call_id) or self._parent(event.parent_id)
                attributes = conventions.agent_attributes(event.name, self._session_id)
                attributes[conventions.AGENT_ID] = event.agent_id
                self._agents[event.agent_id] = self._open(record, f"invoke_agent {event.name}", parent, attributes)
            case ApprovalRequested():
                span = self._calls.get(event.call_id) or self._parent(event.agent_id)
                if span is not None:
                    self._approvals[event.approval_id] = span
                    span.events.append(conventions.approval_event(event, record.at))
            case ApprovalResolved():
                if (span := self._approvals.pop(event.approval_id, None)) is not None:
                    span.events.append(conventions.approval_event(event, record.at))
            case Usage():
                for span in (self._steps.get(event.agent_id), self._agents.get(event.agent_id)):
                    if span is not None:
                        span.usage.add(event.input_tokens, event.output_tokens, event.model)
            case FinalAnswer():
                self._set_content(self._agents.get(""), conventions.OUTPUT, conventions.output_messages(event.content))
            case ToolFinished() | StepFinished() | AgentFinished() | RunFinished() | RunFailed() | RunCancelled():
                return self._end(event, record)
            case (
                TextFinished()
                | ReasoningFinished()
                | ToolArgsDelta()
                | Status()
                | PlanDelta()
                | Plan()
                | SourceCited()
                | ArtifactMade()
            ):
                return None  # not part of a trace
            case _:
                assert_never(event)
        return None

    def _begin(self, event: RunStarted, record: Record) -> None:
        remote = parse_traceparent(event.traceparent)
        if remote is not None:
            self._trace_id, self._is_sampled = remote.trace_id, remote.is_sampled
        attributes = conventions.run_attributes(event, self._run_id, self._session_id)
        run = self._agents[""] = self._open(record, f"invoke_agent {event.agent}", None, attributes)
        self._set_content(run, conventions.INPUT, conventions.input_messages(event.input))
        if remote is not None:
            run.parent_id, run.parent_is_remote = remote.span_id, True

    def _open(self, record: Record, name: str, parent: Span | None, attributes: Attributes) -> Span:
        return Span(
            name=name,
            trace_id=self._trace_id,
            is_sampled=self._is_sampled,
            span_id=span_id_of(self._run_id, record.seq),
            parent_id=parent.span_id if parent else None,
            start_ns=record.at * NS_PER_MS,
            attributes=attributes,
        )

    def _parent(self, agent_id: str) -> Span | None:
        """Return the parent span for calls of an agent: the agent's open step, or else the agent's span."""
        return self._steps.get(agent_id) or self._agents.get(agent_id) or self._agents.get("")

    def _set_content(self, span: Span | None, name: str, value: JsonValue) -> None:
        if self._content and span is not None and value is not None:
            span.attributes[name] = conventions.attribute_text(value)

    def _end(self, event: ToolFinished | StepFinished | AgentFinished | Terminal, record: Record) -> Span | None:
        match event:
            case ToolFinished():
                span = self._calls.pop(event.call_id, None)
                self._set_content(span, conventions.RESULT, event.result if event.result_seen else None)
                if span is not None and event.duration_ms is not None:
                    span.attributes[conventions.TOOL_DURATION] = event.duration_ms
                if span is not None and not event.result_seen:
                    span.attributes[conventions.RESULT_SEEN] = False
                return self._close(span, record, "tool_error", event.error, event.outcome)
            case StepFinished():
                span = self._steps.pop(event.agent_id, None)
                if span is not None:
                    self._finish_step(span, event)
                return self._close(span, record, "step_error", event.error, event.outcome)
            case AgentFinished():
                span = self._agents.pop(event.agent_id, None)
                return self._close(span, record, "agent_error", event.error, event.outcome)
            case RunFinished() | RunFailed() | RunCancelled():
                return self._end_run(event, record)

    def _finish_step(self, span: Span, event: StepFinished) -> None:
        """Add the tokens and the model of a step to its span, and rename the span to `chat` if the model is known.

        The tokens are not added if `usage` events have already reported them.
        """
        if not span.usage.is_known and (event.input_tokens is not None or event.output_tokens is not None):
            for owner in (span, self._agents.get(event.agent_id)):
                if owner is not None:
                    owner.usage.add(event.input_tokens or 0, event.output_tokens or 0)
        if span.usage.model:
            span.name = f"chat {span.usage.model}"
            span.attributes |= conventions.chat_attributes(span.usage.model)

    def _end_run(self, event: Terminal, record: Record) -> Span | None:
        span = self._agents.pop("", None)
        if span is None:
            return None
        span.attributes[conventions.RUN_STATE] = state_after(event)
        match event:
            case RunFailed():
                if event.error_id:
                    span.attributes[conventions.ERROR_ID] = event.error_id
                return self._close(span, record, event.code, event.message)
            case RunFinished() if event.code:
                span.attributes[conventions.RUN_CODE] = event.code
            case RunFinished() | RunCancelled():
                pass
        return self._close(span, record, "", None)

    def _close(
        self, span: Span | None, record: Record, error_type: str, error: str | None, outcome: Outcome = ""
    ) -> Span | None:
        """End a span and return it. The `error.type` of a stopped or rejected span is not `error_type`."""
        if span is None:
            return None
        span.end_ns = max(record.at * NS_PER_MS, span.start_ns)
        span.attributes |= span.usage.attributes
        if error is not None:
            types = {"": error_type, "failed": error_type, "stopped": self._stopped_type, "rejected": REJECTED}
            span.attributes[conventions.ERROR_TYPE] = types[outcome]
            span.failed, span.message = True, error if self._content else ""
        return span


def _stopped_type(terminal: Terminal) -> str:
    """Return the `error.type` of the spans that the end of a run has stopped."""
    match terminal:
        case RunFailed():
            return terminal.code
        case RunCancelled():
            return CANCELLED
        case RunFinished():
            return STOPPED
