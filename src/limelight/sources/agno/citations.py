"""What an answer rests on: a model's citations and what was found in a knowledge base. Pure."""

from typing import Any, cast

from limelight.events import SourceCited
from limelight.sources.base import Item
from limelight.sources.values import safe_text


class Citing:
    """Cites each source once: Agno repeats them at the end of a run."""

    def __init__(self) -> None:
        self._cited: set[tuple[str, str, str]] = set()

    def of(self, event: Any, agent_id: str) -> list[Item]:
        citations, references = getattr(event, "citations", None), getattr(event, "references", None)
        if citations is None and references is None:  # with nearly every token
            return []
        found = [*_citations(citations), *_references(references)]
        items: list[Item] = []
        for title, url, text in found:
            if (title, url, text) not in self._cited:
                self._cited.add((title, url, text))
                items.append(SourceCited(agent_id=agent_id, title=title, url=url, text=text))
        return items


def _citations(citations: Any) -> list[tuple[str, str, str]]:
    if citations is None:
        return []
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
