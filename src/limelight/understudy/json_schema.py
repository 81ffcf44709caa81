"""Validates values against JSON Schema, as far as tools use it, and creates minimal valid examples. Pure.

Unknown keywords are ignored. The `jsonschema` package is not used, because it would add five runtime dependencies; the
tests compare `is_valid` with a complete validator.
"""

import math
import re
from collections.abc import Callable
from typing import Any, cast

Schema = dict[str, Any]
TextFor = Callable[[str], str]
"""Type of a function that returns the text for a string field with this name."""

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
"""Texts that are tried for a string with a `pattern`; the first valid one is used."""
TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
    "array": list,
    "object": dict,
}


def is_valid(value: Any, schema: Any, root: Any = None) -> bool:
    """Whether a schema accepts a value. References are resolved in `root`, by default the schema itself."""
    if not isinstance(schema, dict):
        return schema is not False
    rules = cast("Schema", schema)
    root = rules if root is None else root
    types = rules.get("type", [])
    checks = (
        "$ref" not in rules or is_valid(value, resolve(rules["$ref"], root), root),
        "const" not in rules or value == rules["const"],
        "enum" not in rules or value in rules["enum"],
        not types or any(_has_type(value, name) for name in ([types] if isinstance(types, str) else types)),
        all(is_valid(value, part, root) for part in rules.get("allOf", ())),
        all(any(is_valid(value, way, root) for way in rules[key]) for key in ("anyOf", "oneOf") if key in rules),
    )
    if not all(checks):
        return False
    if isinstance(value, str):
        return _within(len(value), rules, "minLength", "maxLength") and bool(re.search(rules.get("pattern", ""), value))
    if isinstance(value, list):
        return _is_valid_array(cast("list[Any]", value), rules, root)
    if isinstance(value, dict):
        return _is_valid_object(cast("Schema", value), rules, root)
    return isinstance(value, bool) or not isinstance(value, int | float) or _is_valid_number(value, rules)


def _has_type(value: Any, name: str) -> bool:
    if isinstance(value, bool) and name in ("number", "integer"):
        return False
    if name == "integer":
        return isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return isinstance(value, TYPES.get(name, object))


def _within(value: float, rules: Schema, least: str, most: str) -> bool:
    return rules.get(least, -math.inf) <= value <= rules.get(most, math.inf)


def _is_valid_number(value: float, rules: Schema) -> bool:
    above, below = rules.get("exclusiveMinimum", -math.inf), rules.get("exclusiveMaximum", math.inf)
    step = rules.get("multipleOf")
    is_multiple = not step or math.isclose(value / step % 1, 0)
    return _within(value, rules, "minimum", "maximum") and above < value < below and is_multiple


def _is_valid_array(items: list[Any], rules: Schema, root: Any) -> bool:
    if rules.get("uniqueItems") and any(item in items[:at] for at, item in enumerate(items)):
        return False
    first = rules.get("prefixItems", [])
    schemas = [*first, *[rules.get("items", {})] * max(0, len(items) - len(first))]
    return _within(len(items), rules, "minItems", "maxItems") and all(
        is_valid(item, schema, root) for item, schema in zip(items, schemas, strict=False)
    )


def _is_valid_object(value: Schema, rules: Schema, root: Any) -> bool:
    if any(key not in value for key in rules.get("required", ())) or len(value) < rules.get("minProperties", 0):
        return False
    known, others = rules.get("properties", {}), rules.get("additionalProperties", {})
    return all(is_valid(item, known.get(key, others), root) for key, item in value.items())


def resolve(reference: str, root: Any) -> Schema:
    """Return the schema to which a local `$ref` points; an empty schema if there is none."""
    found = root
    for part in reference.removeprefix("#").strip("/").split("/"):
        if part and isinstance(found, dict):
            found = cast("Schema", found).get(part.replace("~1", "/").replace("~0", "~"))
    return cast("Schema", found) if isinstance(found, dict) else Schema()


def example(schema: Any, text_for: TextFor | None = None) -> Any:
    """Return a minimal value that a schema accepts. Does not support arrays of several unique items."""
    return _ExampleBuilder(schema, text_for or (lambda _: "a")).value(schema, "", 0)


class _ExampleBuilder:
    """Builds a valid example value for a schema. References are resolved in the root schema."""

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
        """Return a schema without references and `allOf`, and with one alternative of `anyOf` or `oneOf` chosen."""
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

    def _alternative(self, alternatives: list[Any], depth: int) -> Schema:
        """Return the first alternative that is not null; if deeply nested, a scalar one, so that the recursion ends."""
        known = [cast("Schema", schema) for schema in alternatives if isinstance(schema, dict)]
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
    """Return the first valid number among one step, multiples of the step near a bound, and the bounds' middle."""
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
