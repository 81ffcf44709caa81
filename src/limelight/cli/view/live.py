"""A run drawn live in a terminal with rich: spinners become checks, sub-agents are indented, the answer is markdown.

What is finished scrolls away as ordinary output; only what still moves is redrawn, and of that only what fits on the
screen, so that a long run costs no more than a short one. The caller feeds Records and may leave at any time.

A question to the person at the terminal is the last thing that moves: the run goes on above it, and it leaves no trace.
"""

import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.control import Control
from rich.live import Live
from rich.padding import Padding
from rich.segment import ControlType, Segment
from rich.spinner import Spinner
from rich.text import Text

from limelight.cli.view.answer import late_title, source_lines, title_of
from limelight.cli.view.approval import asked_lines
from limelight.cli.view.blocks import MARKS
from limelight.cli.view.markdown import Prose
from limelight.cli.view.prompt import Question
from limelight.cli.view.sanitize import one_line, safe
from limelight.cli.view.state import OUTPUT_LINES, Asked, Call, Helper, Note, Planned, Said, Story, Thing, ending
from limelight.cli.view.tool_row import ENDED, call_rows
from limelight.events import Record, RunCancelled, RunFinished, RunStarted

STYLES = {"done": "green", "failed": "red", "waiting": "yellow", "running": "cyan", "unseen": "dim"}
ASKED_STYLES = {None: "yellow", "approve": "green", "edit": "green", "reject": "red"}
REFRESHES = 12
EMPTY_LINE = Control(ControlType.CARRIAGE_RETURN, (ControlType.ERASE_IN_LINE, 2))
MARGIN = 2
"""Lines of the screen that stay free, so that the moving part never scrolls."""


