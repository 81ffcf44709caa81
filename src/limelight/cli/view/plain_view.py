"""The plain view: Records of a run as lines of text, for pipes, files and logs. Pure."""

from limelight.cli.view.render import (
    STATE_MARKS,
    answer_title,
    approval_lines,
    call_line,
    code_lines,
    end_line,
    input_line,
    late_title_lines,
    message_lines,
    output_lines,
    plan_lines,
    source_lines,
)
from limelight.cli.view.run_state import Note, RunState, SubAgent
from limelight.cli.view.sanitize import one_line, sanitize
from limelight.events import (
    AgentFinished,
    AgentStarted,
    AnyEvent,
    ApprovalRequested,
    ApprovalResolved,
    ArtifactMade,
    FinalAnswer,
    Plan,
    Record,
    RunCancelled,
    RunFailed,
    RunFinished,
    RunStarted,
    SourceCited,
    Status,
    TextFinished,
    ToolFinished,
    ToolReady,
    ToolStarted,
)


class PlainView:
    """Converts the Records of a run to lines of text, one Record at a time."""

    def __init__(self) -> None:
        self.state = RunState()
        self._last_was_text: bool | None = None
        """Whether the last printed lines were text of the main agent; None before the first line."""

    def feed(self, record: Record) -> list[str]:
        """Return the lines to print for this Record. An empty line separates the main agent's text from other lines."""
        event = record.event
        if isinstance(event, RunStarted):
            self.state = RunState()
        self.state.feed(record)
        lines = self._lines(event)
        if not lines:
            return []
        is_text = isinstance(event, TextFinished | FinalAnswer) and not event.agent_id
        separated = self._last_was_text is not None and (is_text or self._last_was_text)
        self._last_was_text = is_text
        return ["", *lines] if separated else lines

    def _lines(self, event: AnyEvent) -> list[str]:
        match event:
            case RunStarted():
                question = input_line(event)
                return [f"● {sanitize(event.agent)}{': ' if question else ''}{question}"]
            case TextFinished():
                return self._message(event)
            case ToolStarted() if event.args is not None:
                return self._call(event.call_id)
            case ToolReady() | ToolFinished():
                return self._call(event.call_id)
            case AgentStarted() | AgentFinished():
                sub_agent = self.state.sub_agents.get(event.agent_id)
                return [] if sub_agent is None else [_sub_agent_line(sub_agent)]
            case Plan():
                return self._indent(event.agent_id, plan_lines(event))
            case ApprovalRequested() | ApprovalResolved():
                approval = self.state.approvals.get(event.approval_id)
                return [] if approval is None else self._indent(event.agent_id, approval_lines(approval))
            case ArtifactMade() | SourceCited():
                note = self.state.items[-1]
                return self._indent(event.agent_id, sanitize(note.text if isinstance(note, Note) else "").splitlines())
            case Status():
                return self._indent(event.agent_id, [f"· {one_line(event.text, 200)}"])
            case FinalAnswer():
                return self._answer(event)
            case RunFinished() | RunFailed() | RunCancelled():
                return [sanitize(end_line(self.state))]
            case _:
                return []

    def _message(self, event: TextFinished) -> list[str]:
        message, sub_agent = self.state.messages.get(event.message_id), self.state.sub_agents.get(event.agent_id)
        text = sanitize(message.text if message else "").strip("\n")
        if sub_agent is None:
            return text.splitlines() if text.strip() else []
        return self._indent(event.agent_id, message_lines(sub_agent.name, text))

    def _answer(self, event: FinalAnswer) -> list[str]:
        """Return the lines of the answer. The text of a streamed answer is left out, because it is already printed."""
        if event.message_id is not None:
            return [*late_title_lines(self.state), *source_lines(self.state)]
        heading = [f"# {answer_title(self.state)}", ""] if self.state.title else []
        return [*heading, *sanitize(self.state.answer).strip("\n").splitlines(), *source_lines(self.state)]

    def _indent(self, agent_id: str, lines: list[str]) -> list[str]:
        return ["  " * self.state.depth(agent_id) + line for line in lines]

    def _call(self, call_id: str) -> list[str]:
        call = self.state.calls.get(call_id)
        if call is None:
            return []
        code = code_lines(call)
        line = call_line(call, self.state.owner(call.agent_id), with_argument=not code)
        if not call.ended:
            return self._indent(call.agent_id, [line, *code])
        output = output_lines(call)
        return self._indent(call.agent_id, [f"{line}  printed:", *output] if output else [line])


def _sub_agent_line(sub_agent: SubAgent) -> str:
    return f"{'  ' * (sub_agent.depth - 1)}{STATE_MARKS[sub_agent.state]} agent {sanitize(sub_agent.name)}"
