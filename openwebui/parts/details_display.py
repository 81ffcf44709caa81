"""The display `details`, for Open WebUI before 0.8: text with a block for each finished call."""

import html
import json
from collections.abc import Callable

from openwebui.parts.frames import Frame
from openwebui.parts.output_items import Chunk
from openwebui.parts.run_state import RunState, ToolCall, finished_title
from openwebui.parts.text_format import result_text


class DetailsDisplay:
    """Turns frames into text with a block for each finished call. Clients of Open WebUI's API get no `blocks`."""

    def __init__(self, state: RunState, clock: Callable[[], float], *, blocks: bool = True) -> None:
        self._state = state
        self._clock = clock
        self._blocks = blocks
        self._new_text = ""
        self._is_paragraph_start = True
        self._reasoning = ""
        self._reasoning_since = 0.0

    def flush(self) -> list[Chunk]:
        """Return the new text. Text that begins with "data:" is split: Open WebUI would take it for an event."""
        text, self._new_text = self._new_text, ""
        chunks = [text[:1], text[1:]] if text.startswith("data:") else [text]
        return [chunk for chunk in chunks if chunk]

    def feed(self, frame: Frame) -> None:
        match frame.type:
            case "token" if frame.is_main_agent:
                self._finish_reasoning()
                text = frame.text("content")
                self._add(text.lstrip("\n") if self._is_paragraph_start else text)
            case "reasoning" if frame.is_main_agent and self._blocks:
                self._reasoning_since = self._reasoning_since or self._clock()
                self._reasoning += frame.text("content")
            case "tool_start":
                self._finish_reasoning()
            case "tool_end" if (call := self._state.call(frame)) and self._blocks:
                self._add_block(tool_block(call))
            case _:
                pass

    def close(self) -> None:
        self._finish_reasoning()
        for call in self._state.calls.values():
            if not call.done:
                call.finish("Error: interrupted", "interrupted")
                if self._blocks:
                    self._add_block(tool_block(call))

    def _finish_reasoning(self) -> None:
        if self._reasoning.strip():
            seconds = round(self._clock() - self._reasoning_since)
            lines = self._reasoning.strip().splitlines()
            quoted = "\n".join(f"> {html.escape(line, quote=False)}" for line in lines)
            summary = f"<summary>Thought for {seconds} seconds</summary>"
            self._add_block(
                f'<details type="reasoning" done="true" duration="{seconds}">\n{summary}\n{quoted}\n</details>\n\n'
            )
        self._reasoning, self._reasoning_since = "", 0.0

    def _add_block(self, block: str) -> None:
        self._add(block if self._is_paragraph_start else f"\n\n{block}")

    def _add(self, text: str) -> None:
        if text:
            self._new_text += text
            self._is_paragraph_start = text.endswith("\n\n")


def tool_block(call: ToolCall) -> str:
    """Return the `<details>` block of a finished call. Its values are JSON, because each must be on one line."""
    name = finished_title(call, call.title)
    values = {"id": call.tool_id, "name": name, "arguments": json.dumps(call.parameters, ensure_ascii=False)}
    values["result"] = json.dumps(result_text(call.output), ensure_ascii=False)
    attributes = " ".join(f'{key}="{escape_attribute(value)}"' for key, value in values.items())
    return f'<details type="tool_calls" done="true" {attributes}>\n<summary>Tool Executed</summary>\n</details>\n\n'


def escape_attribute(value: str) -> str:
    """Escape an HTML attribute, including double braces, in which Open WebUI would replace template variables."""
    return html.escape(value, quote=True).replace("{{", "{&#123;")
