"""Checks JSON values against JSON Schemas, and converts texts to the values that a schema expects. Pure.

It supports the keywords that pydantic writes and people use for forms: types, enums, references, unions, objects, lists
and limits of numbers, texts and lists. Other keywords are ignored, so a value that passes may still be refused by the
agent.
"""

import difflib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, cast

from limelight.json_values import fields_of, items_of

Schema = Mapping[str, Any]

MAX_CHECKS = 100_000
"""Number of comparisons after which the rest of a value counts as valid. Unions of unions can grow exponentially."""
MAX_REFERENCES = 50
"""Number of references that are followed in a row, because a schema may refer to itself."""
SHOWN_CHARACTERS = 60
SIMILARITY = 0.7
"""Minimum similarity (0 to 1) of a suggested key to the unknown one, so that only likely misspellings match."""
TYPE_NAMES = {
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


class Mistake(NamedTuple):
    """A part of a value that does not fit its schema: its path, as `items[0].name`, and what is wrong."""

    path: str
    message: str


class Field(NamedTuple):
    """A field of an object schema. `schema` is without references at its top level."""

    name: str
    schema: Schema
    is_required: bool


def find_mistakes(value: object, schema: Schema) -> list[Mistake]:
    """Return what is wrong with a JSON value, in the order of the schema; an empty list if the value fits."""
    try:
        return list(_Check(schema).mistakes(value, schema, ""))
    except RecursionError:
        return [Mistake("", "the value is nested too deeply")]


def fits(value: object, schema: Schema) -> bool:
    """Whether a JSON value fits a schema."""
    return not find_mistakes(value, schema)


def fields(schema: Schema) -> list[Field]:
    """Return the fields of an object schema, in their order; an empty list if the schema names none."""
    root, schema = schema, resolve(schema, schema)
    required = items_of(schema.get("required"))
    return [
        Field(name, resolve(fields_of(field), root), name in required)
        for name, field in fields_of(schema.get("properties")).items()
    ]


def resolve(schema: Schema, root: Schema) -> Schema:
    """Return a schema with its top-level reference, as `#/$defs/Name`, replaced by that part of `root`."""
    for _ in range(MAX_REFERENCES):
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return schema
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        target: Schema = root if reference.startswith("#") else {}
        for key in filter(None, reference.removeprefix("#").split("/")):
            target = fields_of(target.get(key.replace("~1", "/").replace("~0", "~")))
        schema = {**target, **rest}
    return {}


def type_names(schema: Schema, root: Schema) -> set[str]:
    """Return the names of the JSON types that a schema accepts, with its references followed; empty if it accepts any.

    `root` is the schema whose `$defs` the references name.
    """
    schema = resolve(schema, root)
    if "type" in schema:
        return _types(schema)
    parts = [_types(resolve(fields_of(part), root)) for part in _alternatives(schema)]
    return {name for part in parts for name in part} if all(parts) else set()


def type_name(schema: Schema) -> str:
    """Return what a schema expects, in words, as "a whole number" or "one of red, green"."""
    if choices := choices_of(schema):
        return f"one of {', '.join(map(_shown, choices))}"
    names = [TYPE_NAMES.get(name, name) for name in sorted(_types(schema), key=lambda name: name == "null")]
    return " or ".join(names) or "a JSON value"


def choices_of(schema: Schema) -> list[Any]:
    """Return the values of which a schema accepts one; an empty list if it accepts others."""
    choices = [schema["const"]] if "const" in schema else items_of(schema.get("enum"))
    if choices:
        return choices
    parts = [fields_of(part) for part in _alternatives(schema)]
    listed = [choices_of(part) or ([None] if part.get("type") == "null" else []) for part in parts]
    return [choice for part in listed for choice in part] if listed and all(listed) else []


def parse_text(text: str, schema: Schema) -> Any:
    """Return the value that a person has written as text: a text itself where the schema expects one, else JSON.

    A text that is not JSON is returned unchanged.
    """
    types = _types(schema)
    if types and types <= {"string"} and not any(not isinstance(choice, str) for choice in choices_of(schema)):
        return text
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if fits(value, schema) or not fits(text, schema) else text


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return the end of an error message about an unknown key: the most similar known key, or all of them."""
    names = list(known)
    close = difflib.get_close_matches(word, names, n=1, cutoff=SIMILARITY)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; there are: {', '.join(names)}" if names else ""


def key_path(path: str, key: str) -> str:
    """Return the path of a key inside of the object at `path`."""
    return f"{path}.{key}" if path else key


class _Check:
    """One check of a value. It counts comparisons, so that no schema makes it run for long."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._left = MAX_CHECKS

    def mistakes(self, value: Any, schema: Schema, path: str) -> Iterator[Mistake]:
        self._left -= 1
        if self._left < 0:
            return
        schema = resolve(schema, self._root)
        for part in items_of(schema.get("allOf")):
            yield from self.mistakes(value, fields_of(part), path)
        if alternatives := _alternatives(schema):
            yield from self._union_mistakes(value, schema, alternatives, path)
        if not _has_type(value, schema.get("type")):
            yield Mistake(path, f"expected {type_name(schema)}, got {_shown(value)}")
            return
        if "const" in schema and not _is_same(value, schema["const"]):
            yield Mistake(path, f"expected {_shown(schema['const'])}, got {_shown(value)}")
        if (choices := items_of(schema.get("enum"))) and not any(_is_same(value, choice) for choice in choices):
            yield Mistake(path, f"expected {type_name(schema)}, got {_shown(value)}")
        match value:
            case dict():
                yield from self._object_mistakes(cast("dict[str, Any]", value), schema, path)
            case list():
                yield from self._list_mistakes(cast("list[Any]", value), schema, path)
            case str():
                yield from _limit_mistakes(len(value), schema, _TEXT_LIMITS, path)
                yield from _pattern_mistakes(value, schema, path)
            case int() | float() if not isinstance(value, bool):
                yield from _limit_mistakes(value, schema, _NUMBER_LIMITS, path)
            case _:
                pass

    def _union_mistakes(self, value: Any, schema: Schema, alternatives: list[Any], path: str) -> Iterator[Mistake]:
        """Yield the mistakes of the alternative whose type fits, if the value fits none."""
        parts = [resolve(fields_of(part), self._root) for part in alternatives]
        found: list[list[Mistake]] = []
        for part in parts:
            mistakes = list(self.mistakes(value, part, path))
            if not mistakes:
                return
            if "type" in part and _has_type(value, part["type"]):
                found.append(mistakes)
        if len(found) == 1:
            yield from found[0]
        else:
            expected = " or ".join(dict.fromkeys(type_name(part) for part in parts))
            yield Mistake(path, f"expected {expected}, got {_shown(value)}")

    def _object_mistakes(self, value: dict[str, Any], schema: Schema, path: str) -> Iterator[Mistake]:
        properties = fields_of(schema.get("properties"))
        for key in items_of(schema.get("required")):
            if key not in value:
                yield Mistake(key_path(path, key), f"{key!r} is required")
        others = schema.get("additionalProperties", True)
        for key, item in value.items():
            if key in properties:
                yield from self.mistakes(item, fields_of(properties[key]), key_path(path, key))
            elif others is False:
                yield Mistake(key_path(path, key), f"there is no {key!r}{suggestion(key, properties)}")
            else:
                yield from self.mistakes(item, fields_of(others), key_path(path, key))

    def _list_mistakes(self, value: list[Any], schema: Schema, path: str) -> Iterator[Mistake]:
        yield from _limit_mistakes(len(value), schema, _LIST_LIMITS, path)
        first = items_of(schema.get("prefixItems"))
        for at, item in enumerate(value):
            part = first[at] if at < len(first) else schema.get("items")
            yield from self.mistakes(item, fields_of(part), f"{path}[{at}]")


Limit = tuple[str, Callable[[Any, Any], bool], str]
_NUMBER_LIMITS: tuple[Limit, ...] = (
    ("minimum", lambda value, limit: value >= limit, "a number of at least {}"),
    ("maximum", lambda value, limit: value <= limit, "a number of at most {}"),
    ("exclusiveMinimum", lambda value, limit: value > limit, "a number above {}"),
    ("exclusiveMaximum", lambda value, limit: value < limit, "a number below {}"),
)
_TEXT_LIMITS: tuple[Limit, ...] = (
    ("minLength", lambda value, limit: value >= limit, "a text of at least {} characters"),
    ("maxLength", lambda value, limit: value <= limit, "a text of at most {} characters"),
)
_LIST_LIMITS: tuple[Limit, ...] = (
    ("minItems", lambda value, limit: value >= limit, "a list of at least {} items"),
    ("maxItems", lambda value, limit: value <= limit, "a list of at most {} items"),
)


def _limit_mistakes(size: float, schema: Schema, limits: tuple[Limit, ...], path: str) -> Iterator[Mistake]:
    for key, holds, text in limits:
        limit = schema.get(key)
        if isinstance(limit, int | float) and not holds(size, limit):
            yield Mistake(path, f"expected {text.format(limit)}, got {size}")


def _pattern_mistakes(value: str, schema: Schema, path: str) -> Iterator[Mistake]:
    pattern = schema.get("pattern")
    try:
        if isinstance(pattern, str) and re.search(pattern, value) is None:
            yield Mistake(path, f"expected a text that matches {pattern}, got {_shown(value)}")
    except re.error:  # patterns of JSON Schema are those of JavaScript
        pass


def _alternatives(schema: Schema) -> list[Any]:
    return items_of(schema.get("anyOf")) or items_of(schema.get("oneOf"))


def _types(schema: Schema) -> set[str]:
    """Return the names of the JSON types that a schema accepts; empty if it accepts any or does not say."""
    named = schema.get("type")
    if isinstance(named, str):
        return {named}
    if isinstance(named, list):
        return set(map(str, items_of(cast("object", named))))
    parts = [_types(fields_of(part)) for part in _alternatives(schema)]
    return {name for part in parts for name in part} if all(parts) else set()


def _has_type(value: object, named: object) -> bool:
    if isinstance(named, list):
        return any(_has_type(value, name) for name in items_of(cast("object", named)))
    match named:
        case "string":
            return isinstance(value, str)
        case "integer":
            return (isinstance(value, int) and not isinstance(value, bool)) or (
                isinstance(value, float) and value.is_integer()
            )
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "boolean":
            return isinstance(value, bool)
        case "array":
            return isinstance(value, list)
        case "object":
            return isinstance(value, dict)
        case "null":
            return value is None
        case _:
            return True


def _is_same(value: object, other: object) -> bool:
    """Whether two JSON values are equal. Python takes `True` and 1 for equal; JSON does not."""
    return value == other and isinstance(value, bool) == isinstance(other, bool)


def _shown(value: object) -> str:
    """Return a value for an error message: a shortened text in quotes, a number, or its type."""
    match value:
        case str():
            return json.dumps(
                value if len(value) <= SHOWN_CHARACTERS else f"{value[:SHOWN_CHARACTERS]}…", ensure_ascii=False
            )
        case None | bool() | int() | float():
            return json.dumps(value)
        case dict():
            return TYPE_NAMES["object"]
        case list():
            return TYPE_NAMES["array"]
        case _:
            return type(value).__name__
