"""Structured answers: an object, or a text that contains one, with a title, a content and sources. Pure.

An agent may answer with any value. A text that cannot be parsed as an object is a plain text, and nothing here raises.
The log (`runs/truncation.py`) and the dialects that show the parts (`dialects/v2`) both decide with this module.
"""

import ast
import json
import re
from typing import Any, NamedTuple, cast

import msgspec

from limelight.events import JsonValue

PREFIX = "Final answer:"
FENCED = re.compile(r"```(?:json)?[ \t]*\n(.*)\n[ \t]*```", re.DOTALL | re.IGNORECASE)
"""A text that is one markdown code block and nothing else."""
KEYS = frozenset({"title", "content", "sources"})
PARSE_ERRORS = (ValueError, TypeError, OverflowError, SyntaxError, RecursionError, MemoryError, msgspec.DecodeError)
encode = msgspec.json.Encoder().encode


class AnswerParts(NamedTuple):
    """The title, the content and the sources of an answer, as texts."""

    title: str
    content: str
    sources: tuple[str, ...]


def parse_answer(answer: JsonValue) -> AnswerParts | None:
    """Return the parts of a structured answer, None for any other."""
    value = _parse_object(answer)
    if value is None or not _is_structured(value, answer):
        return None
    return AnswerParts(to_text(value.get("title")), _content(value), _sources(value.get("sources")))


def strip_prefix(text: str) -> str:
    """Remove "Final answer:", with which some agents begin their answer."""
    return text.lstrip().removeprefix(PREFIX).lstrip() if text.lstrip().startswith(PREFIX) else text


def to_text(value: JsonValue) -> str:
    """Return a string unchanged, None as "", and any other value as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else encode(value).decode()


def _is_structured(value: dict[str, Any], answer: JsonValue) -> bool:
    """Whether an object is a structured answer: it has a content, or a title.

    A text may contain any JSON. If that has a title but no content, it must not have other keys.
    """
    return "content" in value or ("title" in value and (answer is value or value.keys() <= KEYS))


def _content(value: dict[str, Any]) -> str:
    """Return the content as text; if there is none, the other keys as JSON."""
    if "content" in value:
        return to_text(value["content"])
    rest = {key: item for key, item in value.items() if key not in KEYS}
    return encode(rest).decode() if rest else ""


def _sources(value: JsonValue) -> tuple[str, ...]:
    """Return the sources of a list, or of a single value."""
    listed = value if isinstance(value, list) else [value]
    return tuple(text for source in listed if (text := to_text(source)))


def _parse_object(answer: JsonValue) -> dict[str, Any] | None:
    """Return a dict unchanged, and parse a text that is JSON or a Python literal. None if it is not an object."""
    if isinstance(answer, dict):
        return answer
    if not isinstance(answer, str):
        return None
    text = strip_prefix(answer).strip()
    if fenced := FENCED.fullmatch(text):
        text = fenced[1].strip()
    if not (text.startswith("{") and text.endswith("}")):
        return None
    for parse in (msgspec.json.decode, _parse_literal):
        try:
            found = parse(text)
            encode(found)  # raises if it cannot be sent
        except PARSE_ERRORS:
            continue
        if isinstance(found, dict):
            return cast("dict[str, Any]", found)
    return None


def _parse_literal(text: str) -> Any:
    """Parse a Python literal. Raises if JSON has no form for a part of it, as for `...`, `1j` or a lone surrogate."""
    return msgspec.json.decode(json.dumps(ast.literal_eval(text), allow_nan=False, ensure_ascii=False))
