"""A run as plain lines, for pipes, files and logs: each line is printed when what it says has happened. Pure."""

from limelight.cli.view.answer import late_title, source_lines, title_of
from limelight.cli.view.approval import asked_lines
from limelight.cli.view.blocks import code_lines, plan_lines, printed_lines, report_lines
from limelight.cli.view.sanitize import one_line, safe
from limelight.cli.view.state import Helper, Note, Story, ending
from limelight.cli.view.tool_row import ENDED, call_line
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
    """Turns Records into lines."""

    def __init__(self) -> None:
        self.story = Story()
        self._spoke: bool | None = None
        """Whether the main agent spoke last; None before anything was said."""

    def feed(self, record: Record) -> list[str]:
        """The lines that this Record adds. What the main agent says stands apart from what it does."""
        event = record.event
        if isinstance(event, RunStarted):
            self.story = Story()
        self.story.feed(record)
        lines = self._lines(event)
        if not lines:
            return []
        speaks = isinstance(event, TextFinished | FinalAnswer) and not event.agent_id
        apart = (speaks or self._spoke) and self._spoke is not None
        self._spoke = speaks
        return ["", *lines] if apart else lines

    def _lines(self, event: AnyEvent) -> list[str]:
        match event:
            case RunStarted():
                asked = f": {one_line(event.input, 100)}" if event.input else ""
                return [f"● {safe(event.agent)}{asked}"]
            case TextFinished():
                return self._said(event)
            case ToolStarted() if event.args is not None:
                return self._call(event.call_id)
            case ToolReady() | ToolFinished():
                return self._call(event.call_id)
            case AgentStarted() | AgentFinished():
                helper = self.story.helper(event.agent_id)
                return [] if helper is None else [self._helper(helper)]
            case Plan():
                return self._indented(event.agent_id, plan_lines(event))
            case ApprovalRequested() | ApprovalResolved():
                asked = self.story.asked(event.approval_id)
                return [] if asked is None else self._indented(event.agent_id, asked_lines(asked))
            case ArtifactMade() | SourceCited():
                note = self.story.things[-1]
                return self._indented(event.agent_id, safe(note.text if isinstance(note, Note) else "").splitlines())
            case Status():
                return self._indented(event.agent_id, [f"· {one_line(event.text, 200)}"])
            case FinalAnswer():
                return self._answer(event)
            case RunFinished() | RunFailed() | RunCancelled():
                return [safe(ending(self.story))]
            case _:
                return []

    def _said(self, event: TextFinished) -> list[str]:
        said, helper = self.story.said(event.message_id), self.story.helper(event.agent_id)
        text = safe(said.text if said else "").strip("\n")
        if helper is None:
            return text.splitlines() if text.strip() else []
        return self._indented(event.agent_id, report_lines(helper.name, text))

    def _answer(self, event: FinalAnswer) -> list[str]:
        """The lines of a text that was streamed are out already."""
        if event.message_id is not None:
            return [*late_title(self.story), *source_lines(self.story)]
        heading = [f"# {title_of(self.story)}", ""] if self.story.title else []
        return [*heading, *safe(self.story.answer).strip("\n").splitlines(), *source_lines(self.story)]

    def _indented(self, agent_id: str, lines: list[str]) -> list[str]:
        return ["  " * self.story.depth(agent_id) + line for line in lines]

    def _helper(self, helper: Helper) -> str:
        space = "  " * (helper.depth - 1)
        mark = {"running": "▸", "done": "✓", "failed": "✗"}[helper.state]
        return f"{space}{mark} agent {safe(helper.name)}"

    def _call(self, call_id: str) -> list[str]:
        call = self.story.call(call_id)
        if call is None:
            return []
        code = code_lines(call)
        line = call_line(call, self.story.owner(call.agent_id), about=not code)
        if call.state not in ENDED:
            return self._indented(call.agent_id, [line, *code])
        printed = printed_lines(call)
        return self._indented(call.agent_id, [f"{line}  printed:", *printed] if printed else [line])
