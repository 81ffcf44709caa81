"""A run drawn live in a terminal with rich: spinners become checks, sub-agents are indented, the answer is markdown.

What is finished scrolls away as ordinary output; only what still moves is redrawn, so that a long run costs no more
than a short one. The caller feeds Records and may leave at any time.
"""

from collections.abc import Iterable
from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markdown import Markdown
from rich.padding import Padding
from rich.spinner import Spinner
from rich.text import Text

from limelight.cli.view.plain import MARKS, call_line
from limelight.cli.view.safe import one_line, safe
from limelight.cli.view.story import OUTPUT_LINES, Call, Helper, Note, Said, Story, Thing, ending
from limelight.events import Record, RunCancelled, RunFinished, RunStarted

STYLES = {"done": "green", "failed": "red", "waiting": "yellow", "running": "cyan"}


class LiveView:
    """Use as `with`. Feeds go to the screen at once; without `moving` only what is finished is drawn."""

    def __init__(self, console: Console, *, moving: bool = True) -> None:
        self.story = Story()
        self._console = console
        self._is_moving = moving
        self._live = Live(console=console, refresh_per_second=12, transient=True)
        self._printed = 0
        """How many things of the story are ordinary output by now."""

    def __enter__(self) -> Self:
        if self._is_moving:
            self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_moving:
            self._live.update(Group())
            self._live.__exit__(kind, error, trace)

    def feed(self, record: Record) -> None:
        if isinstance(record.event, RunStarted):
            self.story, self._printed = Story(), 0
            heading = Text.assemble(("● ", "bold green"), (safe(record.event.agent), "bold"))
            if record.event.input:
                heading.append(f"  {one_line(record.event.input, 100)}", style="dim")
            self._console.print(heading)
        self.story.feed(record)
        if self._is_moving:
            self._live.update(Group(*self._moving()))
        self._print_finished()
        if self.story.terminal is not None:
            self._end()

    def _print_finished(self) -> None:
        """Everything before the first thing that still moves becomes ordinary output."""
        things = self.story.things
        while self._printed < len(things) and self._is_settled(self._printed):
            for line in self._drawn(things[self._printed]):
                self._console.print(line)
            self._printed += 1

    def _is_settled(self, number: int) -> bool:
        thing = self.story.things[number]
        if self.story.terminal is not None:
            return True
        match thing:
            case Said():
                return number < len(self.story.things) - 1
            case Call() | Helper():
                return thing.state in ("done", "failed")
            case Note():
                return True

    def _moving(self) -> Iterable[RenderableType]:
        if self.story.terminal is not None:
            return
        for thing in self.story.things[self._printed :]:
            if isinstance(thing, Said):  # a long text that still grows: its end is what one wants to see
                yield Text("\n".join(safe(thing.text).splitlines()[-max(4, self._console.height - 12) :]))
            else:
                yield from self._drawn(thing)
        for item in self.story.plan:
            style = {"completed": "dim green", "in_progress": "bold"}.get(item.status, "dim")
            yield Text(f"  {MARKS[item.status]} {one_line(item.content, 80)}", style=style)
        if self.story.started is not None:
            yield Spinner("dots", Text(one_line(self.story.status or "working", 80), style="dim"), style="green")

    def _drawn(self, thing: Thing) -> list[RenderableType]:
        match thing:
            case Said():
                return self._said(thing)
            case Helper():
                space = 2 * (thing.depth - 1)
                mark = {"running": "▸", "done": "✓", "failed": "✗"}[thing.state]
                text = Text(f"{mark} {safe(thing.name)}", style="bold " + STYLES[thing.state])
                return [Padding(text, (0, 0, 0, space))]
            case Note():
                return [
                    Padding(Text(safe(thing.text), style="magenta"), (0, 0, 0, 2 * self.story.depth(thing.agent_id)))
                ]
            case Call():
                return self._call(thing)

    def _said(self, said: Said) -> list[RenderableType]:
        if not said.text.strip():
            return []
        space = 2 * self.story.depth(said.agent_id)
        if said.agent_id:
            return [Padding(Text(safe(said.text.strip()), style="dim"), (0, 0, 0, space))]
        return [Markdown(safe(said.text))]

    def _call(self, call: Call) -> list[RenderableType]:
        space = 2 * self.story.depth(call.agent_id)
        line = Text(call_line(call), style=STYLES[call.state] if call.state != "done" else "")
        drawn: list[RenderableType] = [Padding(line, (0, 0, 0, space))]
        if call.state == "running":
            drawn = [Padding(Spinner("dots", Text(call_line(call)[2:]), style="cyan"), (0, 0, 0, space))]
        output = safe(call.output).splitlines()
        if output:
            shown = output[-OUTPUT_LINES:]
            drawn += [Padding(Text(f"│ {text}", style="dim"), (0, 0, 0, space + 2)) for text in shown]
        return drawn

    def _end(self) -> None:
        if self.story.answer:
            self._console.print(Markdown(safe(self.story.answer)))
        ended = self.story.terminal
        style = "green" if isinstance(ended, RunFinished) else "yellow" if isinstance(ended, RunCancelled) else "red"
        self._console.print(Text(safe(ending(self.story)), style=style))
