"""Reads the input, the context and the configurable fields of a graph, as JSON Schemas and as Python types.

Input and context are TypedDicts, dataclasses or pydantic models. Each field is described on its own, so that one field
without a JSON form (a table, a connection) does not hide the others. This module imports LangChain and pydantic, so it
is imported only when there is a graph.
"""

import dataclasses
import inspect
import types
import typing
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Annotated, Any, ClassVar, Union, cast, get_args, get_origin

import msgspec
from langchain_core.messages import BaseMessage
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import PydanticUndefined, to_jsonable_python

from limelight.errors import AgentFailed
from limelight.json_schema import Schema
from limelight.json_values import fields_of, safe_text
from limelight.sources.base import NO_OPTIONS, Options
from limelight.sources.input_schemas import OPEN_OBJECT, InputSchemas, is_reserved, without_reserved

TEXT_KEYS = ("input", "question", "query", "task", "prompt", "topic", "text", "message")
"""Input keys that may take the question in a graph without `messages`, most likely first."""
MESSAGES = "messages"
PLAIN_MODULES = ("builtins", "collections.abc", "typing")
"""Modules whose types, with a few exceptions, stand for JSON values."""
MAX_NESTING = 20
"""Depth to which the parts of a type are examined, because types can refer to themselves."""
_MISSING = object()


class GraphField(msgspec.Struct, frozen=True):
    """One field of a graph's input or context, with its Python type."""

    name: str
    annotation: Any
    is_required: bool
    default: Any = _MISSING
    description: str = ""


class GraphInput(msgspec.Struct, frozen=True):
    """The fields of a graph's input, and how strict the graph is about them."""

    fields: Mapping[str, GraphField]
    """Empty for a graph whose input is a plain value."""
    kind: Any = None
    """The class of the input; for a function, the type of its first parameter."""
    is_function: bool = False
    is_strict: bool = False
    """Whether the graph fails if a required field is missing, because its fields are those of a class."""

    @property
    def question_key(self) -> str:
        """The key that takes the question; "" if there is none."""
        if MESSAGES in self.fields or (not self.fields and self.takes_object):
            return MESSAGES
        texts = [name for name, field in self.fields.items() if without_none(field.annotation) is str]
        named = next((key for key in TEXT_KEYS if key in texts), "")
        if named or len(texts) != 1:
            return named
        is_extra = bool(self.required) and texts[0] not in self.required
        return "" if is_extra else texts[0]

    @property
    def required(self) -> list[str]:
        return [name for name, field in self.fields.items() if field.is_required]

    @property
    def takes_object(self) -> bool:
        """Whether the input is an object: one with known fields, or any for a function that takes a dict."""
        return bool(self.fields) or (self.is_function and _is_mapping(self.kind))

    @property
    def has_more_than_question(self) -> bool:
        """Whether the input says more than a question."""
        if not self.fields:
            return self.takes_object
        return [name for name in self.fields if not is_reserved(name)] != [self.question_key]


def graph_input_of(graph: Any) -> GraphInput:
    """Return the fields of a graph's input."""
    builder = getattr(graph, "builder", None)
    if builder is None:
        return _function_input_of(graph)
    kind = builder.input_schema
    found = fields_of_type(kind)
    if not found and "__root__" in builder.channels:  # the state is one value, such as a list of messages
        return GraphInput({}, without_none(kind), is_function=True)
    is_explicit = kind is not builder.state_schema
    is_class = not _is_typed_dict(kind)
    channels = builder.channels  # without managed values
    known = {
        name: msgspec.structs.replace(
            field,
            is_required=field.is_required and (is_explicit or is_class) and not _has_initial_value(channels[name]),
        )
        for name, field in found.items()
        if name in channels
    }
    return GraphInput(known, kind, is_strict=is_class)


def _function_input_of(graph: Any) -> GraphInput:
    """Return the input of an `@entrypoint` function, or of a graph that was built from channels."""
    if not isinstance(graph.input_channels, str):
        names = [name for name in graph.input_channels if name in graph.channels]
        return GraphInput({n: GraphField(n, _channel_type(graph, n), is_required=False) for n in names})
    kind = _parameter_type(graph)
    return GraphInput(fields_of_type(kind), kind, is_function=True, is_strict=not _is_typed_dict(kind))


