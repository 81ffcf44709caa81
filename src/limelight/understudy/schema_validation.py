"""Validation of values by a JSON Schema, as far as tools use the language. Pure. Unknown keywords are ignored.

The `jsonschema` package is not used, because it would add five runtime dependencies; the tests compare `is_valid` with
a complete validator.
"""

import math
import re
from typing import Any, cast

Schema = dict[str, Any]

TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
    "array": list,
    "object": dict,
}


def is_valid(value: Any, schema: Any, root: Any = None) -> bool:
    """Whether the schema accepts the value. References are resolved in `root`, by default the schema itself."""
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
    """Return the schema that a local `$ref` points to; an empty schema if the target does not exist."""
    found = root
    for part in reference.removeprefix("#").strip("/").split("/"):
        if part and isinstance(found, dict):
            found = cast("Schema", found).get(part.replace("~1", "/").replace("~0", "~"))
    return cast("Schema", found) if isinstance(found, dict) else Schema()
