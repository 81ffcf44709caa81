"""Structured answers: answers that are an object, or the text of one, with a title, a content and sources. Pure.

`with_parts` is the only place that decides whether an answer is structured. The engine calls it and stores the
result in the event. Every dialect, the page, the pipe and the terminal show the fields of the event.
"""

import ast
import json
import re
from typing import Any, NamedTuple, cast

import msgspec
from msgspec.structs import replace

from limelight.events import FinalAnswer, JsonValue

PREFIX = "Final answer:"
FENCED = re.compile(r"```(?:json)?[ \t]*\n(.*)\n[ \t]*```", re.DOTALL | re.IGNORECASE)
"""Matches a text that consists of one markdown code block."""
KEYS = frozenset({"title", "content", "sources"})
MAX_PARSED = 1024 * 1024
"""Limit for texts that are parsed, in characters. Parsing longer texts would block the event loop."""
MAX_SOURCES = 100
TITLE_KEYS = ("title", "name")
URL_KEYS = ("url", "link", "href", "source")
URL = re.compile(r"https?://[^\s()<>]+")
PARSE_ERRORS = (ValueError, TypeError, OverflowError, SyntaxError, RecursionError, MemoryError, msgspec.DecodeError)
encode = msgspec.json.Encoder().encode


class AnswerParts(NamedTuple):
    """The title, the content and the sources of an answer, as texts."""

    title: str
    content: str
    sources: tuple[str, ...]


def with_parts(answer: FinalAnswer) -> FinalAnswer:
    """Return an answer whose title, content and sources are fields, if its content is an object with these keys.

    A title and sources that the event already has take precedence. `data` is the object if the fields do not contain
    all of it. The prefix "Final answer:" is removed from texts.
    """
    if isinstance(answer.content, str) and len(answer.content) > MAX_PARSED:
        return answer
    value = _parse_object(answer.content)
    if value is None or not _is_structured(value, answer.content):
        text = strip_prefix(answer.content) if isinstance(answer.content, str) else answer.content
        return answer if text is answer.content else replace(answer, content=text)
    parts = _parts_of(value)
    title, sources = answer.title or parts.title, answer.sources or parts.sources
    is_complete = bool(title or sources) and _object_of(title, parts.content, sources) == value
    return replace(answer, title=title, content=parts.content, sources=sources, data=None if is_complete else value)


def strip_prefix(text: str) -> str:
    """Remove the prefix "Final answer:", with which some agents begin their answer."""
    return text.lstrip().removeprefix(PREFIX).lstrip() if text.lstrip().startswith(PREFIX) else text


def markdown_of(answer: FinalAnswer) -> str:
    """Return an answer as one markdown text: its title, its content and its sources."""
    heading = f"## {answer.title}\n\n" if answer.title else ""
    listed = "\n".join(f"- {source}" for source in answer.sources)
    return f"{heading}{to_text(answer.content)}" + (f"\n\n**Sources**\n\n{listed}" if listed else "")


def to_text(value: JsonValue) -> str:
    """Return a string unchanged, None as "", and any other value as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else encode(value).decode()


def _is_structured(value: dict[str, Any], content: JsonValue) -> bool:
    """Whether an object is a structured answer: it has the key `content`, or `title`.

    An object that was parsed from a text may be any JSON. If it has no `content`, it must have no keys besides KEYS.
    """
    return "content" in value or ("title" in value and (content is value or value.keys() <= KEYS))


def _parts_of(value: dict[str, Any]) -> AnswerParts:
    """Return the parts of a structured answer. Without the key `content`, the other keys as JSON are the content."""
    content = to_text(value.get("content"))
    rest = {key: item for key, item in value.items() if key not in KEYS}
    if "content" not in value and rest:
        content = encode(rest).decode()
    return AnswerParts(to_text(value.get("title")), content, _sources(value.get("sources")))


def _object_of(title: str, content: str, sources: tuple[str, ...]) -> dict[str, Any]:
    """Return an object with these parts of an answer as its keys. An empty title and empty sources are left out."""
    given: dict[str, Any] = {"title": title, "content": content, "sources": list(sources)}
    return {key: value for key, value in given.items() if value or key == "content"}


def _sources(value: JsonValue) -> tuple[str, ...]:
    """Return the sources in a list, or a single source, as texts."""
    listed = value if isinstance(value, list) else [value]
    return tuple(text for source in listed[:MAX_SOURCES] if (text := _source(source)))


def _source(value: JsonValue) -> str:
    """Return a source as text. An object with a title and a URL becomes a markdown link."""
    fields = value if isinstance(value, dict) else {}
    title, url = (next((fields[key] for key in keys if fields.get(key)), "") for keys in (TITLE_KEYS, URL_KEYS))
    if not isinstance(title, str) or not isinstance(url, str) or not (title or url):
        return to_text(value)
    if title and URL.fullmatch(url) and "]" not in title and "\n" not in title:
        return f"[{title}]({url})"
    return f"{title} {url}".strip()


def _parse_object(content: JsonValue) -> dict[str, Any] | None:
    """Return the object that a content is or, as JSON or as a Python literal, contains; None if there is none."""
    if isinstance(content, dict):
        return content
    if not isinstance(content, str):
        return None
    text = strip_prefix(content).strip()
    if fenced := FENCED.fullmatch(text):
        text = fenced[1].strip()
    if not (text.startswith("{") and text.endswith("}")):
        return None
    for parse in (msgspec.json.decode, _parse_literal):
        try:
            found = parse(text)
            encode(found)  # raises if the object has no JSON form
        except PARSE_ERRORS:
            continue
        if isinstance(found, dict):
            return cast("dict[str, Any]", found)
    return None


def _parse_literal(text: str) -> Any:
    """Parse a Python literal. Raises if a part of it has no JSON form, as `...`, `1j` or a lone surrogate."""
    return msgspec.json.decode(json.dumps(ast.literal_eval(text), allow_nan=False, ensure_ascii=False))
