"""The smallest value that fits a JSON schema, for tools that no recipe knows.

Pure. It must not know tools or requests: a `wish` says what a free text should be, by the name of its field.
Recipes call it. What a schema of a tool may hold is covered; a `pattern` is met if one of a few usual texts fits it.
"""

import math
import re
from collections.abc import Callable
from typing import Any, cast

Wish = Callable[[str], str]
Schema = dict[str, Any]

DEEPEST = 12
FORMATS = {
    "date": "2026-01-31",
    "time": "12:00:00Z",
    "date-time": "2026-01-31T12:00:00Z",
    "duration": "PT1S",
    "email": "someone@example.com",
    "hostname": "example.com",
    "uri": "https://example.com/",
    "uri-reference": "/",
    "url": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "ipv4": "127.0.0.1",
    "ipv6": "::1",
}
USUAL = ("a", "A", "0", "1", "a1", "ab", "abc", "ABC", "A-1", "a_b", "/a", "/a.txt", "#ffffff", "+15550100", "12:00")


def example(schema: Any, wish: Wish | None = None) -> Any:
    """A value that the schema accepts, with nothing in it that is not required."""
    return _Filling(schema, wish or (lambda _: "a")).value(schema, "", 0, 0)


class _Filling:
    """Knows the whole schema, which references point into. `nth` asks for another value than those before."""

    def __init__(self, root: Any, wish: Wish) -> None:
        self._root = root
        self._wish = wish

    def value(self, schema: Any, name: str, nth: int, depth: int) -> Any:
        if not isinstance(schema, dict) or depth > DEEPEST:
            return self._wish(name)
        whole = self._plain(cast("Schema", schema), depth, nth)
        if "const" in whole:
            return whole["const"]
        if options := whole.get("enum"):
            return options[nth % len(options)]
        if "default" in whole and not nth:
            return whole["default"]
        match self._type(whole, nth):
            case "object":
                return self._object(whole, nth, depth)
            case "array":
                return self._array(whole, name, nth, depth)
            case "integer" | "number" as kind:
                return _number(whole, nth, whole_number=kind == "integer")
            case "boolean":
                return bool(nth % 2)
            case "null":
                return None
            case _:
                return _text(whole, self._wish(name), nth)

    def _plain(self, schema: Schema, depth: int, nth: int) -> Schema:
        """The schema without references, and with one way chosen where there are several."""
        for _ in range(DEEPEST):
            rest = {key: part for key, part in schema.items() if key not in ("$ref", "allOf", "anyOf", "oneOf")}
            if "$ref" in schema:
                schema = _merged(resolved(schema["$ref"], self._root), rest)
            elif parts := schema.get("allOf"):
                others = {key: schema[key] for key in ("anyOf", "oneOf") if key in schema}
                for part in parts:
                    rest = _merged(rest, self._plain(part, depth, nth))
                schema = {**rest, **others}
            elif ways := schema.get("anyOf") or schema.get("oneOf"):
                schema = _merged(rest, self._way(ways, depth))
            else:
                break
        return schema

    def _way(self, ways: list[Any], depth: int) -> Schema:
        """The first way that says something; deep inside, one that leads no deeper."""
        known = [cast("Schema", way) for way in ways if isinstance(way, dict)]
        spoken = [way for way in known if way.get("type") != "null"] or known
        flat = [way for way in known if "$ref" not in way and way.get("type") not in ("object", "array")]
        chosen = (flat or spoken) if depth > DEEPEST // 3 else spoken
        return chosen[0] if chosen else Schema()

    def _type(self, schema: Schema, nth: int) -> str:
        kind = schema.get("type")
        if isinstance(kind, list):
            kinds = cast("list[str]", kind)
            return next((one for one in kinds if one != "null"), "null")
        if kind is None:
            return "object" if "properties" in schema else "array" if "items" in schema else "string"
        return str(kind)

    def _object(self, schema: Schema, nth: int, depth: int) -> dict[str, Any]:
        known: dict[str, Any] = schema.get("properties") or {}
        wanted = list(dict.fromkeys(schema.get("required") or ()))
        if not wanted and nth:
            wanted = list(known)[:1]  # otherwise it could not differ from the one before
        least = schema.get("minProperties", 0)
        wanted += [key for key in known if key not in wanted][: max(0, least - len(wanted))]
        wanted += [f"key{number}" for number in range(least - len(wanted))]
        extra = schema.get("additionalProperties", {})
        return {key: self.value(known.get(key, extra), key, nth, depth + 1) for key in wanted}

    def _array(self, schema: Schema, name: str, nth: int, depth: int) -> list[Any]:
        first: list[Any] = schema.get("prefixItems") or []
        others = schema.get("items", {})
        least = max(schema.get("minItems", 0), min(nth, 1))
        kinds = [first[at] if at < len(first) else others for at in range(least)]
        step = 1 if schema.get("uniqueItems") else 0
        return [self.value(kind, name, nth + at * step, depth + 1) for at, kind in enumerate(kinds)]


