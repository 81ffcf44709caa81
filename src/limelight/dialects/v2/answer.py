"""A final answer as the API shows it: text, or a title, a content and sources, from whatever form the agent gave it.

Pure. An agent may answer with anything: a text that only looks like an object is a text, and nothing here raises.
"""

import ast
import json
import re
from typing import Any, NamedTuple, cast

import msgspec

from limelight.dialects.base import encode, text_of
from limelight.events import FinalAnswer, JsonValue

PREFIX = "Final answer:"
FENCED = re.compile(r"```(?:json)?[ \t]*\n(.*)\n[ \t]*```", re.DOTALL | re.IGNORECASE)
"""A text that is one block of code and nothing else."""
KEYS = frozenset({"title", "content", "sources"})
NOT_AN_OBJECT = (ValueError, TypeError, OverflowError, SyntaxError, RecursionError, MemoryError, msgspec.DecodeError)


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
    if value is None or not _is_answer(value, event.content):
        structured = bool(event.title or event.sources) or not isinstance(event.content, str)
        return Answer(event.title, _stripped(_text(event.content)), event.sources, structured)
    title = event.title or _text(value.get("title"))
    return Answer(title, _content(value), event.sources or _sources(value.get("sources")), structured=True)


def _is_answer(value: dict[str, Any], given: JsonValue) -> bool:
    """A title alone makes an answer of an object; a text may be any JSON, and then it is shown as it is."""
    return "content" in value or ("title" in value and (given is value or value.keys() <= KEYS))


def _content(value: dict[str, Any]) -> str:
    """Where nothing is called the content, it is what else there is."""
    if "content" in value:
        return _text(value["content"])
    rest = {key: kept for key, kept in value.items() if key not in KEYS}
    return encode(rest).decode() if rest else ""


def _object(content: JsonValue) -> dict[str, Any] | None:
    """A dict as it is; a text if it is JSON or a Python literal of one."""
    if isinstance(content, dict):
        return content
    if not isinstance(content, str):
        return None
    text = _stripped(content).strip()
    if fenced := FENCED.fullmatch(text):
        text = fenced[1].strip()
    if not (text.startswith("{") and text.endswith("}")):
        return None
    for parse in (msgspec.json.decode, _literal):
        try:
            found = parse(text)
            encode(found)  # what cannot be written must not be sent
        except NOT_AN_OBJECT:
            continue
        if isinstance(found, dict):
            return cast("dict[str, Any]", found)
    return None


def _literal(text: str) -> Any:
    """A literal of Python, if JSON has a form for all of it: it has none for `...`, `1j` or half a character."""
    return msgspec.json.decode(json.dumps(ast.literal_eval(text), allow_nan=False, ensure_ascii=False))


def _stripped(text: str) -> str:
    return text.lstrip().removeprefix(PREFIX).lstrip() if text.lstrip().startswith(PREFIX) else text


def _text(value: JsonValue) -> str:
    """Nothing is no text, and not the word for it."""
    return "" if value is None else text_of(value)


def _sources(value: JsonValue) -> tuple[str, ...]:
    """A list of them, or one alone."""
    listed = value if isinstance(value, list) else [value]
    return tuple(text for source in listed if (text := _text(source)))
