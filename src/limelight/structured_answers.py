"""Decides whether an agent's answer is structured, with a title, a content and sources, and extracts these. Pure.

`with_parts` is the only place that decides whether an answer is structured, and which title and URL a source has. The
engine calls it and stores the result in the event. Every dialect, the page, the pipe and the terminal show the fields
of the event. A second call changes nothing, so that readers may call it for events of any version.
"""

import ast
import json
import re
import string
from typing import Any, NamedTuple, cast

import msgspec
from msgspec.structs import replace

from limelight.events import FinalAnswer, JsonValue, SourceLink

PREFIX = re.compile(r"(?:\s*Final answer:)+\s*")
FENCED = re.compile(r"```(?:json)?[ \t]*\n(.*)\n[ \t]*```", re.DOTALL | re.IGNORECASE)
"""Matches a text that consists of a single markdown code block."""
KEYS = frozenset({"title", "content", "sources"})
MAX_PARSED = 1024 * 1024
"""Longest text that is parsed, in characters; parsing longer texts would block the event loop."""
MAX_SOURCES = 100
TITLE_KEYS = ("title", "name")
URL_KEYS = ("url", "link", "href", "source")
URL = re.compile(r"https?://[^\s()<>]+")
WEB_URL = re.compile(r'\bhttps?://[^\s<>"/.,:;!?)\]][^\s<>"]*', re.IGNORECASE)
"""Matches a URL in the text of a source, with the punctuation after it."""
MARKDOWN_LINK = re.compile(r'\[([^\]]+)\]\(\s*<?(\S+?)>?(?:\s+"[^"]*")?\s*\)')
LIST_MARKER = re.compile(r"\s*(?:[-*]\s+|\[\d+\](?!\():?\s*)")
"""Matches the beginning of a source that is an item of a list, such as "- " or "[1] "."""
URL_ENDS = ".,;:!?]"
"""Punctuation that ends a sentence and not a URL, if it is the last character."""
BEFORE_URL = string.whitespace + "-–—:|,;.([<"
AFTER_URL = string.whitespace + "-–—:|,;.)]>"
"""Characters that separate the URL of a source from the words before and after it."""
PARSE_ERRORS = (ValueError, TypeError, OverflowError, SyntaxError, RecursionError, MemoryError, msgspec.DecodeError)
encode = msgspec.json.Encoder().encode


class AnswerParts(NamedTuple):
    """Title, content and sources of a structured answer, as texts, and the title and URL of each source."""

    title: str
    content: str
    sources: tuple[str, ...]
    source_links: tuple[SourceLink, ...]


def with_parts(answer: FinalAnswer) -> FinalAnswer:
    """Return an answer with its title, content and sources as separate fields, if its content has these keys.

    A title and sources that the event already has take precedence. `data` is the object if the fields do not contain
    all of it. The prefix "Final answer:" is removed from texts. The content of an answer that is structured already,
    by its agent or by an earlier call, is not changed. Each source gets a `source_link`.
    """
    answer = answer if _is_literal(answer) else _structured(answer)
    if len(answer.source_links) == len(answer.sources):
        return answer
    return replace(answer, source_links=tuple(source_link(source) for source in answer.sources))


def _is_literal(answer: FinalAnswer) -> bool:
    """Whether the content of an answer is its text, and must not be parsed.

    Either the agent has given the parts, or an earlier call of `with_parts` has extracted them. A truncated content is
    the beginning of a text on which an earlier call has decided.
    """
    if not isinstance(answer.content, str):
        return False
    is_structured = bool(answer.title or answer.sources or answer.data is not None)
    return is_structured or answer.truncated or len(answer.content) > MAX_PARSED


def _structured(answer: FinalAnswer) -> FinalAnswer:
    value = _parse_object(answer.content)
    if value is None or not _is_structured(value, answer.content):
        text = strip_prefix(answer.content) if isinstance(answer.content, str) else answer.content
        return answer if text is answer.content else replace(answer, content=text)
    parts = _parts_of(value)
    title, sources = answer.title or parts.title, answer.sources or parts.sources
    links = answer.source_links if answer.sources else parts.source_links
    is_complete = bool(title or sources) and _object_of(title, parts.content, sources) == value
    data = None if is_complete else value
    return replace(answer, title=title, content=parts.content, sources=sources, source_links=links, data=data)


def strip_prefix(text: str) -> str:
    """Remove the prefix "Final answer:", which some agents write before their answer, also if it is repeated."""
    prefix = PREFIX.match(text)
    return text if prefix is None else text[prefix.end() :]


