"""Converts values of unknown type to JSON or to text, and limits the nesting and number of JSON values. Pure."""

import math
from collections.abc import Callable, Iterable
from typing import Any, cast

import msgspec

from limelight.events import JsonValue

MAX_DEPTH = 200
"""Limit for the nesting of a JSON value; all known parsers allow more."""
_MARKS = (b",", b"[", b"{")
"""Characters that begin or separate JSON values, other than quotes."""
_ITEMS: dict[type, Callable[[Any], Iterable[Any]]] = {dict: dict[Any, Any].values, list: iter, tuple: iter}


def json_value(value: object) -> JsonValue:
    """Convert a value to a JSON value, or to text if it has no JSON form; None becomes "".

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


def fields_of(value: object) -> dict[str, Any]:
    """Return a value of unknown type if it is a dict, else an empty dict."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def items_of(value: object) -> list[Any]:
    """Return a value of unknown type if it is a list, else an empty list."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def json_text(value: object) -> str:
    """Return a value as JSON text."""
    return msgspec.json.encode(json_value(value)).decode()


def is_too_deep(value: Any) -> bool:
    """Whether a JSON value is nested deeper than MAX_DEPTH."""
    level, depth = [value], 0
    while level and depth <= MAX_DEPTH:
        level = [inner for outer in level if type(outer) in _ITEMS for inner in _ITEMS[type(outer)](outer)]
        depth += 1
    return bool(level)


def has_more_values(text: bytes, limit: int) -> bool:
    """Whether a JSON text has more than about `limit` values and keys, counted without decoding it.

    Decoding millions of small values takes seconds and much memory; this takes milliseconds.
    """
    if len(text) <= limit or _count_marks(text) + text.count(b'"') // 2 <= limit:
        return False
    text = text.replace(b"\\\\", b"").replace(b'\\"', b"")  # then each quote begins or ends a string
    strings = text.count(b'"') // 2
    return strings > limit or strings + _count_marks(b"".join(text.split(b'"')[::2])) > limit


def _count_marks(text: bytes) -> int:
    return sum(map(text.count, _MARKS))


def clean_text(text: str) -> str:
    """Return a text without UTF-16 surrogates: a pair becomes its character, a lone one becomes U+FFFD."""
    try:
        text.encode()
        return text
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def safe_text(value: object) -> str:
    """Return `str(value)`; if `__str__` raises, the names of the value's type and of the error."""
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
    """Convert an object that the JSON library msgspec cannot encode to a value that it can."""
    dump = getattr(value, "model_dump", None) or getattr(value, "to_dict", None)
    if callable(dump) and not isinstance(value, type):
        try:
            return dump()
        except Exception:
            return safe_text(value)
    return safe_text(value)


def _clean(value: Any) -> Any:
    """Return a JSON value whose texts and keys contain no UTF-16 surrogates."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {clean_text(str(k)): _clean(v) for k, v in value.items()}  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    if isinstance(value, list | tuple):
        return [_clean(v) for v in value]  # pyright: ignore[reportUnknownVariableType]
    return value
