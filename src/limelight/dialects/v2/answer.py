"""A final answer as the API shows it: text, or a title, a content and sources, from whatever form the agent gave it."""

import ast
from typing import Any, NamedTuple, cast

import msgspec

from limelight.dialects.base import text_of
from limelight.events import FinalAnswer, JsonValue

PREFIX = "Final answer:"


class Answer(NamedTuple):
    """`markdown` is the whole of it for a client that shows text only."""

    title: str
    content: str
    sources: tuple[str, ...]
    structured: bool

    @property
    def markdown(self) -> str:
        head = f"## {self.title}\n\n" if self.title else ""
        listed = "\n".join(f"- {source}" for source in self.sources)
        return f"{head}{self.content}" + (f"\n\n**Sources**\n\n{listed}" if listed else "")

    @property
    def metadata(self) -> dict[str, Any]:
        """The keys of the API; without structure only the one that says so."""
        if not self.structured:
            return {"has_structured_data": False}
        return {
            "has_structured_data": True,
            "answer_title": self.title,
            "answer_content": self.content,
            "answer_sources": list(self.sources),
            "answer_format": "json",
        }


def answer_of(event: FinalAnswer) -> Answer:
    """What the event says wins; an object, or a text that is one, is taken apart."""
    value = _object(event.content)
    if value is None or "content" not in value:
        structured = bool(event.title or event.sources) or not isinstance(event.content, str)
        return Answer(event.title, _stripped(text_of(event.content)), event.sources, structured)
    title = event.title or str(value.get("title") or "")
    sources = event.sources or _sources(value.get("sources"))
    return Answer(title, text_of(value["content"]), sources, structured=True)


def _object(content: JsonValue) -> dict[str, Any] | None:
    """A dict as it is; a text if it is JSON or a Python literal of one."""
    if isinstance(content, dict):
        return content
    if not isinstance(content, str):
        return None
    text = _stripped(content).strip()
    if not (text.startswith("{") and text.endswith("}")):
        return None
    for parse in (msgspec.json.decode, ast.literal_eval):
        try:
            found = parse(text)
        except (ValueError, SyntaxError, msgspec.DecodeError, RecursionError, MemoryError, TypeError):
            continue
        if isinstance(found, dict):
            return cast("dict[str, Any]", found)
    return None


def _stripped(text: str) -> str:
    return text.lstrip().removeprefix(PREFIX).lstrip() if text.lstrip().startswith(PREFIX) else text


def _sources(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        return ()
    return tuple(text_of(source) for source in cast("list[Any]", value))
