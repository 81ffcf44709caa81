"""Odd values fit the log too: as JSON where they can be, else as text."""

from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest

from limelight.errors import BadEvent
from limelight.events import (
    AnyEvent,
    FinalAnswer,
    JsonValue,
    Plan,
    Status,
    TextDelta,
    Todo,
    ToolReady,
    ToolStarted,
    kind_of,
)
from limelight.json_values import MAX_DEPTH, json_value
from tests.runs.truncated import fitted, only, result_of


@dataclass
class Point:
    x: int
    y: int


class Unspeakable:
    def __str__(self) -> str:
        raise RuntimeError("no")


def nested(depth: int) -> list[Any]:
    value: list[Any] = ["leaf"]
    for _ in range(depth - 1):
        value = [value]
    return value


def cycle() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, ""),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        ([1.5, float("nan")], [1.5, None]),
        (2**100, 2**100),
        (b"\x00\xff", "AP8="),
        ({3}, [3]),
        ((1, (2,)), [1, [2]]),
        ({1: "a"}, {"1": "a"}),
        ({(1, 2): "a"}, {"(1, 2)": "a"}),
        (Point(1, 2), {"x": 1, "y": 2}),
        (Todo("x"), {"content": "x", "status": "pending"}),
        (date(2024, 2, 29), "2024-02-29"),
        (1 + 2j, "(1+2j)"),
        (ValueError("no"), "no"),
        ({"odd": 1j}, {"odd": "1j"}),
        (10**5000, "<int: ValueError>"),
        (Unspeakable(), "<Unspeakable: RuntimeError>"),
        (cycle(), "[[...]]"),
        ("\ud83d\ude00", "😀"),
        ("\ud83d", "\ufffd"),
        ({"\ud800": ["\udfff", {"a"}]}, {"\ufffd": ["\ufffd", ["a"]]}),
        ([Todo("\ud83d")], [{"content": "\ufffd", "status": "pending"}]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_any_result_becomes_json_if_it_can_and_else_text(value: Any, expected: JsonValue) -> None:
    assert result_of(value) == expected
    assert json_value(value) == expected
    assert only(FinalAnswer(content=value)).content == expected


def test_deeply_nested_value_becomes_its_json_text() -> None:
    assert result_of(nested(MAX_DEPTH)) == nested(MAX_DEPTH)
    assert result_of(nested(MAX_DEPTH + 1)) == "[" * (MAX_DEPTH + 1) + '"leaf"' + "]" * (MAX_DEPTH + 1)


def test_value_nested_too_deeply_becomes_its_type_and_error() -> None:
    assert result_of(nested(100_000)) == "<list: RecursionError>"
    assert only(ToolStarted(call_id="c", name="t", args={"a": nested(100_000)})).args == "<dict: RecursionError>"


def test_arguments_that_are_not_json_become_text() -> None:
    assert only(ToolStarted(call_id="c", name="t", args={"when": 1j})).args == {"when": "1j"}
    assert only(ToolReady(call_id="c", args={"a": {1}})).args == {"a": [1]}


def test_halves_of_characters_are_mended_everywhere() -> None:
    assert only(TextDelta(message_id="\ud800", text="a\ud83d\ude00b\udfff")).text == "a😀b\ufffd"
    assert only(TextDelta(message_id="\ud800", text="a")).message_id == "\ufffd"
    assert only(Status(text="\udfff")).text == "\ufffd"
    assert only(Plan(items=(Todo("\ud800", "completed"),))).items == (Todo("\ufffd", "completed"),)


@pytest.mark.parametrize(
    "event",
    [
        ToolStarted(call_id="c", name=None),  # pyright: ignore[reportArgumentType]
        TextDelta(message_id="m", text=5),  # pyright: ignore[reportArgumentType]
        Plan(items=(1,)),  # pyright: ignore[reportArgumentType]
        ToolStarted(call_id="c", name="t", args=[1]),  # pyright: ignore[reportArgumentType]
    ],
    ids=kind_of,
)
def test_field_of_the_wrong_type_is_a_bad_event(event: AnyEvent) -> None:
    with pytest.raises(BadEvent, match=rf"^{kind_of(event)}: Expected"):
        fitted(event)
