"""From the Records of one run to its spans, by OpenTelemetry's conventions for generative AI.

Pure: `feed` takes what is new in the log and gives the spans that have ended with it, the run's own last. An agent is
`invoke_agent`, a round of its loop `chat`, a call `execute_tool`; a sub-agent stands under the call that spawned it.
What people and tools said is told only if `content` is set, and then as the log has it.
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
from limelight.tracing import conventions as said
from limelight.tracing.conventions import Said
from limelight.tracing.open_span import OpenSpan
from limelight.tracing.span import NS, Span, span_id_of, trace_id_of
from limelight.tracing.traceparent import parent_in

CANCELLED = "cancelled"
"""The `error.type` of what was cut off because somebody stopped the run."""


class RunTrace:
    """Follows one run, from its `run_started` on."""

    def __init__(self, run_id: str, session_id: str, *, content: bool = False) -> None:
        self._run_id = run_id
        self._session_id = session_id
        self._content = content
        self._trace_id = trace_id_of(run_id)
        self._is_sampled = True
        self._agents: dict[str, OpenSpan] = {}
        """Open spans by their agents, "" is the main one; steps likewise, calls by their ids."""
        self._steps: dict[str, OpenSpan] = {}
        self._calls: dict[str, OpenSpan] = {}
        self._asked: dict[str, OpenSpan] = {}
        """The spans in which people were asked, by approval."""
        self._cut_off = ("", "")
        """What those events say that close what is open at the run's end, and the `error.type` that it means."""

    def feed(self, records: Sequence[Record]) -> list[Span]:
        """The spans that end with these Records, which came into the log together."""
        terminal = terminal_of(records[-1].event)
        if terminal is not None:
            self._cut_off = (closing_reason(terminal), _code_of(terminal))
        ended = (self._heard(record) for record in records)
        return [span for span in ended if span is not None]

    def _heard(self, record: Record) -> Span | None:
        match event := record.event:
            case TextDelta() | ReasoningDelta() | ToolOutputDelta():  # nine in ten
                return None
            case RunStarted():
                self._begin(event, record)
            case StepStarted():
                agent = self._agents.get(event.agent_id)
                self._steps[event.agent_id] = self._opened(record, f"step {event.number}", agent, said.of_step(event))
            case ToolStarted():
                name, where = f"execute_tool {event.name}", self._inside(event.agent_id)
                self._calls[event.call_id] = self._opened(record, name, where, said.of_call(event))
                self._tell(self._calls.get(event.call_id), said.ARGUMENTS, event.args)
            case ToolReady():
                self._tell(self._calls.get(event.call_id), said.ARGUMENTS, event.args)
            case AgentStarted():
                where = self._calls.get(event.call_id) or self._inside(event.parent_id)
                about = {**said.of_agent(event.name, self._session_id), said.AGENT_ID: event.agent_id}
                self._agents[event.agent_id] = self._opened(record, f"invoke_agent {event.name}", where, about)
            case ApprovalRequested():
                span = self._calls.get(event.call_id) or self._inside(event.agent_id)
                if span is not None:
                    self._asked[event.approval_id] = span
                    span.events.append(said.approval(event, record.at))
            case ApprovalResolved():
                if (span := self._asked.pop(event.approval_id, None)) is not None:
                    span.events.append(said.approval(event, record.at))
            case Usage():
                for span in (self._steps.get(event.agent_id), self._agents.get(event.agent_id)):
                    if span is not None:
                        span.tokens.add(event.input_tokens, event.output_tokens, event.model)
            case FinalAnswer():
                self._tell(self._agents.get(""), said.OUTPUT, said.answer(event.content))
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
                return None  # no span, and belongs to none: the log has it
            case _:
                assert_never(event)
        return None

    def _begin(self, event: RunStarted, record: Record) -> None:
        about = said.of_run(event, self._run_id, self._session_id)
        run = self._agents[""] = self._opened(record, f"invoke_agent {event.agent}", None, about)
        self._tell(run, said.INPUT, said.question(event.input))
        asker = parent_in(event.traceparent)
        if asker is not None:
            self._trace_id, run.parent_id, self._is_sampled = asker
            run.parent_is_remote = True

    def _opened(self, record: Record, name: str, parent: OpenSpan | None, about: Said) -> OpenSpan:
        return OpenSpan(
            name=name,
            span_id=span_id_of(self._run_id, record.seq),
            parent_id=parent.span_id if parent else None,
            start_ns=record.at * NS,
            attributes=about,
        )

    def _inside(self, agent_id: str) -> OpenSpan | None:
        """Where something of an agent takes place: in its step, if it has steps."""
        return self._steps.get(agent_id) or self._agents.get(agent_id) or self._agents.get("")

    def _tell(self, span: OpenSpan | None, name: str, value: JsonValue) -> None:
        if self._content and span is not None and value is not None:
            span.attributes[name] = said.written(value)

    def _end(self, event: ToolFinished | StepFinished | AgentFinished | Terminal, record: Record) -> Span | None:
        match event:
            case ToolFinished():
                span = self._calls.pop(event.call_id, None)
                self._tell(span, said.RESULT, event.result if event.result_seen else None)
                if span is not None and event.duration_ms is not None:
                    span.attributes[said.TOOL_DURATION] = event.duration_ms
                if span is not None and not event.result_seen:
                    span.attributes[said.RESULT_SEEN] = False
                return self._closed(span, record, "tool_error", event.error)
            case StepFinished():
                span = self._steps.pop(event.agent_id, None)
                if span is not None:
                    self._sum_up(span, event)
                return self._closed(span, record, "step_error", event.error)
            case AgentFinished():
                return self._closed(self._agents.pop(event.agent_id, None), record, "agent_error", event.error)
            case RunFinished() | RunFailed() | RunCancelled():
                return self._over(event, record)

    def _sum_up(self, span: OpenSpan, event: StepFinished) -> None:
        """A step is a `chat` if its model is known. What it cost is said by its requests, else by itself."""
        if not span.tokens.known and (event.input_tokens is not None or event.output_tokens is not None):
            for one in (span, self._agents.get(event.agent_id)):
                if one is not None:
                    one.tokens.add(event.input_tokens or 0, event.output_tokens or 0)
        if span.tokens.model:
            span.name = f"chat {span.tokens.model}"
            span.attributes |= said.of_chat(span.tokens.model)

    def _over(self, event: Terminal, record: Record) -> Span | None:
        span = self._agents.pop("", None)
        if span is None:
            return None
        span.attributes[said.RUN_STATE] = state_after(event)
        match event:
            case RunFailed():
                if event.error_id:
                    span.attributes[said.ERROR_ID] = event.error_id
                return self._closed(span, record, event.code, event.message)
            case RunFinished() if event.code:
                span.attributes[said.RUN_CODE] = event.code
            case RunFinished() | RunCancelled():
                pass
        return self._closed(span, record, "", None)

    def _closed(self, span: OpenSpan | None, record: Record, error_type: str, error: str | None) -> Span | None:
        """The whole span. It failed if there is an `error`; one that the run's end has brought has that end's type."""
        if span is None:
            return None
        failure: Said = {}
        if error is not None:
            closing, code = self._cut_off
            failure[said.ERROR_TYPE] = code if code and error == closing else error_type
        return Span(
            name=span.name,
            trace_id=self._trace_id,
            span_id=span.span_id,
            parent_id=span.parent_id,
            parent_is_remote=span.parent_is_remote,
            start_ns=span.start_ns,
            end_ns=max(record.at * NS, span.start_ns),
            attributes={**span.attributes, **span.tokens.attributes, **failure},
            events=tuple(span.events),
            failed=error is not None,
            message=error if error is not None and self._content else "",
            is_sampled=self._is_sampled,
        )


def _code_of(terminal: Terminal) -> str:
    match terminal:
        case RunFailed():
            return terminal.code
        case RunCancelled():
            return CANCELLED
        case RunFinished():
            return ""
