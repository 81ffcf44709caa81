"""JSON Schemas of answers: whether a value fits, and what a typed text stands for."""

from typing import Any

import pytest
from pydantic import BaseModel

from limelight.answer_schemas import Choice, choices, parse_answer, problem_with, takes_text


class Person(BaseModel):
    name: str
    age: int | None = None


class Team(BaseModel):
    lead: Person
    members: list[Person] = []


TREE = {"$ref": "#/$defs/Node", "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}}}
CHOICE = {"oneOf": [{"const": "a", "title": "All", "description": "every file"}, {"const": None, "title": "None"}]}


VALUES: list[tuple[Any, dict[str, Any], str]] = [
    ("x", {}, ""),
    (None, {}, ""),
    ("x", {"type": "string", "unknown": 1}, ""),
    (5, {"type": "string"}, "the answer: expected a text, got 5"),
    (True, {"type": "integer"}, "the answer: expected a whole number, got true"),
    (2.0, {"type": "integer"}, ""),
    (2.5, {"type": "integer"}, "the answer: expected a whole number, got 2.5"),
    (True, {"type": "number"}, "the answer: expected a number, got true"),
    (None, {"type": ["string", "null"]}, ""),
    (1, {"type": ["string", "null"]}, "the answer: expected a text or null, got 1"),
    ("b", {"enum": ["a", "b"]}, ""),
    ("c", {"enum": ["a", 1]}, 'the answer: expected one of "a", 1, got "c"'),
    (True, {"enum": [1]}, "the answer: expected one of 1, got true"),
    (None, CHOICE, ""),
    ("b", CHOICE, 'the answer: expected one of "a" or one of null, got "b"'),
    (["a", 1], {"type": "array", "items": {"type": "string"}}, "[1]: expected a text, got 1"),
    ({"name": "Ada"}, Person.model_json_schema(), ""),
    ({"name": "Ada", "age": None}, Person.model_json_schema(), ""),
    ({"name": "Ada", "age": "x"}, Person.model_json_schema(), 'age: expected a whole number or null, got "x"'),
    ({"age": 1}, Person.model_json_schema(), "name: 'name' is required"),
    ({"lead": {"name": 1}}, Team.model_json_schema(), "lead.name: expected a text, got 1"),
    ({"lead": {"name": "A"}, "members": [{}]}, Team.model_json_schema(), "members[0].name: 'name' is required"),
    ({"next": {"next": {"next": 3}}}, TREE, "next.next.next: expected an object, got 3"),
    ("x", {"type": "no type", "enum": "no list", "properties": 5, "required": 7, "$ref": "#/nowhere"}, ""),
]


@pytest.mark.parametrize(("value", "schema", "problem"), VALUES)
def test_value_is_compared_with_the_schema(value: Any, schema: Any, problem: str) -> None:
    assert problem_with(value, schema) == problem


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        ("42", {}, "42"),
        ("42", {"type": "string"}, "42"),
        ("42", {"type": "integer"}, 42),
        ("yes", {"type": "boolean"}, True),
        ("N", {"type": "boolean"}, False),
        ("all", CHOICE, "a"),
        ("none", CHOICE, None),
        ("2", {"enum": [1, 2]}, 2),
        ("a, B", {"type": "array", "items": {"enum": ["a", "b"]}}, ["a", "b"]),
        ("one, two", {"type": "array", "items": {"type": "string"}}, ["one", "two"]),
        ("[1]", {"type": "array", "items": {"type": "integer"}}, [1]),
        ('{"name": "Ada"}', Person.model_json_schema(), {"name": "Ada"}),
    ],
)
def test_typed_text_stands_for_a_value(text: str, schema: Any, value: Any) -> None:
    assert parse_answer(text, schema) == value


@pytest.mark.parametrize(
    ("text", "schema", "problem"),
    [
        ("x", {"type": "integer"}, "the answer: expected a whole number"),
        ("x", CHOICE, "the answer: expected one of All, None"),
        ("Ada", Person.model_json_schema(), "the answer: expected an object"),
        ("a, c", {"type": "array", "items": {"enum": ["a"]}}, "the answer: expected one of a"),
    ],
)
def test_text_that_does_not_fit_is_refused(text: str, schema: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_answer(text, schema)


def test_choices_are_what_a_form_shows() -> None:
    assert choices(CHOICE) == [Choice("a", "All", "every file"), Choice(None, "None")]
    assert choices({"oneOf": [{"type": "string"}]}) == choices({}) == []


def test_text_is_typed_where_a_schema_accepts_one() -> None:
    person = {"anyOf": [{"$ref": "#/$defs/P"}, {"type": "null"}], "$defs": {"P": {"type": "object"}}}
    taken = [{}, {"type": "string", "minLength": 2}, {"anyOf": [{"type": "string"}, {"type": "null"}]}]
    refused = [{"type": "integer"}, {"enum": ["a"]}, person]
    assert [takes_text(schema, schema) for schema in (*taken, *refused)] == [True] * 3 + [False] * 3
    with pytest.raises(ValueError, match="at least 2 characters"):
        parse_answer("a", {"type": "string", "minLength": 2})
