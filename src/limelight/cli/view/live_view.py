"""The live view: draws a run in a terminal with rich. Running calls have a spinner, the answer is rendered Markdown.

Finished items are printed once and scroll up. Only items that still change are redrawn, and only as many of their lines
as fit on the screen, so that a long run costs no more than a short one. The prompt of an approval is drawn last, below
the run, and removed after the decision.
"""

import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import ClassVar, Self

from markdown_it import MarkdownIt
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.control import Control
from rich.live import Live
from rich.markdown import Heading, Markdown, MarkdownElement
from rich.padding import Padding
from rich.segment import ControlType, Segment
from rich.spinner import Spinner
from rich.text import Text

from limelight.cli.view.approval_prompt import ApprovalPrompt
from limelight.cli.view.render import (
    STATE_MARKS,
    TODO_MARKS,
    answer_title,
    approval_lines,
    call_rows,
    end_line,
    input_line,
    late_title_lines,
    source_lines,
)
from limelight.cli.view.run_state import Approval, Item, Message, Note, PlanText, RunState, SubAgent, ToolCall
from limelight.cli.view.sanitize import one_line, sanitize
from limelight.events import Record, RunCancelled, RunFinished, RunStarted

STYLES = {
    "done": "green",
    "failed": "red",
    "stopped": "dim",
    "rejected": "dim",
    "waiting": "yellow",
    "running": "cyan",
    "unseen": "dim",
}
DECISION_STYLES = {None: "yellow", "approve": "green", "edit": "green", "reject": "red"}
OUTPUT_LINES = 6
REFRESHES_PER_SECOND = 12
CLEAR_LINE = Control(ControlType.CARRIAGE_RETURN, (ControlType.ERASE_IN_LINE, 2))
MARGIN = 2
"""Number of screen lines that the redrawn part leaves free, so that it never scrolls."""


class LeftHeading(Heading):
    """A Markdown heading that is left-aligned, because centred headings look wrong in indented text."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        yield self.text


class Prose(Markdown):
    """Markdown that shows HTML tags as text instead of dropping them."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {**Markdown.elements, "heading_open": LeftHeading}

    def __init__(self, markup: str, style: str = "none") -> None:
        super().__init__(markup, style=style)
        parser = MarkdownIt("commonmark", {"html": False}).enable("strikethrough").enable("table")
        self.parsed = parser.parse(markup)


