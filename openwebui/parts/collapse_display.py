"""The displays `collapse` and `plain`: a block with all steps and the answer, or only the answer."""

import html
from collections.abc import Callable

from openwebui.parts.frames import Frame
from openwebui.parts.output_items import Chunk, OutputItems, message_item
from openwebui.parts.run_state import RunState, ToolCall, outcome_title
from openwebui.parts.text_format import escape_line, preview, result_text, tool_count

REDRAW_SECONDS = 0.5
REDRAW_CHARS_PER_SECOND = 200_000
"""Characters of the block that may be sent per second. Each redraw sends the complete block, so it limits redraws."""


class CollapseDisplay:
    """Turns frames into two output items: the block with the steps, unless `show_steps` is False, and the answer."""

    def __init__(
        self, state: RunState, run_id: Callable[[], str], clock: Callable[[], float], *, show_steps: bool
    ) -> None:
        self._state = state
        self._run_id = run_id
        self._clock = clock
        self._show_steps = show_steps
        self._items = OutputItems()
        self._steps: list[str] = []
        self._text = ""
        self._is_outdated = False
        self._next_redraw = 0.0

    def flush(self) -> list[Chunk]:
        if self._is_outdated and self._clock() >= self._next_redraw:
            self._redraw()
        return self._items.flush()

    def feed(self, frame: Frame) -> None:
        match frame.type:
            case "token" if frame.is_main_agent:
                self._add_text(frame.text("content"))
            case "tool_start" if call := self._state.call(frame):
                if not call.depth:
                    self._turn_text_into_step()
                self._schedule_redraw()
            case "tool_end" if call := self._state.call(frame):
                self._steps.append(tool_step(call, preview(result_text(call.output))))
                self._schedule_redraw()
            case "answer":
                self._items.add_title(self._answer_id, frame)
            case _:
                pass

    def close(self) -> None:
        for call in self._state.calls.values():
            if not call.done:
                call.finish("interrupted", "interrupted")
                self._steps.append(tool_step(call, call.output))
        self._redraw()
        if self._answer_id in self._items:
            self._items.update(self._answer_id, status="completed")

    def _add_text(self, text: str) -> None:
        text = text if self._text else text.lstrip("\n")
        if text:
            self._put_items()
            self._text += text
            self._items.append(self._answer_id, text)

    def _turn_text_into_step(self) -> None:
        """Move the current text into the block of steps, because text before a tool call is not the answer."""
        if self._text.strip():
            self._steps.append(f"**🤖 AI:** {html.escape(self._text.strip(), quote=False)}")
        if self._text:
            self._items.put(message_item(self._answer_id, ""))
        self._text = ""

    def _put_items(self) -> None:
        """Create the block and the answer, in this order, if they do not exist."""
        if self._answer_id not in self._items:
            if self._show_steps:
                self._items.put(message_item(self._block_id, "", "completed"))
            self._items.put(message_item(self._answer_id, ""))

    def _schedule_redraw(self) -> None:
        if self._show_steps:
            self._put_items()
            self._is_outdated = True

    def _redraw(self) -> None:
        """Write the block of steps, with running calls last. Without calls the block stays empty, and is not shown."""
        calls = self._state.calls.values()
        if calls and self._show_steps:
            self._put_items()
            steps = [*self._steps, *(tool_step(call, "⏳") for call in calls if not call.done)]
            block = steps_block(len(calls), steps)
            self._items.put(message_item(self._block_id, block, "completed"))
            self._next_redraw = self._clock() + max(REDRAW_SECONDS, len(block) / REDRAW_CHARS_PER_SECOND)
        self._is_outdated = False

    @property
    def _block_id(self) -> str:
        return f"{self._run_id()}.steps"

    @property
    def _answer_id(self) -> str:
        return f"{self._run_id()}.answer"


def tool_step(call: ToolCall, text: str) -> str:
    return f"**🔧 {escape_line(outcome_title(call.title, call.outcome))}:** {escape_line(text)}"


def steps_block(count: int, steps: list[str]) -> str:
    body = "\n\n".join(steps)
    return f"<details>\n<summary>🔍 Execution Steps ({tool_count(count)})</summary>\n\n{body}\n\n</details>\n\n"
