"""Conversion of the Records of one run to spans, by OpenTelemetry's conventions for generative AI. Pure.

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
from limelight.grammar import closing_reason
from limelight.models import state_after
from limelight.tracing import semantic_conventions as conventions
from limelight.tracing.semantic_conventions import Attributes
from limelight.tracing.span import NS_PER_MS, OpenSpan, Span, parse_traceparent, span_id_of, trace_id_of

CANCELLED = "cancelled"
"""The `error.type` of spans that were open when their run was stopped."""


class RunTrace:
    """Creates the spans of one run from its Records, beginning with `run_started`."""

    def __init__(self, run_id: str, session_id: str, *, content: bool = False) -> None:
        self._run_id = run_id
        self._session_id = session_id
        self._content = content
        self._trace_id = trace_id_of(run_id)
        self._is_sampled = True
        self._agents: dict[str, OpenSpan] = {}
        """Open spans of agents, by agent id. The id of the main agent is ""."""
        self._steps: dict[str, OpenSpan] = {}
        """Open spans of steps, by agent id."""
        self._calls: dict[str, OpenSpan] = {}
        """Open spans of tool calls, by call id."""
        self._approvals: dict[str, OpenSpan] = {}
        """Spans with an open approval, by approval id."""
        self._closing = ("", "")
        """The error text of events that were closed by the end of the run, and the `error.type` for their spans."""

    def feed(self, records: Sequence[Record]) -> list[Span]:
        """Process Records that were committed together. Return the spans that they end; the span of the run is last."""
        terminal = terminal_of(records[-1].event)
        if terminal is not None:
            self._closing = (closing_reason(terminal), _error_type(terminal))
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
        attributes = conventions.run_attributes(event, self._run_id, self._session_id)
        run = self._agents[""] = self._open(record, f"invoke_agent {event.agent}", None, attributes)
        self._set_content(run, conventions.INPUT, conventions.input_messages(event.input))
        parent = parse_traceparent(event.traceparent)
        if parent is not None:
            self._trace_id, run.parent_id, self._is_sampled = parent
            run.parent_is_remote = True

    def _open(self, record: Record, name: str, parent: OpenSpan | None, attributes: Attributes) -> OpenSpan:
        return OpenSpan(
            name=name,
            span_id=span_id_of(self._run_id, record.seq),
            parent_id=parent.span_id if parent else None,
            start_ns=record.at * NS_PER_MS,
            attributes=attributes,
        )

    def _parent(self, agent_id: str) -> OpenSpan | None:
        """Return the parent span for calls of an agent: the agent's open step, or else the agent's span."""
        return self._steps.get(agent_id) or self._agents.get(agent_id) or self._agents.get("")

    def _set_content(self, span: OpenSpan | None, name: str, value: JsonValue) -> None:
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
                return self._close(span, record, "tool_error", event.error)
            case StepFinished():
                span = self._steps.pop(event.agent_id, None)
                if span is not None:
                    self._finish_step(span, event)
                return self._close(span, record, "step_error", event.error)
            case AgentFinished():
                return self._close(self._agents.pop(event.agent_id, None), record, "agent_error", event.error)
            case RunFinished() | RunFailed() | RunCancelled():
                return self._end_run(event, record)

    def _finish_step(self, span: OpenSpan, event: StepFinished) -> None:
        """Complete the span of a step.

        The tokens of the step are added unless `usage` events have reported them. If the model is known, the span is
        renamed to `chat`.
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

    def _close(self, span: OpenSpan | None, record: Record, error_type: str, error: str | None) -> Span | None:
        """Return the finished form of a span. An error caused by the end of the run gets the run's `error.type`."""
        if span is None:
            return None
        failure: Attributes = {}
        if error is not None:
            closing, closing_type = self._closing
            failure[conventions.ERROR_TYPE] = closing_type if closing_type and error == closing else error_type
        return Span(
            name=span.name,
            trace_id=self._trace_id,
            span_id=span.span_id,
            parent_id=span.parent_id,
            parent_is_remote=span.parent_is_remote,
            start_ns=span.start_ns,
            end_ns=max(record.at * NS_PER_MS, span.start_ns),
            attributes={**span.attributes, **span.usage.attributes, **failure},
            events=tuple(span.events),
            failed=error is not None,
            message=error if error is not None and self._content else "",
            is_sampled=self._is_sampled,
        )


def _error_type(terminal: Terminal) -> str:
    match terminal:
        case RunFailed():
            return terminal.code
        case RunCancelled():
            return CANCELLED
        case RunFinished():
            return ""
