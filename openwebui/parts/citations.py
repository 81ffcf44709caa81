"""The sources that Open WebUI lists below an answer: tool results, and sources that the agent cites."""

from collections.abc import Callable
from typing import Any, cast

from openwebui.parts.frames import Frame, Json, as_objects
from openwebui.parts.run_state import RunState, ToolCall
from openwebui.parts.text_format import break_markup, literal_markdown
from openwebui.parts.valves import DisplayOptions

MAX_CITATION_CHARS = 32_000
MAX_MESSAGE_CITATION_CHARS = 256_000
"""Size limit of all citations of a message together. Open WebUI stores the complete chat again with each citation."""
CITATION_PREVIEW_CHARS = 500


class Citations:
    """Turns tool results and cited sources into source events. Each has its own id, by which Open WebUI groups them."""

    def __init__(self, state: RunState, run_id: Callable[[], str], options: DisplayOptions) -> None:
        self._state = state
        self._run_id = run_id
        self._cite_tools = options.tool_citations
        self._count = 0
        self._chars_left = MAX_MESSAGE_CITATION_CHARS

    def feed(self, frame: Frame) -> list[Json]:
        match frame.type:
            case "tool_end" if (call := self._state.call(frame)) and self._cite_tools:
                return self._cite_call(call)
            case "citation":
                return [self._cite_source(frame.text("title"), frame.text("url"), frame.text("text"))]
            case "answer":
                return [self._cite_source(title, url, "") for title, url in _answer_sources(frame)]
            case _:
                return []

    def _cite_call(self, call: ToolCall) -> list[Json]:
        if call.error is not None or not call.result_seen or not call.output.strip():
            return []
        metadata = {"parameters": self._parameters(call)}
        return [self._source(call.key(self._run_id()), f"🔧 {call.title}", call.output, literal_markdown, metadata)]

    def _parameters(self, call: ToolCall) -> Json:
        if len(call.args) <= min(MAX_CITATION_CHARS, self._chars_left):
            self._chars_left -= len(call.args)
            return call.parameters
        return {"arguments": f"{call.args[:CITATION_PREVIEW_CHARS]}… ({len(call.args):,} characters in all)"}

    def _cite_source(self, title: str, url: str, text: str) -> Json:
        self._count += 1
        source_id = url if url.startswith(("http://", "https://")) else f"{self._run_id()}.s{self._count}"
        return self._source(source_id, title or url, text or title or url, break_markup, {})

    def _source(self, source_id: str, name: str, text: str, escape: Callable[[str], str], metadata: Json) -> Json:
        """Return a source event. Its text is escaped, because Open WebUI renders it as Markdown and HTML."""
        fits = min(len(text), MAX_CITATION_CHARS) <= self._chars_left
        limit = MAX_CITATION_CHARS if fits else CITATION_PREVIEW_CHARS
        document = escape(text[:limit])
        if len(text) > limit:
            document = f"{document}\n\n… ({len(text):,} characters in all)"
        self._chars_left = max(0, self._chars_left - len(document))
        return source_event(source_id, name, document, metadata)


def _answer_sources(frame: Frame) -> list[tuple[str, str]]:
    """Return the title and the URL of each source of an answer. A server of an older version sends only its text."""
    links = as_objects(frame.data.get("source_links"))
    found = [(str(link.get("title") or ""), str(link.get("url") or "")) for link in links]
    if any(title or url for title, url in found):
        return [(title, url) for title, url in found if title or url]
    sources = frame.data.get("sources")
    return [("", str(text)) for text in cast(list[Any], sources)] if isinstance(sources, list) else []


def source_event(source_id: str, name: str, document: str, metadata: Json) -> Json:
    source: Json = {"id": source_id, "name": name}
    if source_id.startswith("http"):
        source["url"] = source_id
    metadata = {"source": source_id, "name": name, **metadata}
    return {"type": "source", "data": {"source": source, "document": [document], "metadata": [metadata]}}
