"""What is listed below the answer: results of tools, and what the agent cites."""

from collections.abc import Callable
from typing import Any

from openwebui.parts.conversation import CallKey
from openwebui.parts.frames import Frame
from openwebui.parts.story import Call, Story
from openwebui.parts.values import Json
from openwebui.parts.valves import Choices

CITATION_CHARS = 32_000


class Citations:
    """Open WebUI groups sources by their key, so each has one of its own."""

    def __init__(self, story: Story, run_id: Callable[[], str], choices: Choices) -> None:
        self._story = story
        self._run_id = run_id
        self._tools = choices.citations
        self._count = 0

    def feed(self, frame: Frame) -> list[Json]:
        match frame.type:
            case "tool_end" if (call := self._story.call(frame)) and self._tools:
                return self._of_call(call)
            case "citation":
                return [self._cited(frame.text("title"), frame.text("url"), frame.text("text"))]
            case "answer":
                sources: list[Any] = frame.data.get("sources") or []
                return [self._cited("", str(source), "") for source in sources]
            case _:
                return []

    def _of_call(self, call: Call) -> list[Json]:
        if call.error is not None or not call.output.strip():
            return []
        key = str(CallKey(self._run_id(), call.depth, call.name, call.tool_id))
        return [source_event(key, f"🔧 {call.title}", call.output, {"parameters": call.parameters})]

    def _cited(self, title: str, url: str, text: str) -> Json:
        self._count += 1
        key = url if url.startswith(("http://", "https://")) else f"{self._run_id()}.s{self._count}"
        return source_event(key, title or url, text or title or url, {})


def source_event(key: str, name: str, text: str, more: Json) -> Json:
    """The whole chat is stored anew with each of these, so a text has a limit."""
    if len(text) > CITATION_CHARS:
        text = f"{text[:CITATION_CHARS]}\n\n… ({len(text):,} characters in all)"
    source: Json = {"id": key, "name": name}
    if key.startswith("http"):
        source["url"] = key
    metadata = {"source": key, "name": name, **more}
    return {"type": "source", "data": {"source": source, "document": [text], "metadata": [metadata]}}
