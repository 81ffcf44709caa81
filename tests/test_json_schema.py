"""Checks of JSON values against schemas, compared with a complete implementation, and texts as values."""

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limelight.json_schema import choices_of, fields, find_mistakes, fits, parse_text, type_name, type_names

BRANCH: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}},
    "required": ["name"],
}
TREE: dict[str, Any] = {**BRANCH, "additionalProperties": False, "$defs": {"Tree": BRANCH}}


@pytest.mark.parametrize(
    ("value", "schema", "mistakes"),
    [
        ("x", {"type": "string"}, []),
        (1, {"type": "string"}, [("", "expected a text, got 1")]),
        (True, {"type": "integer"}, [("", "expected a whole number, got true")]),
        (1.0, {"type": "integer"}, []),
        (1, {"type": "number"}, []),
        (None, {"anyOf": [{"type": "string"}, {"type": "null"}]}, []),
        (2, {"anyOf": [{"type": "string"}, {"type": "null"}]}, [("", "expected a text or null, got 2")]),
        ("c", {"enum": ["a", "b"]}, [("", 'expected one of "a", "b", got "c"')]),
        (True, {"enum": [1]}, [("", "expected one of 1, got true")]),
        (31, {"type": "integer", "maximum": 30}, [("", "expected a number of at most 30, got 31")]),
        ("", {"type": "string", "minLength": 1}, [("", "expected a text of at least 1 characters, got 0")]),
        ([1], {"type": "array", "items": {"type": "string"}}, [("[0]", "expected a text, got 1")]),
        ({"name": "a", "children": [{"name": "b"}]}, TREE, []),
        (
            {"name": "a", "children": [{"nam": "b"}]},
            TREE,
            [("children[0].name", "'name' is required")],
        ),
        ({"nam": "a"}, TREE, [("name", "'name' is required"), ("nam", "there is no 'nam'; did you mean 'name'?")]),
        ({"a": 1}, {"type": "object", "additionalProperties": {"type": "string"}}, [("a", "expected a text, got 1")]),
        ("x", {"pattern": "^[a-w]$"}, [("", 'expected a text that matches ^[a-w]$, got "x"')]),
        ("x", {"pattern": "(?<broken"}, []),
        ("x", {"$ref": "#/$defs/none"}, []),
    ],
)
def test_mistakes_name_the_path_and_what_is_expected(value: Any, schema: Any, mistakes: list[tuple[str, str]]) -> None:
    assert [tuple(mistake) for mistake in find_mistakes(value, schema)] == mistakes
    assert fits(value, schema) is (not mistakes)


def test_schema_that_refers_to_itself_ends() -> None:
    loop = {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}
    assert find_mistakes(1, loop) == []


def test_value_that_is_nested_too_deeply_does_not_fit() -> None:
    value: Any = None
    for _ in range(5000):
        value = [value]
    schema = {"$ref": "#/$defs/A", "$defs": {"A": {"type": "array", "items": {"$ref": "#/$defs/A"}}}}
    assert [tuple(mistake) for mistake in find_mistakes(value, schema)] == [("", "the value is nested too deeply")]


def test_unions_that_grow_exponentially_end() -> None:
    part = {"type": "object", "properties": {"x": {"$ref": "#/$defs/A"}}, "required": ["y"]}
    schema: dict[str, Any] = {"$ref": "#/$defs/A", "$defs": {"A": {"anyOf": [part, part, {"type": "null"}]}}}
    value: Any = None
    for _ in range(100):
        value = {"x": value}
    assert isinstance(find_mistakes(value, schema), list)


SIMPLE: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [
        {"type": "string"},
        {"type": "integer", "minimum": 0, "maximum": 9},
        {"type": "number", "exclusiveMinimum": 0},
        {"type": "boolean"},
        {"type": "null"},
        {"enum": ["a", 1, None, True]},
        {"const": "a"},
        {"type": ["string", "null"], "maxLength": 1},
        {},
    ]
)


def list_of(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item, "maxItems": 2}


def union_of(parts: list[dict[str, Any]]) -> dict[str, Any]:
    return {"anyOf": parts}


def object_of(parts: tuple[dict[str, Any], dict[str, Any], list[str], bool]) -> dict[str, Any]:
    a, b, required, closed = parts
    schema: dict[str, Any] = {"type": "object", "properties": {"a": a, "b": b}, "required": required}
    return {**schema, "additionalProperties": False} if closed else schema


def compound(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    required = st.lists(st.sampled_from(["a", "b"]), unique=True)
    objects = st.tuples(inner, inner, required, st.booleans()).map(object_of)
    return inner.map(list_of) | st.lists(inner, min_size=1, max_size=2).map(union_of) | objects


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from(["a", "bb", "", 0, 1, 10, -1, 0.5, 2.0, True, False, None]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "c"]), inner),
    max_leaves=6,
)


@given(st.recursive(SIMPLE, compound, max_leaves=4), VALUES)
def test_same_values_fit_as_with_a_complete_validator(schema: dict[str, Any], value: Any) -> None:
    assert fits(value, schema) == jsonschema_rs.is_valid(schema, value)


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        ("12", {"type": "string"}, "12"),
        ("12", {"type": "integer"}, 12),
        ("true", {"type": "boolean"}, True),
        ("[1]", {"type": "array"}, [1]),
        ("a", {"enum": ["a", "b"]}, "a"),
        ("1", {"enum": [1, 2]}, 1),
        ("plain words", {}, "plain words"),
        ("12", {}, 12),
        ("null", {"anyOf": [{"type": "string"}, {"type": "null"}]}, None),
        ("12", {"anyOf": [{"type": "string"}, {"type": "null"}]}, "12"),
        ("words", {"type": "integer"}, "words"),
    ],
)
def test_text_becomes_the_value_that_the_schema_expects(text: str, schema: dict[str, Any], value: Any) -> None:
    parsed = parse_text(text, schema)
    assert (parsed, type(parsed)) == (value, type(value))


def test_fields_have_their_references_resolved() -> None:
    schema: dict[str, Any] = {
        "properties": {"a": {"$ref": "#/$defs/A", "title": "Mine"}, "b": {"type": "string"}},
        "required": ["a"],
        "$defs": {"A": {"type": "integer", "title": "A"}},
    }
    assert [(field.name, dict(field.schema), field.is_required) for field in fields(schema)] == [
        ("a", {"type": "integer", "title": "Mine"}, True),
        ("b", {"type": "string"}, False),
    ]


def test_references_name_any_part_of_the_schema() -> None:
    schema: dict[str, Any] = {"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"properties": {"x": {"$ref": "#/$defs/n"}}}}}
    schema["$defs"]["n"] = {"type": "integer"}
    assert [(field.name, dict(field.schema)) for field in fields(schema)] == [("x", {"type": "integer"})]
    assert type_names({"anyOf": [{"$ref": "#/$defs/n"}, {"type": "null"}]}, schema) == {"integer", "null"}
    assert type_names({"$ref": "#/nowhere"}, schema) == set()
    assert fits(1, {"required": 7}), "a keyword with a value of the wrong type is ignored"


def test_choices_and_type_names() -> None:
    assert choices_of({"anyOf": [{"enum": ["a", "b"]}, {"type": "null"}]}) == ["a", "b", None]
    assert choices_of({"anyOf": [{"const": 1}, {"type": "string"}]}) == []
    assert type_name({"type": ["null", "integer"]}) == "a whole number or null"
    assert type_name({}) == "a JSON value"
