"""A final answer as the API shows it: text, or a title, a content and sources, from whatever form the agent gave it."""

from typing import Any, NamedTuple

from limelight.dialects.base import is_structured
from limelight.events import FinalAnswer
from limelight.structured_answers import parts_of, stripped, text_in


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
    parts = parts_of(event.content)
    if parts is None:
        return Answer(event.title, stripped(text_in(event.content)), event.sources, is_structured(event))
    return Answer(event.title or parts.title, parts.content, event.sources or parts.sources, structured=True)
