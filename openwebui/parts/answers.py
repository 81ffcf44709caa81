"""Turns the JSON Schema of an answer into the fields of dialogs, and typed texts into values."""

import json
from typing import Any, NamedTuple, cast

from openwebui.parts.frames import Json, as_object, as_text

MAX_REFERENCES = 20


class AnswerField(NamedTuple):
    """One value that a dialog asks for. `name` is "" if the answer is this value alone."""

    name: str
    schema: Json
    is_required: bool

    @property
    def title(self) -> str:
        return str(self.schema.get("title") or self.name or "Your answer")

    @property
    def choices(self) -> list[Json]:
        return listed_choices(self.schema)


def as_list(value: Any) -> list[Any]:
    """Return a list unchanged, and an empty one for any other value."""
    return cast(list[Any], value) if isinstance(value, list) else []


def answer_fields(schema: Json) -> list[AnswerField]:
    """Return a field for each property of an object schema, or one field for any other schema."""
    root = resolved_schema(schema, schema)
    required = as_list(root.get("required"))
    return [
        AnswerField(name, resolved_schema(as_object(one), schema), name in required)
        for name, one in as_object(root.get("properties")).items()
    ] or [AnswerField("", root, is_required=True)]


def resolved_schema(schema: Json, root: Json) -> Json:
    """Return a schema with its `$ref` followed, and without the alternative null."""
    for _ in range(MAX_REFERENCES):
        ref = schema.get("$ref")
        if not isinstance(ref, str):
            break
        target: Any = root
        for part in filter(None, ref.removeprefix("#").split("/")):
            target = as_object(target).get(part)
        schema = {**as_object(target), **{key: value for key, value in schema.items() if key != "$ref"}}
    others = [as_object(one) for one in schema.get("anyOf") or () if as_object(one).get("type") != "null"]
    if len(others) == 1:
        schema = {**resolved_schema(others[0], root), **{key: value for key, value in schema.items() if key != "anyOf"}}
    return schema


def listed_choices(schema: Json) -> list[Json]:
    """Return the values that a schema lists, as `{"label", "value", "description"}`; [] if it lists none."""
    if isinstance(schema.get("enum"), list):
        return [{"label": as_text(value), "value": value, "description": ""} for value in schema["enum"]]
    if schema.get("type") == "boolean":
        return [{"label": label, "value": label == "Yes", "description": ""} for label in ("Yes", "No")]
    alternatives = [as_object(one) for one in schema.get("oneOf") or schema.get("anyOf") or ()]
    if not alternatives or not all("const" in one for one in alternatives):
        return []
    return [
        {
            "label": str(one.get("title") or as_text(one["const"])),
            "value": one["const"],
            "description": str(one.get("description") or ""),
        }
        for one in alternatives
    ]


def typed_value(text: str, schema: Json) -> Any:
    """Return the JSON value that a typed text stands for. Raises ValueError with a sentence for the user."""
    choices = listed_choices(schema)
    for choice in choices:
        if text.strip().casefold() in (str(choice["label"]).casefold(), as_text(choice["value"]).casefold()):
            return choice["value"]
    if choices:
        raise ValueError(f"Choose one of: {', '.join(str(choice['label']) for choice in choices)}.")
    types = as_list(schema.get("type")) or [schema["type"]] if "type" in schema else []
    items = as_object(schema.get("items"))
    if "array" in types and not text.lstrip().startswith("[") and _is_line(items):
        return [typed_value(part.strip(), items) for part in text.replace("\n", ",").split(",") if part.strip()]
    if "string" in types or not types:
        return text
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"This is not valid JSON: {error}.") from None


def _is_line(schema: Json) -> bool:
    return bool(listed_choices(schema)) or schema.get("type") in (None, "string", "number", "integer")


def initial_text(schema: Json) -> str:
    """Return the default of a schema as the text with which a dialog begins."""
    default = schema.get("default")
    return "" if default is None else as_text(default)
