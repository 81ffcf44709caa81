"""Normalization of histories: every framework accepts the calls, arguments and results."""

from typing import Any

from limelight.messages import Message
from limelight.sources.history import CUT_OFF, normalized

QUESTION = Message(role="user", content="a")


def call(arguments: Any, **fields: Any) -> dict[str, Any]:
    return {"id": "c1", "type": "function", "function": {"name": "odd", "arguments": arguments}, **fields}


def asking(*calls: Any) -> Message:
    return Message(role="assistant", content="", tool_calls=list(calls))


def result(**fields: Any) -> Message:
    return Message(role="tool", content="r", **fields)


def cut_off(call_id: str) -> Message:
    return Message(role="tool", tool_call_id=call_id, name="odd", content=CUT_OFF, status="error")


def arguments_of(sent: Any) -> str:
    return normalized([QUESTION, asking(call(sent))])[1]["tool_calls"][0]["function"]["arguments"]


def test_arguments_that_are_not_an_object_become_an_empty_one() -> None:
    assert arguments_of('{"kind":"x"}') == arguments_of({"kind": "x"}) == '{"kind":"x"}'
    odd: list[Any] = ["", '{"kind": ', "[1]", "7", "[" * 100_000, "\ud800", None, 3, [1]]
    assert {arguments_of(sent) for sent in odd} == {"{}"}


def test_malformed_calls_are_left_out() -> None:
    made = normalized(
        [QUESTION, asking("foo", 3, {}, {"function": "odd"}), Message(role="assistant", tool_calls={"a": 1})]
    )
    assert made == [QUESTION, {"role": "assistant", "content": ""}, {"role": "assistant"}]


def test_call_without_an_id_gets_one_and_keeps_its_result() -> None:
    made = normalized([QUESTION, asking(call("{}", id=None), call("{}", id=7)), result(), result()])
    ids = [one["id"] for one in made[1]["tool_calls"]]
    assert len(set(ids)) == 2 and all(ids)
    assert [one["tool_call_id"] for one in made[2:]] == ids


def test_result_is_kept_only_behind_its_call() -> None:
    past = [
        result(tool_call_id="c1"),
        QUESTION,
        asking(call("{}")),
        result(tool_call_id="c1"),
        result(tool_call_id="c1"),
    ]
    assert normalized(past) == [QUESTION, past[2], past[3]]
    assert normalized([asking(call("{}")), QUESTION, result(tool_call_id="c1")])[1:] == [cut_off("c1"), QUESTION]
    assert normalized([asking(call("{}")), result(tool_call_id=["c1"]), result()])[1:] == [cut_off("c1")]


def test_call_without_a_result_gets_one_before_the_results_of_the_others() -> None:
    calls = asking(call("{}"), call("{}", id="c2"), call("{}", id="c3"))
    messages = normalized([QUESTION, calls, result(tool_call_id="c2")])
    assert messages[2:] == [cut_off("c1"), cut_off("c3"), result(tool_call_id="c2")]


def test_valid_history_is_unchanged() -> None:
    past = [
        QUESTION,
        asking(call('{"a":1}')),
        result(tool_call_id="c1", name="odd"),
        Message(role="assistant", content="x"),
    ]
    assert normalized(past) == past
