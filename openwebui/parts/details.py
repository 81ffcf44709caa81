"""The display for old versions of Open WebUI: text that only grows."""

import html
import json
from collections.abc import Callable

from openwebui.parts.frames import Frame, is_main
from openwebui.parts.run_state import Call, Story, row_title
from openwebui.parts.text import outcome
from openwebui.parts.types import Chunk


class DetailsDisplay:
    """Text that only grows, with a block for each finished tool: what old versions of Open WebUI can draw."""

    def __init__(self, story: Story, clock: Callable[[], float], *, blocks: bool = True) -> None:
        self._story = story
        self._clock = clock
        self._blocks = blocks
        self._new = ""
        self._at_line_start = True
        self._thought = ""
        self._thought_at = 0.0

    def flush(self) -> list[Chunk]:
        """Open WebUI takes a chunk that begins like an event for one, so such a text comes in two."""
        new, self._new = self._new, ""
        pieces = [new[:1], new[1:]] if new.startswith("data:") else [new]
        return [piece for piece in pieces if piece]

    def feed(self, frame: Frame) -> None:
        match frame.type:
            case "token" if is_main(frame):
                self._end_thought()
                text = frame.text("content")
                self._add(text.lstrip("\n") if self._at_line_start else text)
            case "reasoning" if is_main(frame) and self._blocks:
                self._thought_at = self._thought_at or self._clock()
                self._thought += frame.text("content")
            case "tool_start":
                self._end_thought()
            case "tool_end" if (call := self._story.call(frame)) and self._blocks:
                self._add_block(tool_block(call))
            case _:
                pass

    def close(self) -> None:
        self._end_thought()
        for call in self._story.calls.values():
            if not call.done:
                call.end("Error: interrupted", "interrupted")
                if self._blocks:
                    self._add_block(tool_block(call))

    def _end_thought(self) -> None:
        if self._thought.strip():
            seconds = round(self._clock() - self._thought_at)
            quoted = "\n".join(f"> {html.escape(line, quote=False)}" for line in self._thought.strip().splitlines())
            summary = f"<summary>Thought for {seconds} seconds</summary>"
            self._add_block(
                f'<details type="reasoning" done="true" duration="{seconds}">\n{summary}\n{quoted}\n</details>\n\n'
            )
        self._thought, self._thought_at = "", 0.0

    def _add_block(self, block: str) -> None:
        self._add(block if self._at_line_start else f"\n\n{block}")

    def _add(self, text: str) -> None:
        if text:
            self._new += text
            self._at_line_start = text.endswith("\n\n")


def tool_block(call: Call) -> str:
    """A finished call in the form of the Agno documents. As JSON nothing in it breaks the line."""
    name = row_title(call, call.title)
    values = {"id": call.tool_id, "name": name, "arguments": json.dumps(call.parameters, ensure_ascii=False)}
    values["result"] = json.dumps(outcome(call.output), ensure_ascii=False)
    attributes = " ".join(f'{key}="{attribute(value)}"' for key, value in values.items())
    return f'<details type="tool_calls" done="true" {attributes}>\n<summary>Tool Executed</summary>\n</details>\n\n'


def attribute(value: str) -> str:
    """Open WebUI puts in what two braces stand for before it reads anything else, so there must not be two."""
    return html.escape(value, quote=True).replace("{{", "{&#123;")
