"""Finds the question, and the JSON Schema of its answer, in the value of an `interrupt(value)` of a graph. Pure.

Such values have no standard. A text is the question itself. A dict may have the question, a JSON Schema, a list of
options or a list of fields under one of several usual keys, or may itself be a JSON Schema. Any other value takes any
answer.
"""

from typing import Any, NamedTuple

from limelight.json_values import fields_of, items_of
from limelight.sources.tool_results import args_value

QUESTION_KEYS = (
    *("question", "prompt", "message", "query", "ask", "text", "title"),
    *("instructions", "instruction", "description", "task"),
)
"""Keys under which a value may have its question, the likeliest first."""
SCHEMA_KEYS = (
    *("response_schema", "answer_schema", "resume_schema", "requestedSchema", "requested_schema"),
    *("json_schema", "input_schema", "schema"),
)
OPTION_KEYS = ("options", "choices", "allowed_values", "allowed_answers", "enum", "buttons")
OPTION_VALUE_KEYS = ("value", "const", "id", "key")
OPTION_LABEL_KEYS = ("label", "title", "name", "text")
SEVERAL_KEYS = ("multiple", "multi", "multi_select", "multiselect", "multiSelect", "allow_multiple")
"""Keys that are true if a person may choose several options."""
TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")
TYPE_NAMES = {
    "str": "string",
    "text": "string",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "list": "array",
    "tuple": "array",
    "set": "array",
    "dict": "object",
}
"""JSON Schema's names for Python's names of types."""


class Question(NamedTuple):
    """What an interrupted graph asks: a text for the person, and the JSON Schema of the answer."""

    text: str
    answer_schema: dict[str, Any]


def question_of(value: Any, response_schema: Any = None) -> Question:
    """Return the question in a JSON value that a graph was interrupted with.

    `response_schema` is the schema that the graph gave to `interrupt`; without one, the value may contain it.
    """
    content = fields_of(value)
    given = _schema_in(content) if response_schema is None else fields_of(response_schema)
    schema = given or _options_in(content) or _fields_in(content) or {}
    texts = (content.get(key) for key in QUESTION_KEYS)
    text = value if isinstance(value, str) else next((t for t in texts if isinstance(t, str) and t.strip()), "")
    return Question(text.strip(), schema)


def is_schema(value: Any) -> bool:
    """Whether a value is a JSON Schema of an object, of a list of choices, or of another value."""
    schema = fields_of(value)
    if isinstance(schema.get("properties"), dict) or any(items_of(schema.get(key)) for key in ("anyOf", "oneOf")):
        return True
    return schema.get("type") in TYPES or bool(items_of(schema.get("enum")))


def _schema_in(content: dict[str, Any]) -> dict[str, Any]:
    for key in SCHEMA_KEYS:
        if is_schema(content.get(key)):
            return fields_of(content[key])
    described = isinstance(content.get("properties"), dict) and content.get("type", "object") == "object"
    listed = content.get("type") in TYPES and bool(items_of(content.get("enum")))
    return content if described or listed else {}


def _options_in(content: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of the options that a value lists, as a list or as an object from values to labels."""
    options = next((content[key] for key in OPTION_KEYS if content.get(key)), None)
    labels = fields_of(options)
    if labels:
        one_of = [{"const": value, "title": str(label)} for value, label in labels.items()]
    else:
        one_of = [_option(option) for option in items_of(options)]
    if not one_of or not all("const" in option for option in one_of):
        return {}
    is_plain = all(option.keys() == {"const"} for option in one_of)
    choice: dict[str, Any] = {"enum": [option["const"] for option in one_of]} if is_plain else {"oneOf": one_of}
    several = any(content.get(key) is True for key in SEVERAL_KEYS)
    return {"type": "array", "items": choice} if several else choice


def _option(option: Any) -> dict[str, Any]:
    """Return an option as a schema with a `const`; an empty one if the value is not an option."""
    if isinstance(option, str | int | float):
        return {"const": option}
    content = fields_of(option)
    label = next((content[key] for key in OPTION_LABEL_KEYS if isinstance(content.get(key), str)), None)
    value = next((content[key] for key in OPTION_VALUE_KEYS if content.get(key) is not None), label)
    if value is None:
        return {}
    described = {"description": content["description"]} if isinstance(content.get("description"), str) else {}
    return {"const": value, **({} if label is None else {"title": label}), **described}


def _fields_in(content: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object with the fields that a value lists by name; empty if it lists none."""
    listed = [_named(field) for field in items_of(content.get("fields"))]
    named = {str(name): field for field in listed if (name := field.get("name") or field.get("key"))}
    if not named or len(named) != len(listed):
        return {}
    required = [name for name, field in named.items() if field.get("required", True) is not False]
    properties = {name: _field(field) for name, field in named.items()}
    return {"type": "object", "properties": properties, "required": required}


def _named(field: Any) -> dict[str, Any]:
    """Return a listed field as an object; it may be only a name."""
    if isinstance(field, str):
        return {"name": field}
    return fields_of(field)


def _field(field: dict[str, Any]) -> dict[str, Any]:
    type_ = json_type(field.get("type"))
    texts = {"title": field.get("label") or field.get("title"), "description": field.get("description")}
    options = _options_in(field)
    schema: dict[str, Any] = options if options else {"type": type_ or "string"}
    default = {"default": field["default"]} if field.get("default") is not None else {}
    return {**schema, **{key: text for key, text in texts.items() if isinstance(text, str)}, **default}


def json_type(name: Any) -> str:
    """Return JSON Schema's name for the name of a type; "" if it is unknown."""
    word = str(name or "").strip().lower()
    return word if word in TYPES else TYPE_NAMES.get(word, "")


def shown_args(value: Any) -> dict[str, Any]:
    """Return a JSON value as the arguments of an approval request."""
    args = args_value(value)
    return args if isinstance(args, dict) and isinstance(value, dict) else {"value": value}