def _channel_type(graph: Any, name: str) -> Any:
    return getattr(graph.channels[name], "UpdateType", Any)


def _parameter_type(graph: Any) -> Any:
    """Return the type of the first parameter of an `@entrypoint` function, resolved if it is written as a text."""
    kind = getattr(graph.channels.get(graph.input_channels), "typ", None)
    if not isinstance(kind, str):
        return kind
    for node in graph.nodes.values():
        bound = getattr(node, "bound", None)
        function = inspect.unwrap(getattr(bound, "func", None) or getattr(bound, "afunc", None) or (lambda: None))
        try:
            hints = typing.get_type_hints(function, include_extras=True)
            return hints[next(iter(inspect.signature(function).parameters))]
        except Exception:  # names that exist only while types are checked
            continue
    name = kind.partition("[")[0].rpartition(".")[2]  # the name of the outer type is enough for a plain value
    plain: dict[str, Any] = {"list": list, "List": list, "Sequence": list, "dict": dict, "Dict": dict, "str": str}
    return plain.get(name)


# JSON Schemas


def input_schemas(graph: Any, options: Options = NO_OPTIONS) -> InputSchemas:
    """Return the JSON Schemas of a graph.

    Keys that the settings set are not required; input values of the settings are shown as defaults, context values are
    not, because they may be secret.
    """
    found = graph_input_of(graph)
    return InputSchemas(
        input=_input_schema(found, options.input),
        question_key=found.question_key,
        has_more_than_question=found.has_more_than_question,
        context=_context_schema(graph, options.context),
        configurable=_configurable_schema(graph, options.context),
    )


def _input_schema(found: GraphInput, defaults: Mapping[str, Any]) -> Schema | None:
    if not found.fields:
        return OPEN_OBJECT if found.takes_object or (found.is_function and found.kind in (Any, None)) else None
    schema = without_reserved(_object_schema(found.fields.values(), defaults))
    properties = {
        name: {**field, "default": defaults[name]} if name in defaults else field
        for name, field in schema["properties"].items()
    }
    return {**schema, "properties": properties}


def _is_mapping(kind: Any) -> bool:
    kind = get_origin(kind) or kind
    return isinstance(kind, type) and issubclass(kind, Mapping) and not _is_typed_dict(kind)


def _context_schema(graph: Any, values: Mapping[str, Any]) -> Schema | None:
    """Return the schema of a graph's context. A graph that declares none may read any `configurable` value."""
    found = context_fields(graph)
    if not found:
        return OPEN_OBJECT if graph.context_schema is None and not _config_specs(graph) else None
    return without_reserved(_object_schema(found.values(), values))


def _configurable_schema(graph: Any, values: Mapping[str, Any]) -> Schema | None:
    """Return the schema of the values that runnables of the graph take from `configurable`."""
    known = context_fields(graph)
    found = [
        GraphField(spec.id, spec.annotation, False, spec.default, spec.description or spec.name or "")
        for spec in _config_specs(graph)
        if spec.id not in known
    ]
    return _object_schema(found, values) if found else None


def context_fields(graph: Any) -> dict[str, GraphField]:
    """Return the fields of a graph's context; empty if the graph has none. A TypedDict's fields are not required.

    LangGraph makes an object of the values unless the context is a TypedDict, whose fields nodes often read with
    defaults.
    """
    found = fields_of_type(graph.context_schema)
    if not _is_typed_dict(graph.context_schema):
        return found
    return {name: msgspec.structs.replace(field, is_required=False) for name, field in found.items()}


def _config_specs(graph: Any) -> list[Any]:
    """Return the `ConfigurableField`s of the runnables that are nodes of a graph."""
    found: dict[str, Any] = {}
    for node in getattr(graph, "nodes", {}).values():
        try:
            specs = list(getattr(getattr(node, "bound", None), "config_specs", ()))
        except Exception:  # a property of the user's own runnable
            continue
        found.update({spec.id: spec for spec in specs if not is_reserved(spec.id)})
    return list(found.values())


