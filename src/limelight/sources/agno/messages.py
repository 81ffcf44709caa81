"""Reads texts, reasoning steps and citations from Agno's events by attribute, without importing Agno. Pure."""

from collections.abc import Callable
from functools import lru_cache
from operator import attrgetter
from typing import Any, cast

from limelight.events import AnyEvent, SourceCited
from limelight.json_values import safe_text

CONTENT_EVENTS = ("RunContent", "TeamRunContent")
"""Names of Agno's content events, which carry a text delta."""
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
"""Fields of Agno's content events that may carry something besides text."""


def only_text(event: object) -> str:
    """Return the text of a content event that carries only text, as most do; "" for any other event."""
    text, *others = _getter(type(event))(event)
    return text if type(text) is str and not any(others) else ""


@lru_cache(maxsize=256)
def _getter(kind: type) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that reads all fields of an event class at once, which is faster than one by one."""
    others = [name for name in OTHER_CONTENT if name in getattr(kind, "__dataclass_fields__", {})]
    if not others:  # an unknown class, which may carry content in other fields
        return lambda _: ("",)
    return attrgetter("content", *others)


def reasoning_text(step: Any) -> str:
    """Return the text of one of Agno's reasoning steps."""
    title = getattr(step, "title", None)
    parts = [f"**{title}**" if title else "", *(getattr(step, name, None) or "" for name in ("reasoning", "result"))]
    text = "\n".join(part for part in parts if part)
    return f"{text}\n\n" if text else ""


def completion_text(event: Any) -> str:
    """Return what Agno reports at the end of its work in the background, as the text of a status; "" if nothing."""
    name = str(event.event).removeprefix("Team")
    match name:
        case "FollowupsCompleted":
            return _listed("Suggested follow-ups", getattr(event, "followups", None))
        case "MemoryUpdateCompleted":
            memories = getattr(event, "memories", None) or ()
            return _listed("Memory", [getattr(memory, "memory", memory) for memory in memories])
        case "SessionSummaryCompleted":
            summary = getattr(event, "session_summary", None)
            return _listed("Summary of the conversation", [text] if (text := getattr(summary, "summary", None)) else ())
        case "CompressionCompleted":
            return _shortened(event, "tool_results_compressed", "results of tools", "original_size", "compressed_size")
        case "CompactionCompleted":
            return _shortened(event, "messages_compacted", "messages", "tokens_before", "tokens_after")
        case _:
            return ""


def _listed(title: str, texts: Any) -> str:
    known = [safe_text(text) for text in texts or () if text]
    return f"{title}: {' · '.join(known)}" if known else ""


def _shortened(event: Any, count: str, noun: str, before: str, after: str) -> str:
    number, old, new = (getattr(event, name, None) for name in (count, before, after))
    unit = "tokens" if "tokens" in before else "characters"
    sizes = f", from {old} to {new} {unit}" if old is not None and new is not None else ""
    return f"Shortened {number} {noun}{sizes}" if number else ""


class Citations:
    """Converts Agno's citations to events.

    It returns each source once, although Agno repeats citations at the end of a run.
    """

    def __init__(self) -> None:
        self._cited: set[tuple[str, str, str]] = set()

    def feed(self, event: Any, agent_id: str) -> list[AnyEvent]:
        """Return events for new sources: those that the model cites, and references to a knowledge base."""
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