def resolved(reference: str, root: Any) -> Schema:
    """What a reference within a schema points to; nothing, if it points nowhere."""
    found = root
    for part in reference.removeprefix("#").strip("/").split("/"):
        if part and isinstance(found, dict):
            found = cast("Schema", found).get(part.replace("~1", "/").replace("~0", "~"))
    return cast("Schema", found) if isinstance(found, dict) else Schema()


def _merged(one: Schema, other: Schema) -> Schema:
    """Both at once. Fields and demands add up; of two bounds the narrower counts."""
    both = {**one, **other}
    if "properties" in one and "properties" in other:
        both["properties"] = {**one["properties"], **other["properties"]}
    if "required" in one and "required" in other:
        both["required"] = [*one["required"], *other["required"]]
    for key in ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"):
        if key in one and key in other:
            both[key] = max(one[key], other[key])
    for key in ("maximum", "exclusiveMaximum", "maxLength", "maxItems"):
        if key in one and key in other:
            both[key] = min(one[key], other[key])
    return both


def _number(schema: Schema, nth: int, *, whole_number: bool) -> float:
    step: float = schema.get("multipleOf") or (1 if whole_number else 0)
    low, high = _bounds(schema, whole_number)
    if step:
        start = max(1, math.ceil(low / step)) if low > -math.inf else 1
        if start * step > high:
            start = math.floor(high / step)
            nth = -nth
        return (start + nth) * step
    if low <= 1 + nth <= high:
        return 1 + nth
    if low > -math.inf and high < math.inf:
        return low + (high - low) * (nth + 1) / (nth + 2)
    return low + 1 + nth if low > -math.inf else high - 1 - nth


def _bounds(schema: Schema, whole_number: bool) -> tuple[float, float]:
    low: float = schema.get("minimum", -math.inf)
    high: float = schema.get("maximum", math.inf)
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    if isinstance(above, int | float) and not isinstance(above, bool):
        low = max(low, math.floor(above) + 1 if whole_number else math.nextafter(above, math.inf))
    if isinstance(below, int | float) and not isinstance(below, bool):
        high = min(high, math.ceil(below) - 1 if whole_number else math.nextafter(below, -math.inf))
    return low, high


def _text(schema: Schema, wished: str, nth: int) -> str:
    if (kind := schema.get("format")) in FORMATS:
        return FORMATS[kind]
    least, most = schema.get("minLength", 0), schema.get("maxLength")
    text = f"{wished} {nth + 1}" if nth else wished
    if most is not None and len(text) > most:
        text = (str(nth + 1) if nth else wished)[:most]
    text = text.ljust(least, "a")
    if pattern := schema.get("pattern"):
        fitting = (one.ljust(least, one[-1])[:most] for one in (text, *USUAL, *FORMATS.values()))
        return next((one for one in fitting if len(one) >= least and re.search(pattern, one)), text)
    return text
