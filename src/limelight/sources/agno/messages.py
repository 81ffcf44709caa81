"""Reads texts, reasoning steps and citations from Agno's events by attribute, without importing Agno. Pure."""

from collections.abc import Callable
from operator import attrgetter
from typing import Any, cast

from limelight.events import AnyEvent, SourceCited
from limelight.json_values import safe_text

CONTENT_EVENTS = ("RunContent", "TeamRunContent")
"""Names of the content events, which carry a text delta."""
OTHER_CONTENT = (
    "reasoning_content",
    "citations",
    "references",
    "images",
    "videos",
    "audio",
    "files",
    "image",
    "response_audio",
)
"""Fields of content events that may carry something besides text."""


class TextReader:
    """Fast reader for the text of events that carry nothing else, as most events do.

    One `attrgetter` for each class of events reads all fields at once, which is much faster than reading them one by
    one.
    """

    def __init__(self) -> None:
        self._getters: dict[type, Callable[[Any], tuple[Any, ...]]] = {}

    def read(self, event: object) -> str:
        """Return the text of an event; "" if the event has no text or carries anything else."""
        getter = self._getters.get(type(event))
        if getter is None:
            getter = self._getters[type(event)] = _getter(type(event))
        text, *others = getter(event)
        return text if type(text) is str and not any(others) else ""


def _getter(kind: type) -> Callable[[Any], tuple[Any, ...]]:
    others = [name for name in OTHER_CONTENT if name in getattr(kind, "__dataclass_fields__", {})]
    if not others:  # an unknown class, which may carry content in other fields
        return lambda _: ("",)
    return attrgetter("content", *others)


def reasoning_text(step: Any) -> str:
    """Return the text of one step in a chain of reasoning."""
    title = getattr(step, "title", None)
    parts = [f"**{title}**" if title else "", *(getattr(step, name, None) or "" for name in ("reasoning", "result"))]
    text = "\n".join(part for part in parts if part)
    return f"{text}\n\n" if text else ""


class Citations:
    """Converter of citations to events. It returns each source once; Agno repeats citations at the end of a run."""

    def __init__(self) -> None:
        self._cited: set[tuple[str, str, str]] = set()

    def feed(self, event: Any, agent_id: str) -> list[AnyEvent]:
        """Return events for the new sources among the model's citations and the references to a knowledge base."""
        citations, references = getattr(event, "citations", None), getattr(event, "references", None)
        if citations is None and references is None:
            return []
        events: list[AnyEvent] = []
        for source in [*_citations(citations), *_references(references)]:
            if source not in self._cited:
                self._cited.add(source)
                title, url, text = source
                events.append(SourceCited(agent_id=agent_id, title=title, url=url, text=text))
        return events


def _citations(citations: Any) -> list[tuple[str, str, str]]:
    pages = [(c.title or c.url or "", c.url or "", "") for c in getattr(citations, "urls", None) or ()]
    documents = [
        (c.document_title or c.file_name or "", "", c.cited_text or "")
        for c in getattr(citations, "documents", None) or ()
    ]
    return [*pages, *documents]


def _references(groups: Any) -> list[tuple[str, str, str]]:
    return [_reference(one) for group in groups or () for one in getattr(group, "references", None) or ()]


def _reference(reference: object) -> tuple[str, str, str]:
    if not isinstance(reference, dict):
        text = safe_text(reference)
        return text.partition("\n")[0][:100], "", text
    fields = cast("dict[str, Any]", reference)
    meta: dict[str, Any] = fields.get("meta_data") or {}
    url = str(fields.get("url") or meta.get("url") or "")
    text = safe_text(fields.get("content") or "")
    title = str(fields.get("name") or fields.get("title") or meta.get("name") or url or text[:100])
    return title, url, text
