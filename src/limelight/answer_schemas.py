"""JSON Schemas of answers to an agent's questions: why a value does not fit, and which value a typed text stands for.
Pure; `json_schema` compares the values.

A choice is a value that a schema lists, with the label and the description that people see.
"""

from typing import Any, NamedTuple

import msgspec

from limelight.json_schema import Schema, find_mistakes, parse_text, resolve, type_names
from limelight.json_values import fields_of, items_of

TRUE_WORDS, FALSE_WORDS = ("true", "yes", "y"), ("false", "no", "n")


class Choice(NamedTuple):
    """One of the values that a schema allows, with the label that people see."""

    value: Any
    label: str
    description: str = ""


def problem_with(value: Any, schema: Schema) -> str:
    """Return why a value does not fit a schema, as a sentence without a full stop; "" if it fits."""
    mistakes = find_mistakes(value, schema)
    return f"{mistakes[0].path or 'the answer'}: {mistakes[0].message}" if mistakes else ""


def choices(schema: Schema) -> list[Choice]:
    """Return the values that a schema lists; [] if it lists none."""
    if listed := items_of(schema.get("enum")):
        return [Choice(value, _text(value)) for value in listed]
    alternatives = [fields_of(one) for one in items_of(schema.get("oneOf") or schema.get("anyOf"))]
    if not alternatives or not all("const" in one for one in alternatives):
        return []
    return [
        Choice(one["const"], str(one.get("title") or _text(one["const"])), str(one.get("description") or ""))
        for one in alternatives
    ]


def takes_text(schema: Schema, root: Schema) -> bool:
    """Whether a schema accepts texts, so that what a person types needs no conversion. `root` has its `$defs`."""
    types = type_names(schema, root)
    return not choices(resolve(schema, root)) and (not types or "string" in types)


def parse_answer(text: str, schema: Schema) -> Any:
    """Return the value that a typed text stands for. Raises ValueError with a sentence for the person.

    A choice is named by its label or value. A text stays a text where the schema accepts one; otherwise it is JSON, or
    yes or no.
    """
    value = _parse(text, schema, schema)
    if problem := problem_with(value, schema):
        raise ValueError(problem)
    return value


def _parse(text: str, schema: Schema, root: Schema) -> Any:
    schema = resolve(schema, root)
    types = type_names(schema, root)
    if listed := choices(schema):
        return _choose(text, listed)
    if "array" in types and not text.lstrip().startswith("["):
        items = resolve(fields_of(schema.get("items")), root)
        if choices(items) or takes_text(items, root):
            return [_parse(part.strip(), items, root) for part in text.split(",") if part.strip()]
    if takes_text(schema, root):
        return text
    word = text.strip().casefold()
    if "boolean" in types and word in (*TRUE_WORDS, *FALSE_WORDS):
        return word in TRUE_WORDS
    return parse_text(text, {**schema, "$defs": root.get("$defs") or {}})


def _choose(text: str, listed: list[Choice]) -> Any:
    word = text.strip().casefold()
    for choice in listed:
        if word in (choice.label.casefold(), _text(choice.value).casefold()):
            return choice.value
    raise ValueError(f"the answer: expected one of {', '.join(choice.label for choice in listed)}")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
