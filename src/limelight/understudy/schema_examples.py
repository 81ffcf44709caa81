"""Examples of values that a JSON Schema accepts: minimal values, for tool arguments and answers in JSON. Pure."""

import math
from collections.abc import Callable
from typing import Any, cast

from limelight.understudy.schema_validation import Schema, is_valid, resolve

TextFor = Callable[[str], str]
"""A function that returns the text for a string field, given the field's name."""

MAX_DEPTH = 12
COMBINATIONS = ("$ref", "allOf", "anyOf", "oneOf")
BOUNDS = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")
FORMAT_EXAMPLES = {
    "date": "2026-01-31",
    "time": "12:00:00Z",
    "date-time": "2026-01-31T12:00:00Z",
    "email": "someone@example.com",
    "uri": "https://example.com/",
    "url": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "ipv4": "127.0.0.1",
}
PATTERN_EXAMPLES = ("a", "A", "0", "a1", "ab", "abc", "ABC", "A-1", "a_b", "/a", "/a.txt", "#ffffff", "+15550100")
"""Candidate texts for a string with a `pattern`; the first valid one is used."""


def example(schema: Any, text_for: TextFor | None = None) -> Any:
    """Return a minimal value that the schema accepts. Does not support arrays of several unique items."""
    return _ExampleBuilder(schema, text_for or (lambda _: "a")).value(schema, "", 0)


class _ExampleBuilder:
    """Builds a valid example value of a schema. References are resolved in the root schema."""

    def __init__(self, root: Any, text_for: TextFor) -> None:
        self._root = root
        self._text_for = text_for

    def value(self, schema: Any, name: str, depth: int) -> Any:
        if not isinstance(schema, dict) or depth > MAX_DEPTH:
            return self._text_for(name)
        flat = self._flatten(cast("Schema", schema), depth)
        if "const" in flat or "default" in flat:
            return flat.get("const", flat.get("default"))
        if options := flat.get("enum"):
            return options[0]
        match _type_of(flat):
            case "object":
                return self._object(flat, depth)
            case "array":
                return self._array(flat, name, depth)
            case "integer" | "number":
                return _number(flat)
            case "boolean":
                return False
            case "null":
                return None
            case _:
                return _text(flat, self._text_for(name))

    def _flatten(self, schema: Schema, depth: int) -> Schema:
        """Resolve references in a schema, merge its `allOf`, and choose one alternative of `anyOf` or `oneOf`."""
        for _ in range(MAX_DEPTH):
            parts = [resolve(schema["$ref"], self._root)] if "$ref" in schema else []
            parts += schema.get("allOf", ())
            for key in ("anyOf", "oneOf"):
                parts += [self._alternative(schema[key], depth)] if key in schema else []
            if not parts:
                break
            schema = {key: rule for key, rule in schema.items() if key not in COMBINATIONS}
            for part in parts:
                schema = schema | part
        return {key: rule for key, rule in schema.items() if key not in COMBINATIONS}

    def _alternative(self, ways: list[Any], depth: int) -> Schema:
        """Return the first alternative that is not null; at greater depth a scalar one, so that the recursion ends."""
        known = [cast("Schema", way) for way in ways if isinstance(way, dict)]
        flat = [way for way in known if "$ref" not in way and way.get("type") not in ("object", "array")]
        not_null = [way for way in known if way.get("type") != "null"]
        chosen = (flat if depth > MAX_DEPTH // 3 else []) or not_null or known
        return chosen[0] if chosen else Schema()

    def _object(self, schema: Schema, depth: int) -> Schema:
        known: Schema = schema.get("properties") or {}
        keys: list[str] = list(dict.fromkeys(schema.get("required") or ()))
        least = schema.get("minProperties", 0)
        keys += [key for key in known if key not in keys][: max(0, least - len(keys))]
        keys += [f"key{number}" for number in range(least - len(keys))]
        others = schema.get("additionalProperties", {})
        return {key: self.value(known.get(key, others), key, depth + 1) for key in keys}

    def _array(self, schema: Schema, name: str, depth: int) -> list[Any]:
        first: list[Any] = schema.get("prefixItems") or []
        schemas = [*first, *[schema.get("items", {})] * schema.get("minItems", 0)]
        return [self.value(item, name, depth + 1) for item in schemas[: schema.get("minItems", 0)]]


def _type_of(schema: Schema) -> str:
    types = schema.get("type")
    if isinstance(types, list):
        return next((name for name in cast("list[str]", types) if name != "null"), "null")
    if types is None:
        return "object" if "properties" in schema else "array" if "items" in schema else "string"
    return str(types)


def _number(schema: Schema) -> float:
    """Return the first valid number of: one step, the multiples of the step near a bound, the middle of the bounds."""
    step = schema.get("multipleOf") or 1
    bounds: list[float] = [schema[key] for key in BOUNDS if key in schema]
    multiples = [1, *(math.floor(bound / step) + offset for bound in bounds for offset in (0, 1, -1))]
    candidates = [*(multiple * step for multiple in multiples), sum(bounds) / max(len(bounds), 1)]
    return next((number for number in candidates if is_valid(number, schema)), 1)


def _text(schema: Schema, text: str) -> str:
    if (name := schema.get("format")) in FORMAT_EXAMPLES:
        return FORMAT_EXAMPLES[name]
    for candidate in (text, *PATTERN_EXAMPLES, *FORMAT_EXAMPLES.values()):
        fitted = candidate[: schema.get("maxLength")].ljust(schema.get("minLength", 0), candidate[-1:] or "a")
        if is_valid(fitted, {**schema, "type": "string"}):
            return fitted
    return text
