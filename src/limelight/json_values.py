"""Converts any Python value to a valid JSON value, or to text if it has no JSON form. Pure."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from limelight.events import JsonValue

MAX_DEPTH = 200
"""Limit for the nesting of a value. All known JSON parsers allow more."""
_ITEMS: dict[type, Callable[[Any], Iterable[Any]]] = {dict: dict[Any, Any].values, list: iter, tuple: iter}


def json_value(value: object) -> JsonValue:
    """Convert a value to a JSON value, or to text if that is not possible; None becomes "".

    Objects without a JSON form inside of the value become dicts if they are pydantic models, else texts.
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    try:
        encoded = _encode(value)
        decoded = msgspec.json.decode(encoded)
    except Exception:  # the methods of an object may raise anything
        return safe_text(value)
    return encoded.decode() if is_too_deep(decoded) else decoded


def is_too_deep(value: Any) -> bool:
    """Whether a JSON value is nested deeper than MAX_DEPTH."""
    level, depth = [value], 0
    while level and depth <= MAX_DEPTH:
        level = [inner for outer in level if type(outer) in _ITEMS for inner in _ITEMS[type(outer)](outer)]
        depth += 1
    return bool(level)


def clean_text(text: str) -> str:
    """Return a text without surrogates: a pair becomes its character, and a lone surrogate becomes U+FFFD."""
    try:
        text.encode()
        return text
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def safe_text(value: object) -> str:
    """Return `str(value)`, or the names of its type and of the error if `__str__` raises."""
    try:
        return clean_text(str(value))
    except Exception as error:
        return f"<{type(value).__name__}: {type(error).__name__}>"


def _encode(value: object) -> bytes:
    try:
        return msgspec.json.encode(value, enc_hook=_convert)
    except UnicodeEncodeError:
        return msgspec.json.encode(_clean(msgspec.to_builtins(value, str_keys=True, enc_hook=_convert)))


def _convert(value: Any) -> Any:
    """Convert an object that msgspec does not know."""
    dump = getattr(value, "model_dump", None) or getattr(value, "to_dict", None)
    if callable(dump) and not isinstance(value, type):
        try:
            return dump()
        except Exception:
            return safe_text(value)
    return safe_text(value)


def _clean(value: Any) -> Any:
    """Return a JSON value whose texts and keys contain no surrogates."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {clean_text(str(k)): _clean(v) for k, v in value.items()}  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    if isinstance(value, list | tuple):
        return [_clean(v) for v in value]  # pyright: ignore[reportUnknownVariableType]
    return value
