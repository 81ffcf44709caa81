"""The wire format `typed`: frames `{"type": …, "data": {…}}`, with the types of the Deep Agent document and others.

A client that supports only the document's seven types works unchanged; `docs/protocols/typed.md` lists the additions.
Failures, stops and approvals have additional types (`error`, `cancelled`, `approval`) and are also sent in a documented
type. The frame with the documented type names the additional type in `fallback_for`, so that clients that support the
additional type can skip this frame.
"""

from typing import Any, ClassVar, assert_never

from limelight.dialects.base import (
    STOPPED,
    AgentTree,
    Approvals,
    Dialect,
    EventReader,
    Paragraphs,
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
from limelight.links import artifact_url, link

DONE = b'{"type":"done"}'


class TypedDialect(Dialect):
    """Translates one run into frames of the format `typed`. Its state is open calls, approvals and agents' depths."""

    DROPS: ClassVar[frozenset[type[Event]]] = frozenset(
        {TextFinished, ReasoningFinished, PlanDelta, StepStarted, StepFinished}
    )

    def __init__(self, root: str = "") -> None:
        self._root = root
        self._reader = EventReader(root)
        self._tree = AgentTree()
        self._paragraphs = Paragraphs()
        self._tool_names: dict[str, str] = {}
        self._streamed_args: set[str] = set()
        self._approvals = Approvals()

    def feed(self, record: Record) -> list[bytes]:
        event = record.event
        if type(event) is TextDelta:
            return [self._token(event)]
        if type(event) is ReasoningDelta:
            return [self._reasoning(event.text, event.agent_id)]
        event = self._reader.read(event)
        match event:
            case RunStarted():
                return [_frame("status", description="Thinking...", agent_depth=0)]
            case Status():
                return [_frame("status", description=event.text, **self._agent_fields(event))]
            case TextDelta():
                return [self._token(event)]
            case ReasoningDelta():
                return [self._reasoning(event.text, event.agent_id)]
            case Plan():
                return [self._plan(event)]
            case ToolStarted() | ToolArgsDelta() | ToolReady() | ToolOutputDelta() | ToolFinished():
                return self._tool(event)
            case AgentStarted():
                depth = self._tree.add(event)
                return [
                    _frame(
                        "agent_start",
                        agent_id=event.agent_id,
                        name=event.name,
                        depth=depth,
                        parent_id=event.parent_id,
                        **_present(tool_id=event.call_id, title=event.title, branch=event.branch, task=event.task),
                    )
                ]
            case AgentFinished():
                depth = self._tree.depth(event.agent_id)
                ending = {**_present(error=event.error), **outcome_field(event)}
                return [_frame("agent_end", agent_id=event.agent_id, depth=depth, **ending)]
            case ApprovalRequested() | ApprovalResolved():
                return self._approval(event)
            case SourceCited():
                return [self._citation(event)]
            case ArtifactMade():
                return [self._artifact(event)]
            case Usage():
                return [
                    _frame(
                        "usage",
                        model=event.model,
                        input_tokens=event.input_tokens,
                        output_tokens=event.output_tokens,
                        **self._agent_fields(event),
                    )
                ]
            case FinalAnswer():
                return self._answer(event)
            case RunFinished():
                return [DONE]
            case RunFailed():
                return [
                    self._error_text(event),
                    _frame("error", message=event.message, code=event.code, error_id=event.error_id),
                    DONE,
                ]
            case RunCancelled():
                return [
                    _frame("status", description=STOPPED, agent_depth=0, fallback_for="cancelled"),
                    _frame("cancelled", reason=event.reason),
                    DONE,
                ]
            case TextFinished() | ReasoningFinished() | PlanDelta() | StepStarted() | StepFinished():
                return []
            case _:
                assert_never(event)

    def gap(self, first: int, last: int) -> bytes:
        return encode({"type": "gap", "data": {"from": first, "to": last}})

    def _agent_fields(self, event: Event) -> dict[str, Any]:
        """Return the fields that name an event's agent: its depth and, for a sub-agent, its id."""
        return {"agent_depth": self._tree.depth(event.agent_id), **_present(agent_id=event.agent_id)}

    def _token(self, event: TextDelta) -> bytes:
        text = self._paragraphs.separator(event.agent_id, event.message_id) + event.text
        if not event.agent_id:  # a fast path: most frames are tokens
            return b'{"type":"token","data":{"content":%b,"agent_depth":0}}' % encode(text)
        return _frame("token", content=text, **self._agent_fields(event))

    def _error_text(self, event: RunFailed) -> bytes:
        """Return an error message as a token frame, because clients remove a status when the run is done."""
        text = f"{self._paragraphs.separator_of_notice()}Error: {event.message}"
        return _frame("token", content=text, agent_depth=0, fallback_for="error")

    def _reasoning(self, text: str, agent_id: str) -> bytes:
        if not agent_id:
            return b'{"type":"reasoning","data":{"content":%b,"agent_id":"","agent_depth":0}}' % encode(text)
        return _frame("reasoning", content=text, agent_id=agent_id, agent_depth=self._tree.depth(agent_id))

    def _answer(self, event: FinalAnswer) -> list[bytes]:
        """Return the frames of the final answer: its text unless it was streamed, and its parts if it is structured."""
        text = text_of(event.content)
        frames: list[bytes] = []
        if event.message_id is None and text:
            frames.append(
                _frame(
                    "token",
                    content=self._paragraphs.separator("", None) + text,
                    agent_depth=0,
                    **truncation_fields(event),
                )
            )
        if is_structured(event):
            frames.append(
                _frame(
                    "answer",
                    title=event.title,
                    content=event.content,
                    sources=event.sources,
                    **_present(source_links=event.source_links or None, data=event.data),
                    **truncation_fields(event),
                )
            )
        return frames

    def _plan(self, event: Plan) -> bytes:
        content: dict[str, Any] = {"items": event.items} if event.items else {"text": event.text}
        return _frame(
            "plan", **content, update=event.update, **self._agent_fields(event), **_present(truncated=event.truncated)
        )

    def _tool(self, event: ToolStarted | ToolArgsDelta | ToolReady | ToolOutputDelta | ToolFinished) -> list[bytes]:
        tool_id = event.call_id
        match event:
            case ToolStarted():
                self._tool_names[tool_id] = event.name
                args = {} if event.args is None else {"args": event.args}
                return [
                    _frame(
                        "tool_start",
                        tool_id=tool_id,
                        name=event.name,
                        **self._agent_fields(event),
                        **args,
                        **summary_field(event),
                        **truncation_fields(event),
                    )
                ]
            case ToolArgsDelta():
                self._streamed_args.add(tool_id)
                return [_frame("tool_args", tool_id=tool_id, content=event.text)]
            case ToolReady():
                summary = summary_field(event)
                if tool_id not in self._streamed_args:
                    truncation = truncation_fields(event)
                    return [_frame("tool_args", tool_id=tool_id, content=text_of(event.args), **summary, **truncation)]
                self._streamed_args.discard(tool_id)
                return [_frame("tool_args", tool_id=tool_id, content="", **summary)] if summary else []
            case ToolOutputDelta():
                return [_frame("tool_output", tool_id=tool_id, stream=event.stream, content=event.text)]
            case ToolFinished():
                return [
                    _frame(
                        "tool_end",
                        tool_id=tool_id,
                        name=self._tool_names.pop(tool_id, "unknown"),
                        result=text_of(event.result),
                        **self._agent_fields(event),
                        **_present(error=event.error, duration_ms=event.duration_ms),
                        **outcome_field(event),
                        **result_seen_field(event),
                        **truncation_fields(event),
                    )
                ]

    def _approval(self, event: ApprovalRequested | ApprovalResolved) -> list[bytes]:
        status = self._approvals.feed(event)
        description = f"{status.label}: {status.subject.name}"
        agent = self._agent_fields(status.subject)
        fallback = _frame("status", description=description, **agent, fallback_for="approval")
        if isinstance(event, ApprovalRequested):
            asked = {"answer_schema": event.answer_schema} if event.answer_schema is not None else {}
            asked |= {"question": event.question} if event.question else {}
            return [fallback, self._approval_frame(event, event, state="requested", by="", **asked)]
        current = status.request if event.args is None or event.answered else event
        more = _present(reason=event.reason, answered=event.answered)
        if event.answered:
            more["answer"] = event.args.get("value") if isinstance(event.args, dict) else event.args
        return [fallback, self._approval_frame(status.request, current, state=event.decision, by=event.by, **more)]

    def _approval_frame(
        self, request: ApprovalRequested, current: ApprovalRequested | ApprovalResolved, **state: Any
    ) -> bytes:
        """Return the `approval` frame for a request, with the arguments of the event `current`."""
        return _frame(
            "approval",
            approval_id=request.approval_id,
            tool_id=request.call_id,
            name=request.name,
            args=current.args,
            decisions=request.decisions,
            expires_at=request.expires_at,
            summary=current.summary,
            **self._agent_fields(request),
            **truncation_fields(current),
            **state,
        )

    def _citation(self, event: SourceCited) -> bytes:
        truncation = _present(truncated=event.truncated)
        return _frame(
            "citation", title=event.title, url=event.url, text=event.text, **self._agent_fields(event), **truncation
        )

    def _artifact(self, event: ArtifactMade) -> bytes:
        return _frame(
            "artifact",
            artifact_id=event.artifact_id,
            name=event.name,
            media_type=event.media_type,
            size=event.size,
            url=link(self._root, artifact_url(event.artifact_id)),
            **self._agent_fields(event),
            **_present(tool_id=event.call_id),
        )


def _frame(type_: str, **data: Any) -> bytes:
    return encode({"type": type_, "data": data})


def _present(**data: Any) -> dict[str, Any]:
    """Return the keyword arguments that have a value, as a dict."""
    return {key: value for key, value in data.items() if value is not None and value != "" and value is not False}
