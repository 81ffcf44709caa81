"""Whether a value fits a JSON schema, as far as descriptions of tools go.

Pure. Recipes check with it that what they wish for is allowed. Keywords that it does not know allow everything.
"""

import math
import re
from typing import Any, cast

from limelight.understudy.schema_examples import resolved

TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
    "array": list,
    "object": dict,
}


def fits(value: Any, schema: Any, root: Any = None) -> bool:
    """True if the schema accepts the value. References point into `root`, or into the schema itself."""
    if not isinstance(schema, dict):
        return schema is not False
    rules = cast("dict[str, Any]", schema)
    root = rules if root is None else root
    if "$ref" in rules and not fits(value, resolved(rules["$ref"], root), root):
        return False
    if "const" in rules and value != rules["const"]:
        return False
    if "enum" in rules and value not in rules["enum"]:
        return False
    kinds = rules.get("type", [])
    named = [kinds] if isinstance(kinds, str) else kinds
    if named and not any(_is(value, kind) for kind in named):
        return False
    if not all(fits(value, part, root) for part in rules.get("allOf", ())):
        return False
    if any(key in rules and not any(fits(value, way, root) for way in rules[key]) for key in ("anyOf", "oneOf")):
        return False
    if isinstance(value, str):
        return _text_fits(value, rules)
    if isinstance(value, list):
        return _list_fits(cast("list[Any]", value), rules, root)
    if isinstance(value, dict):
        return _object_fits(cast("dict[str, Any]", value), rules, root)
    return isinstance(value, bool) or not isinstance(value, int | float) or _number_fits(value, rules)


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool) and kind in ("number", "integer"):
        return False
    if kind == "integer":
        return isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return isinstance(value, TYPES.get(kind, object))


def _text_fits(value: str, rules: dict[str, Any]) -> bool:
    if not rules.get("minLength", 0) <= len(value) <= rules.get("maxLength", math.inf):
        return False
    return "pattern" not in rules or re.search(rules["pattern"], value) is not None


def _number_fits(value: float, rules: dict[str, Any]) -> bool:
    low, high = rules.get("minimum", -math.inf), rules.get("maximum", math.inf)
    above, below = rules.get("exclusiveMinimum", -math.inf), rules.get("exclusiveMaximum", math.inf)
    step = rules.get("multipleOf")
    return low <= value <= high and above < value < below and (not step or math.isclose(value / step % 1, 0))


def _list_fits(value: list[Any], rules: dict[str, Any], root: Any) -> bool:
    if not rules.get("minItems", 0) <= len(value) <= rules.get("maxItems", math.inf):
        return False
    if rules.get("uniqueItems") and any(one in value[:at] for at, one in enumerate(value)):
        return False
    first = rules.get("prefixItems", [])
    kinds = [*first, *[rules.get("items", {})] * max(0, len(value) - len(first))]
    return all(fits(one, kind, root) for one, kind in zip(value, kinds, strict=False))


def _object_fits(value: dict[str, Any], rules: dict[str, Any], root: Any) -> bool:
    known = rules.get("properties", {})
    others = rules.get("additionalProperties", {})
    if any(key not in value for key in rules.get("required", ())) or len(value) < rules.get("minProperties", 0):
        return False
    return all(fits(one, known.get(key, others), root) for key, one in value.items())