class LiveView:
    """Draws a run in the terminal, Record by Record. Use as `with`; outside of it, only finished items are drawn."""

    def __init__(self, console: Console) -> None:
        self.state = RunState()
        self.prompt: ApprovalPrompt | None = None
        self._console = console
        self._live: Live | None = None
        self._buffered: list[Record] | None = None
        """Records that were fed while another program used the terminal."""
        self._printed = 0
        """The number of items that are finished and printed, so they are no longer redrawn."""
        self._spinners: dict[str, Spinner] = {}
        self._lock = threading.RLock()

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._printed = len(self.state.items)
        self._stop()

    def _start(self) -> None:
        # A Live is not reused, because it remembers how many lines it has drawn.
        self._live = Live(self, console=self._console, auto_refresh=False, transient=True)
        self._live.start()
        threading.Thread(target=self._animate, args=(self._live,), daemon=True).start()

    def _animate(self, live: Live) -> None:
        """Redraw the spinners until the view stops. Runs in a thread.

        rich's own refresh thread is not used, because it does not take `_lock`: it would redraw while an item is
        printed, and lose or repeat a row.
        """
        while self._live is live:
            self.refresh()
            time.sleep(1 / REFRESHES_PER_SECOND)

    def _stop(self) -> None:
        with self._lock:
            if self._live is not None:
                self._live.stop()
                self._live = None

    @contextmanager
    def suspended(self) -> Generator[None]:
        """Context manager: stops drawing while an editor uses the terminal. New Records are drawn afterwards."""
        self._stop()
        self._buffered = []
        self._console.print(Text("Waiting for the editor …", "dim"), end="")
        try:
            yield
        finally:
            buffered, self._buffered = self._buffered, None
            self._console.control(CLEAR_LINE)
            self._start()
            for record in buffered:
                self.feed(record)

    @contextmanager
    def prompting(self, prompt: ApprovalPrompt) -> Generator[None]:
        """Context manager: shows the prompt of an approval below the run."""
        self.prompt = prompt
        self.refresh()
        try:
            yield
        finally:
            self.prompt = None
            self.refresh()

    def refresh(self) -> None:
        """Redraw the screen at once, for example after a key press."""
        with self._lock:
            if self._live is not None:
                self._live.refresh()

    def print(self, text: Text) -> None:
        """Print a text above the redrawn part of the screen."""
        with self._lock:
            self._console.print(text)

    def feed(self, record: Record) -> None:
        """Update the state of the run with one Record, and draw the changes."""
        if self._buffered is not None:
            self._buffered.append(record)
            return
        with self._lock:
            self._feed(record)

    def _feed(self, record: Record) -> None:
        if isinstance(record.event, RunStarted):
            self.state, self._printed, self._spinners = RunState(), 0, {}
            heading = Text.assemble(("● ", "bold green"), (sanitize(record.event.agent), "bold"))
            if question := input_line(record.event):
                heading.append(f"  {question}", style="dim")
            self._console.print(heading)
        self.state.feed(record)
        self._print_finished()
        if self.state.terminal is not None:
            self._print_end()

    def _print_finished(self) -> None:
        """Print all items of the run before the first unfinished one. Printed items are not redrawn.

        At the end of the run, the todos are printed before the last message.
        """
        items = self.state.items
        while self._printed < len(items) and self._is_finished(self._printed):
            item = items[self._printed]
            if self.state.terminal is not None and item is items[-1] and isinstance(item, Message):
                self._print_todos()
            self._printed += 1  # before printing, because printing redraws the items that are not printed
            self._print_rows(self._draw(item))

    def _is_finished(self, number: int) -> bool:
        item = self.state.items[number]
        if self.state.terminal is not None:
            return True
        match item:
            case Message():
                return number < len(self.state.items) - 1
            case PlanText():
                return not item.streaming
            case ToolCall():
                return item.ended
            case SubAgent():
                return item.state != "running"
            case Approval():
                return item.decision is not None
            case Note():
                return True

    def _print_todos(self) -> None:
        """Print the final state of the todos, and clear them."""
        rows = list(self._draw_todos())
        self.state.todos = {}
        self._print_rows(rows)

    def _print_rows(self, rows: list[RenderableType]) -> None:
        for row in rows:
            self._console.print(Group(row))  # without the Group, rich would wrap a Text in spite of its `no_wrap`

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the lines of unfinished items, todos and the prompt; only the last ones if the screen is too small."""
        lines = console.render_lines(Group(*self._draw_unfinished()), options.update(height=None), pad=False)
        for line in lines[-max(1, console.height - MARGIN) :]:
            yield from line
            yield Segment.line()

    def _draw_unfinished(self) -> Iterator[RenderableType]:
        if self.state.terminal is not None or self.state.started is None:
            return
        for item in self.state.items[self._printed :]:
            yield from self._draw(item, streaming=True)
        yield from self._draw_todos()
        if self.prompt is None or self.state.status:
            yield self._spinner("", self.state.status or "working", "dim", self._console.width)
        if self.prompt is not None:
            yield from self.prompt.draw(self._console.width, self._console.height - MARGIN, time.time() * 1000)

    def _draw_todos(self) -> Iterator[RenderableType]:
        for agent_id, items in self.state.todos.items():
            depth = self.state.depth(agent_id)
            yield _indent(_line(self._plan_title(agent_id), "dim"), depth)
            for item in items:
                style = {"completed": "dim green", "in_progress": "bold"}.get(item.status, "dim")
                yield _indent(_line(f"{TODO_MARKS[item.status]} {one_line(item.content, 200)}", style), depth + 1)

    def _plan_title(self, agent_id: str) -> str:
        sub_agent = self.state.sub_agents.get(agent_id)
        return "Plan:" if sub_agent is None else f"Plan of {sanitize(sub_agent.name)}:"

    def _draw(self, item: Item, *, streaming: bool = False) -> list[RenderableType]:
        depth = item.depth - 1 if isinstance(item, SubAgent) else self.state.depth(item.agent_id)
        return [_indent(row, depth) for row in self._rows(item, self._console.width - 2 * depth, streaming)]

    def _rows(self, item: Item, width: int, streaming: bool) -> list[RenderableType]:
        """Return the rows that draw an item of the run, not indented."""
        match item:
            case Message():
                return self._message_rows(item, streaming)
            case SubAgent():
                return [_line(f"{STATE_MARKS[item.state]} {sanitize(item.name)}", "bold " + STYLES[item.state])]
            case Approval():
                return self._approval_rows(item, with_name=True)
            case PlanText():
                text = sanitize(item.text).strip()
                body = Text(text, "dim") if item.streaming else Prose(text, "dim")
                return _titled(self._plan_title(item.agent_id), body)
            case Note():
                return [_line(sanitize(item.text), "magenta")]
            case ToolCall():
                return self._call_rows(item, width)

    def _message_rows(self, message: Message, streaming: bool) -> list[RenderableType]:
        text = sanitize(message.text).strip()
        if not text:
            return []
        if not message.agent_id:
            return [Text(text) if streaming else Prose(text)]  # the layout of incomplete Markdown would jump
        name = sanitize(self.state.agent_name(message.agent_id))
        return [Text(f"{name}: {text}", "dim")] if streaming else _titled(f"{name}:", Prose(text, "dim"))

    def _call_rows(self, call: ToolCall, width: int) -> list[RenderableType]:
        text, *outcome = call_rows(call, self.state.owner(call.agent_id), width)
        if call.state == "running":
            head: RenderableType = self._spinner(call.call_id, text[2:], "", width)
        else:
            head = _line(text, "" if call.state == "done" else STYLES[call.state])
        below = [Text(line, STYLES[call.state]) for line in outcome]
        approvals = [row for one in call.approvals for row in self._approval_rows(one, with_name=False)]
        code = [_line(f"> {line}", "dim") for line in sanitize(call.streamed_code).splitlines()[-OUTPUT_LINES:]]
        output = [_line(f"│ {line}", "dim") for line in sanitize(call.output).splitlines()[-OUTPUT_LINES:]]
        return [head, *(_indent(row, 1) for row in (*below, *approvals, *code, *output))]

    def _approval_rows(self, approval: Approval, *, with_name: bool) -> list[RenderableType]:
        prompted = self.prompt is not None and self.prompt.request.approval_id == approval.approval_id
        if approval.decision is None and prompted:
            return []  # the prompt shows this request
        first, *more = approval_lines(approval, with_name=with_name)
        return [_line(first, DECISION_STYLES[approval.decision]), *(_line(line, "dim") for line in more)]

    def _spinner(self, key: str, text: str, style: str, width: int) -> Spinner:
        """Return the spinner of a call with this text, cut to one line.

        Each call keeps one spinner, so that its animation continues.
        """
        spinner = self._spinners.setdefault(key, Spinner("dots", style="green" if not key else "cyan"))
        spinner.update(text=_line(one_line(text, max(10, width - 3)), style))
        return spinner

    def _print_end(self) -> None:
        self._print_todos()
        self._print_answer()
        ended = self.state.terminal
        style = "green" if isinstance(ended, RunFinished) else "yellow" if isinstance(ended, RunCancelled) else "red"
        self._console.print(Text(sanitize(end_line(self.state)), style=style))

    def _print_answer(self) -> None:
        """Print the answer with its title and sources. The text of a streamed answer was printed before."""
        if self.state.answer:
            if self.state.title:
                self._console.print(Text(answer_title(self.state), "bold underline"))
            self._console.print(Prose(sanitize(self.state.answer)))
        else:
            for line in late_title_lines(self.state):
                self._console.print(Text(line, "bold"))
        for line in source_lines(self.state):
            self._console.print(Text(line, "dim"), soft_wrap=True)  # a wrapped URL cannot be opened


def _line(text: str, style: str) -> Text:
    """Return a text as one line that is cut at the edge of the screen."""
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")


def _indent(renderable: RenderableType, depth: int) -> RenderableType:
    return Padding(renderable, (0, 0, 0, 2 * depth)) if depth else renderable


def _titled(title: str, body: RenderableType) -> list[RenderableType]:
    """Return a title and, indented below it, a body."""
    return [_line(title, "dim"), _indent(body, 1)]
