"""The wire format `tool_calls`: flat JSON objects, all with `event: message` and one of seven types.

It is for chats that show an answer and the tool calls behind it. A call is announced when its arguments are complete,
the text of sub-agents is not sent, and their tools are named `agent › tool`. `docs/protocols/tool_calls.md` describes
the format.
"""

from typing import Any, ClassVar, NamedTuple, assert_never

from limelight.dialects.base import (
    STOPPED,
    Approvals,
    Dialect,
    EventReader,
    Paragraphs,
    agent_label,
    encode,
    is_structured,
    outcome_field,
    result_seen_field,
    summary_field,
    text_of,
    truncation_fields,
)
from limelight.events import (
    AgentFinished,
    AgentStarted,
    ApprovalRequested,
    ApprovalResolved,
    ArtifactMade,
    Event,
    FinalAnswer,
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
    TextDelta,
    TextFinished,
    ToolArgsDelta,
    ToolFinished,
    ToolOutputDelta,
    ToolReady,
    ToolStarted,
    Usage,
)
from limelight.links import link, result_url
from limelight.structured_answers import markdown_of

RESULT_CHARS = 2_000
DONE = b'{"type":"done"}'


class _Call(NamedTuple):
    """An open tool call: the fields that its last frame repeats. `args` is None until the arguments are complete."""

    name: str
    args: dict[str, Any] | str | None
    extra: dict[str, Any]
    """The summary of the call, and the truncation of its arguments, as fields of a frame."""


class ToolCallsDialect(Dialect):
    """Translates one run into frames of the format `tool_calls`. Its state is open calls and sub-agents' names."""

    event_name: ClassVar[str] = "message"
    DROPS: ClassVar[frozenset[type[Event]]] = frozenset(
        {
            TextFinished,
            ReasoningDelta,
            ReasoningFinished,
            PlanDelta,
            Plan,
            StepStarted,
            StepFinished,
            ToolArgsDelta,
            ToolOutputDelta,
            AgentStarted,
            AgentFinished,
            SourceCited,
            ArtifactMade,
            Usage,
        }
    )

    def __init__(self, root: str = "") -> None:
        self._root = root
        self._reader = EventReader(root)
        self._calls: dict[str, _Call] = {}
        self._agents: dict[str, str] = {}
        self._approvals = Approvals()
        self._paragraphs = Paragraphs()

    def feed(self, record: Record) -> list[bytes]:
        event = self._reader.read(record.event)
        match event:
            case TextDelta():
                return self._message(event)
            case RunStarted():
                return [_frame("status", content="Thinking...")]
            case Status():
                return [_frame("status", content=self._qualified(event.agent_id, event.text))]
            case ToolStarted() | ToolReady():
                return self._tool_started(event)
            case ToolFinished():
                return self._tool_finished(event, record.run_id)
            case ApprovalRequested() | ApprovalResolved():
                label, subject, _ = self._approvals.feed(event)
                return [_frame("status", content=f"{label}: {self._qualified(subject.agent_id, subject.name)}")]
            case AgentStarted():
                self._agents[event.agent_id] = agent_label(event)
                return []
            case FinalAnswer():
                return self._answer(event)
            case RunFinished():
                return [DONE]
            case RunFailed():
                return [_frame("error", message=event.message, code=event.code, error_id=event.error_id), DONE]
            case RunCancelled():
                return [_frame("status", content=STOPPED), DONE]
            case (
                TextFinished()
                | ReasoningDelta()
                | ReasoningFinished()
                | PlanDelta()
                | Plan()
                | StepStarted()
                | StepFinished()
                | ToolArgsDelta()
                | ToolOutputDelta()
                | AgentFinished()
                | SourceCited()
                | ArtifactMade()
                | Usage()
            ):
                return []
            case _:
                assert_never(event)

    def gap(self, first: int, last: int) -> bytes:
        return _frame("gap", **{"from": first, "to": last})

    def _message(self, event: TextDelta) -> list[bytes]:
        if event.agent_id:
            return []
        return [_frame("message", content=self._paragraphs.separator("", event.message_id) + event.text)]

    def _answer(self, event: FinalAnswer) -> list[bytes]:
        """Return the frames of the final answer, with title and sources; none if it was streamed as a message."""
        text = markdown_of(event) if is_structured(event) else text_of(event.content)
        if event.message_id is not None or not text:
            return []
        return [_frame("message", content=self._paragraphs.separator("", None) + text, **truncation_fields(event))]

    def _qualified(self, agent_id: str, text: str) -> str:
        """Return a text, preceded by the agent's name if the agent is a sub-agent."""
        return f"{self._agents.get(agent_id, agent_id)} › {text}" if agent_id else text

    def _tool_started(self, event: ToolStarted | ToolReady) -> list[bytes]:
        """Return the frame that announces a tool call; none until the arguments are complete."""
        if isinstance(event, ToolStarted):
            name = self._qualified(event.agent_id, event.name)
        else:
            name = self._calls[event.call_id].name
        extra = {**summary_field(event), **truncation_fields(event)}
        call = self._calls[event.call_id] = _Call(name, event.args, extra)
        return [] if call.args is None else [_start_frame(event.call_id, call)]

    def _tool_finished(self, event: ToolFinished, run_id: str) -> list[bytes]:
        call = self._calls.pop(event.call_id)
        frames: list[bytes] = []
        if call.args is None:  # the call failed before its arguments were complete
            call = call._replace(args={})
            frames.append(_start_frame(event.call_id, call))
        call_fields = {"tool_call_id": event.call_id, "tool_name": call.name, "tool_args": call.args}
        if event.error is not None:
            return [*frames, _frame("tool_call_error", **call_fields, error=event.error, **outcome_field(event))]
        result = text_of(event.result)
        extra = {**result_seen_field(event), **truncation_fields(event)}
        if len(result) > RESULT_CHARS:
            size = event.size or len(result.encode())
            result = result[:RESULT_CHARS] + "..."
            url = link(self._root, result_url(run_id, "result", event.call_id))
            extra = {"truncated": True, "size": size, "result_url": url}
        return [*frames, _frame("tool_call_complete", **call_fields, result=result, **extra)]


def _start_frame(call_id: str, call: _Call) -> bytes:
    return _frame("tool_call_start", tool_call_id=call_id, tool_name=call.name, tool_args=call.args, **call.extra)


def _frame(type_: str, **data: Any) -> bytes:
    return encode({"type": type_, **data})
