"""The display with one closed block for all steps, and the one with the answer alone."""

import html
from collections.abc import Callable

from openwebui.parts.frames import Frame, is_main
from openwebui.parts.output_items import Items, message_item, titled
from openwebui.parts.run_state import Call, Story
from openwebui.parts.text import inert, outcome, preview, tools_word
from openwebui.parts.types import Chunk

REDRAW_SECONDS = 0.5
CHARS_PER_SECOND = 200_000
"""Each change sends the whole block again, so a large one is sent less often."""


class CollapseDisplay:
    """One closed block with all steps, and the answer below it. `show_steps=False` is the answer alone."""

    def __init__(
        self, story: Story, run_id: Callable[[], str], clock: Callable[[], float], *, show_steps: bool
    ) -> None:
        self._story = story
        self._run_id = run_id
        self._show_steps = show_steps
        self._items = Items()
        self._steps: list[str] = []
        self._text = ""
        self._clock = clock
        self._is_stale = False
        self._next_draw = 0.0

    def flush(self) -> list[Chunk]:
        if self._is_stale and self._clock() >= self._next_draw:
            self._draw()
        return self._items.flush()

    def feed(self, frame: Frame) -> None:
        match frame.type:
            case "token" if is_main(frame):
                self._say(frame.text("content"))
            case "tool_start" if call := self._story.call(frame):
                if not call.depth:
                    self._put_away()
                self._touch()
            case "tool_end" if call := self._story.call(frame):
                self._steps.append(tool_step(call, preview(outcome(call.output))))
                self._touch()
            case "answer":
                titled(self._items, self._answer_id, frame)
            case _:
                pass

    def close(self) -> None:
        for call in self._story.calls.values():
            if not call.done:
                call.end("interrupted", "interrupted")
                self._steps.append(tool_step(call, call.output))
        self._draw()
        if self._answer_id in self._items:
            self._items.change(self._answer_id, status="completed")

    def _say(self, piece: str) -> None:
        piece = piece if self._text else piece.lstrip("\n")
        if piece:
            self._reserve()
            self._text += piece
            self._items.grow(self._answer_id, piece)

    def _put_away(self) -> None:
        """The text so far was not the answer: it was said before a tool."""
        if self._text.strip():
            self._steps.append(f"**🤖 AI:** {html.escape(self._text.strip(), quote=False)}")
        if self._text:
            self._items.put(message_item(self._answer_id, ""))
        self._text = ""

    def _reserve(self) -> None:
        """The block comes first, so it has its place before there is anything in it."""
        if self._answer_id not in self._items:
            if self._show_steps:
                self._items.put(message_item(self._block_id, "", "completed"))
            self._items.put(message_item(self._answer_id, ""))

    def _touch(self) -> None:
        if self._show_steps:
            self._reserve()
            self._is_stale = True

    def _draw(self) -> None:
        """What still runs stands last; Open WebUI draws no block that has nothing in it."""
        calls = self._story.calls.values()
        if calls and self._show_steps:
            self._reserve()
            steps = [*self._steps, *(tool_step(call, "⏳") for call in calls if not call.done)]
            block = steps_block(len(calls), steps)
            self._items.put(message_item(self._block_id, block, "completed"))
            self._next_draw = self._clock() + max(REDRAW_SECONDS, len(block) / CHARS_PER_SECOND)
        self._is_stale = False

    @property
    def _block_id(self) -> str:
        return f"{self._run_id()}.steps"

    @property
    def _answer_id(self) -> str:
        return f"{self._run_id()}.answer"


def tool_step(call: Call, text: str) -> str:
    return f"**🔧 {inert(call.title)}:** {inert(text)}"


def steps_block(count: int, steps: list[str]) -> str:
    body = "\n\n".join(steps)
    return f"<details>\n<summary>🔍 Execution Steps ({tools_word(count)})</summary>\n\n{body}\n\n</details>\n\n"