class _LenientJsonSchema(GenerateJsonSchema):
    """Describes values as leniently as LangGraph takes them: types without a JSON form as any value, and TypedDicts."""

    ignored_warning_kinds: ClassVar[Any] = {"skipped-choice", "non-serializable-default", "skipped-discriminator"}

    def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> JsonSchemaValue:
        return {}

    def typed_dict_schema(self, schema: Any) -> JsonSchemaValue:
        """Require no keys of a TypedDict inside of a value, because LangGraph does not check it."""
        described = super().typed_dict_schema(schema)
        described.pop("required", None)
        return described


def _object_schema(fields: Iterable[GraphField], given: Collection[str] = ()) -> dict[str, Any]:
    """Return the JSON Schema of an object with these fields. Those that are `given` elsewhere are not required."""
    listed = list(fields)
    adapters = [(field.name, "validation", adapter) for field in listed if (adapter := _adapter(field)) is not None]
    described, definitions = _shared_json_schemas(cast("Any", adapters))
    properties: dict[str, Any] = {}
    for field in listed:
        shown = {"title": field.name.replace("_", " ").strip().capitalize(), **described.get(field.name, {})}
        if _mentions_messages(field.annotation):
            shown["type"] = "array"
        if field.description:
            shown["description"] = field.description
        default = _json_default(field.default)
        if default is not _MISSING:
            shown["default"] = default
        properties[field.name] = shown
    schema: dict[str, Any] = {
        "type": "object",
        "properties": properties,
        "required": [field.name for field in listed if field.is_required and field.name not in given],
        "additionalProperties": False,
    }
    return {**schema, "$defs": definitions} if definitions else schema


def _shared_json_schemas(adapters: list[Any]) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """Return the JSON Schema of each field, and the definitions that they share; nothing if pydantic cannot do that."""
    try:
        return _json_schemas(adapters)
    except Exception:  # each type can be described, but not all together
        return {}, {}


def _json_schemas(adapters: list[Any]) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """Return the JSON Schema of each field, and the definitions that they share."""
    schemas, shared = TypeAdapter.json_schemas(adapters, schema_generator=_LenientJsonSchema)
    return {name: dict(schema) for (name, _), schema in schemas.items()}, fields_of(shared.get("$defs"))


def _adapter(field: GraphField) -> TypeAdapter[Any] | None:
    """Return pydantic's description of a field's type; None for messages, and for a type that it cannot describe."""
    if _mentions_messages(field.annotation):
        return None
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(field.annotation)
        _json_schemas([(field.name, "validation", adapter)])
    except Exception:  # of the user's own types, for example a recursion without an end
        return None
    return adapter


def _json_default(default: Any) -> Any:
    """Return a default as a JSON value; `_MISSING` if there is none, or if it has no JSON form."""
    if default is _MISSING:
        return _MISSING
    try:
        return to_jsonable_python(default)
    except Exception:
        return _MISSING


# Python types


def fields_of_type(kind: Any) -> dict[str, GraphField]:
    """Return the fields of a TypedDict, a dataclass or a pydantic model; empty for any other type."""
    kind = get_origin(kind) or kind
    try:
        if _is_typed_dict(kind):
            return {field.name: field for field in _typed_dict_fields(kind)}
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            return {field.name: field for field in _model_fields(kind)}
        if isinstance(kind, type) and dataclasses.is_dataclass(kind):
            return {field.name: field for field in _dataclass_fields(kind)}
        if isinstance(kind, type) and kind.__module__ != "builtins" and getattr(kind, "__annotations__", None):
            return {name: GraphField(name, hint, False) for name, hint in _hints(kind).items()}
    except Exception:  # the user's own types, for example with names that exist only while types are checked
        return {}
    return {}


def _is_typed_dict(kind: Any) -> bool:
    return typing.is_typeddict(kind) or _is_extension_typed_dict(kind)


def _is_extension_typed_dict(kind: Any) -> bool:
    """Whether a class is a TypedDict of `typing_extensions`, which differs from that of `typing` in older Pythons."""
    is_dict = isinstance(kind, type) and issubclass(cast("type[Any]", kind), dict)
    return is_dict and hasattr(cast("Any", kind), "__required_keys__")


def _hints(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind, include_extras=True)


def _typed_dict_fields(kind: Any) -> Iterator[GraphField]:
    for name, hint in _hints(kind).items():
        annotation, is_required = _without_qualifiers(hint)
        required = name in kind.__required_keys__ if is_required is None else is_required
        yield GraphField(name, annotation, required and not _is_optional(annotation))


