"""A past from anywhere is put right: calls, arguments and results are such that every framework takes them."""

from typing import Any

from limelight.messages import Message
from limelight.sources.history import put_right

QUESTION = Message(role="user", content="a")


def call(arguments: Any, **fields: Any) -> dict[str, Any]:
    return {"id": "c1", "type": "function", "function": {"name": "odd", "arguments": arguments}, **fields}


def asking(*calls: Any) -> Message:
    return Message(role="assistant", content="", tool_calls=list(calls))


def result(**fields: Any) -> Message:
    return Message(role="tool", content="r", **fields)


def arguments_of(sent: Any) -> str:
    return put_right([QUESTION, asking(call(sent))])[1]["tool_calls"][0]["function"]["arguments"]


def test_arguments_are_an_object_or_none() -> None:
    assert arguments_of('{"kind":"x"}') == arguments_of({"kind": "x"}) == '{"kind":"x"}'
    odd: list[Any] = ["", '{"kind": ', "[1]", "7", "[" * 100_000, "\ud800", None, 3, [1]]
    assert {arguments_of(sent) for sent in odd} == {"{}"}


def test_what_is_no_call_is_left_out() -> None:
    made = put_right(
        [QUESTION, asking("foo", 3, {}, {"function": "odd"}), Message(role="assistant", tool_calls={"a": 1})]
    )
    assert made == [QUESTION, {"role": "assistant", "content": ""}, {"role": "assistant"}]


def test_a_call_without_an_id_gets_one_and_keeps_its_result() -> None:
    made = put_right([QUESTION, asking(call("{}", id=None), call("{}", id=7)), result(), result()])
    ids = [one["id"] for one in made[1]["tool_calls"]]
    assert len(set(ids)) == 2 and all(ids)
    assert [one["tool_call_id"] for one in made[2:]] == ids


def test_a_result_stays_only_behind_its_call() -> None:
    past = [
        result(tool_call_id="c1"),
        QUESTION,
        asking(call("{}")),
        result(tool_call_id="c1"),
        result(tool_call_id="c1"),
    ]
    assert put_right(past) == [QUESTION, past[2], past[3]]
    assert put_right([asking(call("{}")), QUESTION, result(tool_call_id="c1")])[1:] == [QUESTION]
    assert put_right([asking(call("{}")), result(tool_call_id=["c1"]), result()])[1:] == []


def test_what_is_right_stays_as_it_is() -> None:
    past = [
        QUESTION,
        asking(call('{"a":1}')),
        result(tool_call_id="c1", name="odd"),
        Message(role="assistant", content="x"),
    ]
    assert put_right(past) == past
