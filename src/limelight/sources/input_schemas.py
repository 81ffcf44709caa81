"""What an agent takes besides a question: an input object and context values, as JSON Schemas. Pure.

A source describes its agent with `InputSchemas`. The server checks requests with them, and clients make forms of them.
`input` is what the agent works on in a turn; `context` configures the agent, for example its model, and comes from the
settings or, where they allow it, from a request.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from limelight.json_schema import Mistake, Schema, find_mistakes, fits
from limelight.json_values import fields_of, json_text

RESERVED_KEYS = frozenset({"thread_id", "user_id", "user_name", "session_id", "run_id"})
"""Keys of input and context that only the server sets, because they name the user, the run or the agent's memory."""
RESERVED_PREFIXES = ("checkpoint_", "langgraph_auth_", "__")
OPEN_OBJECT: Schema = {"type": "object"}
"""The schema of an object with any keys."""


class InputSchemas(msgspec.Struct, frozen=True, kw_only=True):
    """The JSON Schemas of an agent's input and context."""

    input: Schema | None = None
    """The schema of the input object; None if the agent takes only a question."""
    question_key: str = ""
    """The key of the input that takes the question; "" if a question alone does not fit the agent."""
    has_more_than_question: bool = False
    """Whether the input says more than a question, so that clients should offer it."""
    context: Schema | None = None
    """The schema of the context. None if the agent takes none."""
    configurable: Schema | None = None
    """The schema of further context values that parts of the agent take, such as its model."""
    is_known: bool = True
    """False while the agent is not created yet."""

    @property
    def all_context(self) -> Schema | None:
        """The schema of all context values; None if the agent takes none."""
        if self.context is None or self.configurable is None:
            return self.context if self.configurable is None else self.configurable
        both = (self.configurable, self.context)
        return {
            **self.context,
            "properties": {name: field for schema in both for name, field in _dict_in(schema, "properties").items()},
            "$defs": {name: part for schema in both for name, part in _dict_in(schema, "$defs").items()},
            "required": [name for schema in both for name in schema.get("required") or ()],
        }


NO_SCHEMAS = InputSchemas()
"""The schemas of an agent that takes only a question."""
UNKNOWN_SCHEMAS = InputSchemas(is_known=False)
"""The schemas of an agent that is not created yet."""


def _dict_in(schema: Schema, key: str) -> dict[str, Any]:
    return fields_of(schema.get(key))


def is_reserved(key: str) -> bool:
    """Whether only the server may set a key of the input or the context."""
    return key in RESERVED_KEYS or key.startswith(RESERVED_PREFIXES)


def without_reserved(schema: Schema) -> Schema:
    """Return an object schema without the fields that only the server sets."""
    properties = {key: value for key, value in fields_of(schema.get("properties")).items() if not is_reserved(key)}
    required = [key for key in schema.get("required") or () if key in properties]
    return {**schema, "properties": properties, "required": required}


def value_mistakes(values: Mapping[str, Any], schema: Schema | None, *, is_complete: bool = False) -> list[Mistake]:
    """Return the mistakes in input or context values: reserved or unknown keys, and values of the wrong type.

    Required keys may be missing unless `is_complete` is true. Without a schema, only reserved keys are mistakes.
    """
    mistakes = list(_reserved_mistakes(values))
    if schema is None:
        return mistakes
    checked: Schema = schema if is_complete else {**schema, "required": ()}
    return [*mistakes, *find_mistakes({key: value for key, value in values.items() if not is_reserved(key)}, checked)]


def option_mistakes(
    schemas: InputSchemas, input_values: Mapping[str, Any], context: Mapping[str, Any]
) -> Iterator[Mistake]:
    """Yield the mistakes in the `input` and `context` of an agent's settings; their paths begin with these words."""
    if not schemas.is_known:
        return
    given = (("input", input_values, schemas.input), ("context", context, schemas.all_context))
    for name, values, schema in given:
        if values and schema is None:
            yield Mistake(name, f"this agent takes no {name}")
        elif values:
            yield from (Mistake(f"{name}.{path}", message) for path, message in value_mistakes(values, schema))


def missing_keys(values: Mapping[str, Any], schema: Schema | None) -> list[str]:
    """Return the required keys that are not among the values."""
    return [key for key in (schema or {}).get("required") or () if key not in values]


def input_in_question(text: str, schemas: InputSchemas) -> dict[str, Any] | None:
    """Return the input object that a question contains as JSON; None if the question is not an input of the agent."""
    if not schemas.has_more_than_question or schemas.input is None or not text.lstrip().startswith("{"):
        return None
    try:
        values = fields_of(msgspec.json.decode(text))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    return values if values and not any(map(is_reserved, values)) and fits(values, schemas.input) else None


def input_text(values: Mapping[str, Any]) -> str:
    """Return input values as text for people: a line for each key, values that are not texts as JSON."""
    return "\n".join(f"{key}: {value if isinstance(value, str) else _json(value)}" for key, value in values.items())


def _json(value: object) -> str:
    return "null" if value is None else json_text(value)


def _reserved_mistakes(values: Mapping[str, Any]) -> Iterator[Mistake]:
    for key in values:
        if is_reserved(key):
            yield Mistake(key, f"{key!r} is reserved: only the server sets it")
