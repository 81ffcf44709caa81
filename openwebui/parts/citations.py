"""What is listed below the answer: results of tools, and what the agent cites."""

from collections.abc import Callable
from typing import Any, cast

from openwebui.parts.conversation import CallKey
from openwebui.parts.frames import Frame
from openwebui.parts.run_state import Call, Story
from openwebui.parts.text import literal, parted
from openwebui.parts.types import Json
from openwebui.parts.valves import Choices

CITATION_CHARS = 32_000
MESSAGE_CHARS = 256_000
"""All citations of a message together: the whole chat is stored anew with each of them."""
PREVIEW_OF_CITATION = 500


class Citations:
    """Open WebUI groups sources by their key, so each has one of its own."""

    def __init__(self, story: Story, run_id: Callable[[], str], choices: Choices) -> None:
        self._story = story
        self._run_id = run_id
        self._tools = choices.citations
        self._count = 0
        self._room = MESSAGE_CHARS

    def feed(self, frame: Frame) -> list[Json]:
        match frame.type:
            case "tool_end" if (call := self._story.call(frame)) and self._tools:
                return self._of_call(call)
            case "citation":
                return [self._cited(frame.text("title"), frame.text("url"), frame.text("text"))]
            case "answer":
                sources = frame.data.get("sources")
                found = cast(list[Any], sources) if isinstance(sources, list) else []
                return [self._cited("", str(source), "") for source in found]
            case _:
                return []

    def _of_call(self, call: Call) -> list[Json]:
        if call.error is not None or not call.result_seen or not call.output.strip():
            return []
        key = str(CallKey(self._run_id(), call.depth, call.name, call.tool_id))
        return [self._source(key, f"🔧 {call.title}", call.output, literal, {"parameters": self._parameters(call)})]

    def _parameters(self, call: Call) -> Json:
        """What has no room is in the row, if anywhere."""
        if len(call.args) <= min(CITATION_CHARS, self._room):
            self._room -= len(call.args)
            return call.parameters
        return {"arguments": f"{call.args[:PREVIEW_OF_CITATION]}… ({len(call.args):,} characters in all)"}

    def _cited(self, title: str, url: str, text: str) -> Json:
        self._count += 1
        key = url if url.startswith(("http://", "https://")) else f"{self._run_id()}.s{self._count}"
        return self._source(key, title or url, text or title or url, parted, {})

    def _source(self, key: str, name: str, text: str, tamed: Callable[[str], str], more: Json) -> Json:
        """Open WebUI draws a source as markdown and HTML, so what somebody else has written is tamed."""
        limit = CITATION_CHARS if min(len(text), CITATION_CHARS) <= self._room else PREVIEW_OF_CITATION
        shown = tamed(text[:limit])
        if len(text) > limit:
            shown = f"{shown}\n\n… ({len(text):,} characters in all)"
        self._room = max(0, self._room - len(shown))
        return source_event(key, name, shown, more)


def source_event(key: str, name: str, text: str, more: Json) -> Json:
    source: Json = {"id": key, "name": name}
    if key.startswith("http"):
        source["url"] = key
    metadata = {"source": key, "name": name, **more}
    return {"type": "source", "data": {"source": source, "document": [text], "metadata": [metadata]}}
