"""Answers that have parts: an object, or a text that is one, with a title, a content and sources. Pure.

An agent may answer with anything: a text that only looks like an object is a text, and nothing here raises. The log
(`runs/truncation.py`) and the wires that show the parts (`dialects/v2`) read answers alike by this.
"""

import ast
import json
import re
from typing import Any, NamedTuple, cast

import msgspec

from limelight.events import JsonValue

PREFIX = "Final answer:"
FENCED = re.compile(r"```(?:json)?[ \t]*\n(.*)\n[ \t]*```", re.DOTALL | re.IGNORECASE)
"""A text that is one block of code and nothing else."""
KEYS = frozenset({"title", "content", "sources"})
NOT_AN_OBJECT = (ValueError, TypeError, OverflowError, SyntaxError, RecursionError, MemoryError, msgspec.DecodeError)
encode = msgspec.json.Encoder().encode


class Parts(NamedTuple):
    """Each as text."""

    title: str
    content: str
    sources: tuple[str, ...]


def parts_of(answer: JsonValue) -> Parts | None:
    """None if it has no parts, and is to be shown as it is."""
    value = _object(answer)
    if value is None or not _has_parts(value, answer):
        return None
    return Parts(text_in(value.get("title")), _content(value), _sources(value.get("sources")))


def stripped(text: str) -> str:
    """Without the words by which some agents say that it is the answer."""
    return text.lstrip().removeprefix(PREFIX).lstrip() if text.lstrip().startswith(PREFIX) else text


def text_in(value: JsonValue) -> str:
    """A string as it is, anything else as JSON. Nothing is no text, and not the word for it."""
    if value is None:
        return ""
    return value if isinstance(value, str) else encode(value).decode()


def _has_parts(value: dict[str, Any], given: JsonValue) -> bool:
    """A title alone makes an answer of an object; a text may be any JSON, and then it is shown as it is."""
    return "content" in value or ("title" in value and (given is value or value.keys() <= KEYS))


def _content(value: dict[str, Any]) -> str:
    """Where nothing is called the content, it is what else there is."""
    if "content" in value:
        return text_in(value["content"])
    rest = {key: kept for key, kept in value.items() if key not in KEYS}
    return encode(rest).decode() if rest else ""


def _sources(value: JsonValue) -> tuple[str, ...]:
    """A list of them, or one alone."""
    listed = value if isinstance(value, list) else [value]
    return tuple(text for source in listed if (text := text_in(source)))


def _object(answer: JsonValue) -> dict[str, Any] | None:
    """A dict as it is; a text if it is JSON or a Python literal of one."""
    if isinstance(answer, dict):
        return answer
    if not isinstance(answer, str):
        return None
    text = stripped(answer).strip()
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