def source_link(source: str) -> SourceLink:
    """Return the title and the URL in the text of a source: a URL, a text with a URL, or a Markdown link.

    A source without a URL of the web has the complete text as title.
    """
    if marker := LIST_MARKER.match(source):
        source = source[marker.end() :] or source
    source = source.strip()
    if (link := MARKDOWN_LINK.fullmatch(source)) and WEB_URL.fullmatch(link[2]):
        return SourceLink(link[1].strip(), link[2])
    found = WEB_URL.search(source)
    if found is None:
        return SourceLink(source)
    url = _without_punctuation(found[0])
    before, after = source[: found.start()], source[found.start() + len(url) :]
    words = before.rstrip(BEFORE_URL), after.lstrip(AFTER_URL).rstrip(string.whitespace + ".,;")
    return SourceLink(" ".join(filter(None, words)), url)


def _without_punctuation(url: str) -> str:
    """Remove the punctuation of the sentence from the end of a URL, and a parenthesis that the URL does not open."""
    unopened = url.count(")") - url.count("(")
    end = len(url)
    while end and (url[end - 1] in URL_ENDS or (url[end - 1] == ")" and unopened > 0)):
        unopened -= url[end - 1] == ")"
        end -= 1
    return url[:end]


def markdown_of(answer: FinalAnswer) -> str:
    """Return an answer as one markdown text of title, content and sources."""
    heading = f"## {answer.title}\n\n" if answer.title else ""
    listed = "\n".join(f"- {source}" for source in answer.sources)
    return f"{heading}{to_text(answer.content)}" + (f"\n\n**Sources**\n\n{listed}" if listed else "")


def to_text(value: JsonValue) -> str:
    """Return a string unchanged, and any other value as JSON; None becomes ""."""
    if value is None:
        return ""
    return value if isinstance(value, str) else encode(value).decode()


def _is_structured(value: dict[str, Any], content: JsonValue) -> bool:
    """Whether an object is a structured answer, because it has the key `content` or `title`.

    An object that was parsed from a text may be any JSON. If it has no `content`, it must have no keys besides KEYS.
    """
    return "content" in value or ("title" in value and (content is value or value.keys() <= KEYS))


def _parts_of(value: dict[str, Any]) -> AnswerParts:
    """Return the parts of a structured answer; without the key `content`, its other keys as JSON are the content."""
    content = to_text(value.get("content"))
    rest = {key: item for key, item in value.items() if key not in KEYS}
    if "content" not in value and rest:
        content = encode(rest).decode()
    given: JsonValue = value.get("sources")
    listed: list[JsonValue] = given if isinstance(given, list) else [given]
    sources = [(text, _link_of(source, text)) for source in listed[:MAX_SOURCES] if (text := _source(source))]
    texts, links = tuple(text for text, _ in sources), tuple(link for _, link in sources)
    return AnswerParts(to_text(value.get("title")), content, texts, links)


def _object_of(title: str, content: str, sources: tuple[str, ...]) -> dict[str, Any]:
    """Return an object with these answer parts as keys, without an empty title and empty sources."""
    given: dict[str, Any] = {"title": title, "content": content, "sources": list(sources)}
    return {key: value for key, value in given.items() if value or key == "content"}


def _source(value: JsonValue) -> str:
    """Return one source of an answer as text; an object with a title and a URL becomes a markdown link."""
    named = _named(value)
    if named is None:
        return to_text(value)
    title, url = named
    if title and URL.fullmatch(url) and "]" not in title and "\n" not in title:
        return f"[{title}]({url})"
    return f"{title} {url}".strip()


def _link_of(value: JsonValue, text: str) -> SourceLink:
    """Return the title and the URL of one source: of its object, or parsed from its text."""
    named = _named(value)
    if named is not None and WEB_URL.fullmatch(named[1]):
        return SourceLink(named[0].strip(), named[1])
    return SourceLink(text) if named is None and not isinstance(value, str) else source_link(text)


def _named(value: JsonValue) -> tuple[str, str] | None:
    """Return the title and the URL of a source that is an object; None if it has neither as text."""
    fields = value if isinstance(value, dict) else {}
    title, url = (next((fields[key] for key in keys if fields.get(key)), "") for keys in (TITLE_KEYS, URL_KEYS))
    return (title, url) if isinstance(title, str) and isinstance(url, str) and (title or url) else None


def _parse_object(content: JsonValue) -> dict[str, Any] | None:
    """Return the object that a content is, or contains as JSON or as a Python literal; None if there is none."""
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
    """Parse a Python literal. Raises an error if it has parts without a JSON form: `...`, `1j`, a lone surrogate."""
    return msgspec.json.decode(json.dumps(ast.literal_eval(text), allow_nan=False, ensure_ascii=False))
