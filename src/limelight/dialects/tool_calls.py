"""The flat wire of the Agno documents: `event: message`, seven types, keys beside `type` and no envelope.

Made for a chat that shows an answer and the tools behind it. A call is announced when its arguments are whole, a
sub-agent's text is not sent, and its tools are named `agent › tool`. `docs/protocols/tool_calls.md` tells the rest.
"""

from typing import Any, ClassVar, NamedTuple, assert_never

from limelight.deltas import Delta
from limelight.dialects.approvals import Approvals
from limelight.dialects.base import STOPPED, Paragraphs, cut_of, encode, rooted, seen_of, text_of
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

RESULT_PREVIEW = 2_000
DONE = b'{"type":"done"}'


class _Call(NamedTuple):
    """What the end of a call must repeat. `args` is None until they are whole."""

    name: str
    args: dict[str, Any] | str | None
    cut: dict[str, Any]


class ToolCallsDialect:
    """Keeps the open calls and the names of the sub-agents."""

    event_name: ClassVar[str] = "message"
    joins: ClassVar[bool] = True
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
        self._calls: dict[str, _Call] = {}
        self._agents: dict[str, str] = {}
        self._approvals = Approvals()
        self._paragraphs = Paragraphs()

    def feed(self, record: Record) -> list[bytes]:
        event = rooted(record, self._root).event
        match event:
            case TextDelta():
                return self._say(event)
            case RunStarted():
                return [_frame("status", content="Thinking...")]
            case Status():
                return [_frame("status", content=self._named(event.agent_id, event.text))]
            case ToolStarted() | ToolReady():
                return self._begin(event)
            case ToolFinished():
                return self._end(event, record.run_id)
            case ApprovalRequested() | ApprovalResolved():
                label, subject, _ = self._approvals.feed(event)
                return [_frame("status", content=f"{label}: {self._named(subject.agent_id, subject.name)}")]
            case AgentStarted():
                self._agents[event.agent_id] = event.name
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

    def fits(self, event: Delta) -> bool:
        return True

    def gap(self, first: int, last: int) -> bytes:
        return _frame("gap", **{"from": first, "to": last})

    def _say(self, event: TextDelta) -> list[bytes]:
        if event.agent_id:
            return []
        return [_frame("message", content=self._paragraphs.part("", event.message_id, event.text))]

    def _answer(self, event: FinalAnswer) -> list[bytes]:
        """An answer that was streamed as text is there already; one that was not is sent now."""
        text = text_of(event.content)
        if event.message_id is not None or not text:
            return []
        return [_frame("message", content=self._paragraphs.part("", None, text), **cut_of(event))]

    def _named(self, agent_id: str, what: str) -> str:
        return f"{self._agents.get(agent_id, agent_id)} › {what}" if agent_id else what

    def _begin(self, event: ToolStarted | ToolReady) -> list[bytes]:
        """A call whose arguments still stream is announced when they are there: this wire says them once."""
        if isinstance(event, ToolStarted):
            name = self._named(event.agent_id, event.name)
        else:
            name = self._calls[event.call_id].name
        call = self._calls[event.call_id] = _Call(name, event.args, cut_of(event))
        return [] if call.args is None else [_start(event.call_id, call)]

    def _end(self, event: ToolFinished, run_id: str) -> list[bytes]:
        call = self._calls.pop(event.call_id)
        frames: list[bytes] = []
        if call.args is None:  # it failed before its arguments were whole
            call = call._replace(args={})
            frames.append(_start(event.call_id, call))
        about = {"tool_call_id": event.call_id, "tool_name": call.name, "tool_args": call.args}
        if event.error is not None:
            return [*frames, _frame("tool_call_error", **about, error=event.error)]
        result = text_of(event.result)
        more = {**seen_of(event), **cut_of(event)}
        if len(result) > RESULT_PREVIEW:
            size = event.size or len(result.encode())
            result = result[:RESULT_PREVIEW] + "..."
            where = link(self._root, result_url(run_id, "result", event.call_id))
            more = {"truncated": True, "size": size, "result_url": where}
        return [*frames, _frame("tool_call_complete", **about, result=result, **more)]


def _start(call_id: str, call: _Call) -> bytes:
    return _frame("tool_call_start", tool_call_id=call_id, tool_name=call.name, tool_args=call.args, **call.cut)


def _frame(type_: str, **data: Any) -> bytes:
    return encode({"type": type_, **data})