def _without_qualifiers(hint: Any) -> tuple[Any, bool | None]:
    """Return a type without `Required`, `NotRequired` and `ReadOnly`, and whether they say that it is required."""
    is_required: bool | None = None
    while (origin := get_origin(hint)) is not None and getattr(origin, "_name", "") in _QUALIFIERS:
        is_required = _QUALIFIERS[getattr(origin, "_name", "")] if is_required is None else is_required
        hint = get_args(hint)[0]
    return hint, is_required


_QUALIFIERS: dict[str, bool | None] = {"Required": True, "NotRequired": False, "ReadOnly": None}


def _model_fields(kind: type[BaseModel]) -> Iterator[GraphField]:
    for name, info in kind.model_fields.items():
        default: Any = _MISSING if info.default is PydanticUndefined else info.default
        if info.default_factory in _PLAIN_FACTORIES:
            default = cast("Any", info.default_factory)()
        annotation: Any = info.annotation
        if info.metadata:
            annotation = Annotated[(annotation, *info.metadata)]
        yield GraphField(name, annotation, info.is_required(), default, info.description or "")


def _dataclass_fields(kind: Any) -> Iterator[GraphField]:
    hints = _hints(kind)
    for field in dataclasses.fields(kind):
        if not field.init:
            continue
        default = _MISSING if field.default is dataclasses.MISSING else field.default
        if field.default_factory in _PLAIN_FACTORIES:
            default = cast("Any", field.default_factory)()
        has_default = field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
        described: Any = field.metadata.get("description") or ""
        yield GraphField(field.name, hints[field.name], not has_default, default, str(described))


_PLAIN_FACTORIES: tuple[Any, ...] = (list, dict, set, tuple, str)
"""Factories of defaults that are called to show the default. Others might do more than make a value."""


def _has_initial_value(channel: Any) -> bool:
    """Whether a channel of a graph's state has a value before anything is written, such as an empty list."""
    try:
        return bool(channel.is_available())
    except Exception:  # a channel of the user
        return False


def without_none(annotation: Any) -> Any:
    """Return a type without metadata and without `None` among its alternatives."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) not in (Union, types.UnionType):
        return annotation
    others = [part for part in get_args(annotation) if part is not type(None)]
    return without_none(others[0]) if len(others) == 1 else annotation


def _is_optional(annotation: Any) -> bool:
    """Whether a type has `None` among its alternatives. LangGraph does not require such keys of a TypedDict."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    return get_origin(annotation) in (Union, types.UnionType) and type(None) in get_args(annotation)


def _parts(annotation: Any, depth: int = MAX_NESTING) -> Iterator[Any]:
    """Yield a type and all types in it: the items of lists, the alternatives of unions."""
    yield annotation
    if (origin := get_origin(annotation)) is not None:
        yield origin
    if depth:
        for part in get_args(annotation) if get_origin(annotation) is not typing.Literal else ():
            yield from _parts(part, depth - 1)


def _mentions_messages(annotation: Any) -> bool:
    return any(isinstance(part, type) and issubclass(part, BaseMessage) for part in _parts(annotation))


# Values


def coerce(values: Mapping[str, Any], fields: Mapping[str, GraphField]) -> dict[str, Any]:
    """Return JSON values in the types that a graph declares for them, such as a date or a nested pydantic model.

    Values whose type has a JSON form are returned unchanged. Raises AgentFailed for a value that does not fit.
    """
    return {name: _coerced(value, fields.get(name)) for name, value in values.items()}


def _coerced(value: Any, field: GraphField | None) -> Any:
    if field is None or _mentions_messages(field.annotation) or not any(map(_needs_object, _parts(field.annotation))):
        return value
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(field.annotation)
    except Exception:  # a type that pydantic cannot describe
        return value
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        raise AgentFailed(f"{field.name} does not fit {_type_text(field.annotation)}: {safe_text(error)}") from error


def _needs_object(kind: Any) -> bool:
    """Whether values of a type are objects that JSON does not have."""
    if not isinstance(kind, type) or _is_typed_dict(kind) or kind.__module__ in PLAIN_MODULES:
        return kind in (set, frozenset, tuple, bytes)
    return True


def _type_text(annotation: Any) -> str:
    return getattr(annotation, "__name__", "") or safe_text(annotation)