class LiveView:
    """Use as `with`. Feeds go to the screen at once; without `moving` only what is finished is drawn."""

    def __init__(self, console: Console, *, moving: bool = True) -> None:
        self.story = Story()
        self.question: Question | None = None
        """What the person at this terminal is asked right now."""
        self._console = console
        self._moving = moving
        self._live: Live | None = None
        self._missed: list[Record] | None = None
        """What came while another program had the terminal."""
        self._printed = 0
        """How many things of the story are ordinary output by now."""
        self._spinners: dict[str, Spinner] = {}
        self._lock = threading.RLock()
        self._turning = threading.Event()
        """Set when nothing moves any more."""

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._printed = len(self.story.things)
        self._stop()

    def _start(self) -> None:
        if self._moving:  # a new one each time: it would remember how many lines it had drawn before
            self._live = Live(Moving(self), console=self._console, auto_refresh=False, transient=True)
            self._live.start()
            self._turning = threading.Event()
            threading.Thread(target=self._turn, args=(self._live, self._turning), daemon=True).start()

    def _turn(self, live: Live, over: threading.Event) -> None:
        """Let spinners turn. The lock is ours, because Live's own thread redraws while something else is printed, and
        then one of the two counts the lines wrong: a row is lost, or stands there twice."""
        while not over.wait(1 / REFRESHES):
            with self._lock:
                if not over.is_set():
                    live.refresh()

    def _stop(self) -> None:
        with self._lock:
            self._turning.set()
            if self._live is not None:
                self._live.stop()
                self._live = None

    @contextmanager
    def away(self) -> Generator[None]:
        """An editor has the terminal for a while. What comes meanwhile is drawn afterwards."""
        self._stop()
        self._missed = []
        self._console.print(Text("Waiting for the editor …", "dim"), end="")
        try:
            yield
        finally:
            missed, self._missed = self._missed, None
            self._console.control(EMPTY_LINE)
            self._start()
            for record in missed:
                self.feed(record)

    @contextmanager
    def asking(self, question: Question) -> Generator[None]:
        """Show a question for as long as the block lasts."""
        self.question = question
        self.refresh()
        try:
            yield
        finally:
            self.question = None
            self.refresh()

    def refresh(self) -> None:
        """Draw what moves at once, for a person who types."""
        with self._lock:
            if self._live is not None:
                self._live.refresh()

    def print(self, text: Text) -> None:
        """Ordinary output, above what moves."""
        with self._lock:
            self._console.print(text)

    def feed(self, record: Record) -> None:
        if self._missed is not None:
            self._missed.append(record)
            return
        with self._lock:
            self._feed(record)

    def _feed(self, record: Record) -> None:
        if isinstance(record.event, RunStarted):
            self.story, self._printed, self._spinners = Story(), 0, {}
            heading = Text.assemble(("● ", "bold green"), (safe(record.event.agent), "bold"))
            if record.event.input:
                heading.append(f"  {one_line(record.event.input, 100)}", style="dim")
            self._console.print(heading)
        self.story.feed(record)
        self._print_finished()
        if self.story.terminal is not None:
            self._end()

    def _print_finished(self) -> None:
        """Everything before the first thing that still moves becomes ordinary output; plans do before the last word."""
        things = self.story.things
        while self._printed < len(things) and self._is_settled(self._printed):
            thing = things[self._printed]
            if self.story.terminal is not None and thing is things[-1] and isinstance(thing, Said):
                self._print_plans()
            self._printed += 1  # before it is printed, because printing redraws what moves
            for line in self._drawn(thing):
                self._console.print(line)

    def _is_settled(self, number: int) -> bool:
        thing = self.story.things[number]
        if self.story.terminal is not None:
            return True
        match thing:
            case Said():
                return number < len(self.story.things) - 1
            case Planned():
                return not thing.is_growing
            case Call() | Helper():
                return thing.state in ENDED
            case Asked():
                return thing.decision is not None
            case Note():
                return True

    def _print_plans(self) -> None:
        """What became of them, once."""
        lines = list(self._plans())
        self.story.plans = {}
        for line in lines:
            self._console.print(line)

    def moving(self) -> Iterator[RenderableType]:
        """What is drawn again and again: things that go on, the plan, what the agent says it does."""
        if self.story.terminal is not None or self.story.started is None:
            return
        for thing in self.story.things[self._printed :]:
            yield from self._drawn(thing, growing=True)
        yield from self._plans()
        if self.question is None or self.story.status:
            yield self._spinner("", one_line(self.story.status or "working", 200), "dim")
        if self.question is not None:
            yield from self.question.draw(self._console.width, self._console.height - MARGIN, time.time() * 1000)

    def _plans(self) -> Iterator[RenderableType]:
        for agent_id, items in self.story.plans.items():
            depth = self.story.depth(agent_id)
            yield _indented(_line(self._plan_of(agent_id), "dim"), depth)
            for item in items:
                style = {"completed": "dim green", "in_progress": "bold"}.get(item.status, "dim")
                yield _indented(_line(f"{MARKS[item.status]} {one_line(item.content, 200)}", style), depth + 1)

    def _plan_of(self, agent_id: str) -> str:
        helper = self.story.helper(agent_id)
        return "Plan:" if helper is None else f"Plan of {safe(helper.name)}:"

    def _drawn(self, thing: Thing, *, growing: bool = False) -> list[RenderableType]:
        match thing:
            case Said():
                return self._said(thing, growing)
            case Helper():
                mark = {"running": "▸", "done": "✓", "failed": "✗"}[thing.state]
                line = _line(f"{mark} {safe(thing.name)}", "bold " + STYLES[thing.state])
                return [_indented(line, thing.depth - 1)]
            case Asked():
                return self._asked(thing, self.story.depth(thing.agent_id), named=True)
            case Planned():
                return self._planned(thing)
            case Note():
                return [_indented(_line(safe(thing.text), "magenta"), self.story.depth(thing.agent_id))]
            case Call():
                return self._call(thing)

    def _said(self, said: Said, growing: bool) -> list[RenderableType]:
        text = safe(said.text).strip()
        if not text:
            return []
        if said.agent_id:
            helper, depth = self.story.helper(said.agent_id), self.story.depth(said.agent_id)
            name = safe(helper.name) if helper is not None else "agent"
            return (
                [_indented(Text(f"{name}: {text}", "dim"), depth)] if growing else self._quiet(f"{name}:", text, depth)
            )
        return [Text(text) if growing else Prose(text)]  # half a markdown jumps while it grows

    def _planned(self, plan: Planned) -> list[RenderableType]:
        name, depth = self._plan_of(plan.agent_id), self.story.depth(plan.agent_id)
        if not plan.is_growing:
            return self._quiet(name, plan.text, depth)
        return [_indented(_line(name, "dim"), depth), _indented(Text(safe(plan.text).strip(), "dim"), depth + 1)]

    def _quiet(self, name: str, text: str, depth: int) -> list[RenderableType]:
        """Prose that is not the answer, below the name of what it is."""
        return [_indented(_line(name, "dim"), depth), _indented(Prose(safe(text).strip(), "dim"), depth + 1)]

    def _call(self, call: Call) -> list[RenderableType]:
        depth = self.story.depth(call.agent_id)
        text, *remark = call_rows(call, self.story.owner(call.agent_id), self._console.width - 2 * depth)
        if call.state == "running":
            head: RenderableType = self._spinner(call.call_id, text[2:], "", depth)
        else:
            head = _line(text, "" if call.state == "done" else STYLES[call.state])
        below = (_indented(Text(line, STYLES[call.state]), depth + 1) for line in remark)
        asked = (line for asked in call.asked for line in self._asked(asked, depth + 1, named=False))
        output = safe(call.output).splitlines()[-OUTPUT_LINES:]
        printed = (_indented(_line(f"│ {line}", "dim"), depth + 1) for line in output)
        return [_indented(head, depth), *below, *asked, *printed]

    def _asked(self, asked: Asked, depth: int, *, named: bool) -> list[RenderableType]:
        if asked.decision is None and self.question is not None and self.question.approval_id == asked.approval_id:
            return []  # it stands below, in full
        first, *more = asked_lines(asked, named=named)
        rows = [_indented(_line(first, ASKED_STYLES[asked.decision]), depth)]
        return [*rows, *(_indented(_line(line, "dim"), depth) for line in more)]

    def _spinner(self, key: str, text: str, style: str, depth: int = 0) -> Spinner:
        """One that goes on turning from where it was; its text is cut, because it would wrap."""
        text = one_line(text, max(10, self._console.width - 2 * depth - 3))
        spinner = self._spinners.setdefault(key, Spinner("dots", style="green" if not key else "cyan"))
        spinner.update(text=_line(text, style))
        return spinner

    def _end(self) -> None:
        self._print_plans()
        self._print_answer()
        ended = self.story.terminal
        style = "green" if isinstance(ended, RunFinished) else "yellow" if isinstance(ended, RunCancelled) else "red"
        self._console.print(Text(safe(ending(self.story)), style=style))

    def _print_answer(self) -> None:
        """What of it is not there yet."""
        if self.story.answer:
            if self.story.title:
                self._console.print(Text(title_of(self.story), "bold underline"))
            self._console.print(Prose(safe(self.story.answer)))
        else:
            for line in late_title(self.story):
                self._console.print(Text(line, "bold"))
        for line in source_lines(self.story):
            self._console.print(Text(line, "dim"), soft_wrap=True)  # an address that is broken cannot be followed


class Moving:
    """The end of what moves, as much as the screen has room for."""

    def __init__(self, view: LiveView) -> None:
        self._view = view

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = console.render_lines(Group(*self._view.moving()), options.update(height=None), pad=False)
        for line in lines[-max(1, console.height - MARGIN) :]:
            yield from line
            yield Segment.line()


def _line(text: str, style: str) -> Text:
    """One line, cut at the edge of the screen."""
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")


def _indented(thing: RenderableType, depth: int) -> Padding:
    return Padding(thing, (0, 0, 0, 2 * depth))
