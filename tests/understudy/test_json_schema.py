"""Examples and validity of JSON schemas, compared with a complete validator."""

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limelight.understudy.json_schema import example, is_valid

SMALL = st.integers(-20, 20)


def strings() -> st.SearchStrategy[dict[str, Any]]:
    lengths = st.tuples(st.integers(0, 5), st.integers(0, 30))
    bounded = lengths.map(lambda two: {"type": "string", "minLength": two[0], "maxLength": two[0] + two[1]})
    formats = st.sampled_from(["date", "date-time", "email", "uri", "uuid", "ipv4"])
    return bounded | formats.map(lambda name: {"type": "string", "format": name}) | st.just({"type": "string"})


def numbers() -> st.SearchStrategy[dict[str, Any]]:
    """Ranges with and without bounds that contain a multiple of the step."""

    @st.composite
    def draw(pick: st.DrawFn) -> dict[str, Any]:
        low = pick(SMALL)
        schema: dict[str, Any] = {"type": pick(st.sampled_from(["integer", "number"]))}
        width = pick(st.integers(8, 30))
        schema |= pick(st.sampled_from([{}, {"minimum": low}, {"exclusiveMinimum": low}]))
        schema |= pick(st.sampled_from([{}, {"maximum": low + width}, {"exclusiveMaximum": low + width}]))
        return schema | pick(st.sampled_from([{}, {"multipleOf": 1}, {"multipleOf": 3}]))

    return draw()


def leaves() -> st.SearchStrategy[dict[str, Any]]:
    fixed = st.sampled_from(
        [
            {"type": "boolean"},
            {"type": "null"},
            {"enum": ["a", 1, None]},
            {"const": {"a": 1}},
            {"type": ["string", "null"]},
            {"type": "integer", "default": 4},
            {"$ref": "#/$defs/Level"},
            {"allOf": [{"$ref": "#/$defs/Level"}]},
            {},
        ]
    )
    return strings() | numbers() | fixed


def objects(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    @st.composite
    def draw(pick: st.DrawFn) -> dict[str, Any]:
        fields = pick(st.dictionaries(st.sampled_from(["path", "n", "items", "q"]), inner, max_size=4))
        required = pick(st.lists(st.sampled_from(sorted(fields)), unique=True)) if fields else []
        least = pick(st.integers(0, len(fields) + 1))
        return {"type": "object", "properties": fields, "required": required, "minProperties": least}

    return draw()


def nested(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    arrays = st.tuples(inner, st.integers(0, 3)).map(lambda two: {"type": "array", "items": two[0], "minItems": two[1]})
    ways = st.lists(inner, min_size=1, max_size=3).map(lambda some: {"anyOf": some})
    return objects(inner) | arrays | ways


SCHEMAS = objects(st.recursive(leaves(), nested, max_leaves=8))


@given(SCHEMAS)
def test_example_is_valid(schema: dict[str, Any]) -> None:
    root = {**schema, "$defs": {"Level": {"type": "string", "enum": ["low", "high"]}}}
    made = example(root)
    jsonschema_rs.validator_for(root, validate_formats=True).validate(made)
    assert is_valid(made, root)
    assert example(root) == made


@given(SCHEMAS, st.dictionaries(st.sampled_from(["path", "n", "items", "q"]), st.none() | SMALL | st.text(max_size=4)))
def test_is_valid_agrees_with_a_complete_validator(schema: dict[str, Any], value: dict[str, Any]) -> None:
    root = {**schema, "$defs": {"Level": {"type": "string", "enum": ["low", "high"]}}}
    complete = jsonschema_rs.validator_for(root, validate_formats=False)
    assert is_valid(value, root) == complete.is_valid(value)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer", "minimum": 7}, 7),
        ({"type": "integer", "maximum": -7}, -7),
        ({"type": "integer", "exclusiveMinimum": 2, "multipleOf": 5}, 5),
        ({"type": "number", "minimum": 0.25, "maximum": 0.5}, 0.375),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 2}, [1, 1]),
        ({"type": "array", "prefixItems": [{"type": "boolean"}, {"const": 9}], "minItems": 2}, [False, 9]),
        ({"anyOf": [{"type": "null"}, {"type": "integer"}]}, 1),
        ({"oneOf": [{"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"]}]}, {"a": 1}),
        ({"type": "object", "properties": {"a": {}, "b": {}}, "required": ["b"]}, {"b": "w"}),
        ({"type": "object", "minProperties": 1, "additionalProperties": {"type": "integer"}}, {"key0": 1}),
        ({"type": "string", "pattern": "^#[0-9a-f]{6}$"}, "#ffffff"),
        ({"type": "string", "pattern": "^\\d{4}-\\d{2}-\\d{2}$"}, "2026-01-31"),
        ({"type": "string", "minLength": 3}, "www"),
        ({"type": "string", "maxLength": 0}, ""),
        ({"$ref": "#/$defs/missing"}, "w"),
        ({"properties": {"a": {"type": "null"}}, "required": ["a"]}, {"a": None}),
    ],
)
def test_example_is_minimal(schema: dict[str, Any], value: Any) -> None:
    assert example(schema, lambda _: "w") == value


def test_example_of_a_recursive_schema_is_finite() -> None:
    tree = {
        "$defs": {
            "Node": {
                "type": "object",
                "properties": {"next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}},
                "required": ["next"],
            }
        },
        "$ref": "#/$defs/Node",
    }
    jsonschema_rs.validate(tree, example(tree))
    example({"$defs": {"N": {"$ref": "#/$defs/N"}}, "$ref": "#/$defs/N"})
