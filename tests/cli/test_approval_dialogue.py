"""The approval queue without a server, and the parsers of the dialogue."""

import asyncio
from typing import Any

import pytest

from limelight.cli.approval_dialogue import (
    ApprovalQueue,
    OpenApproval,
    approve_command,
    format_arguments,
    parse_arguments,
    parse_choice,
)
from limelight.events import AnyEvent, ApprovalRequested, ApprovalResolved, Decision, Record, RunFinished
from tests.support.wait import eventually


class Decider:
    """A `decide` callback that returns when the test sets `answer`."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.cancelled: list[str] = []
        self.answer = asyncio.Event()

    async def decide(self, approval: OpenApproval) -> None:
        self.asked.append(approval.approval_id)
        try:
            await self.answer.wait()
            self.answer.clear()
        except asyncio.CancelledError:
            self.cancelled.append(approval.approval_id)
            raise


def request(approval_id: str) -> Record:
    return record(ApprovalRequested(approval_id=approval_id, name="delete", args={}))


def resolution(approval_id: str) -> Record:
    return record(ApprovalResolved(approval_id=approval_id, decision="approve"))


def record(event: AnyEvent) -> Record:
    return Record(1, "run_1", 0, event)


async def test_queue_decides_one_request_at_a_time() -> None:
    decider = Decider()
    async with ApprovalQueue(decider.decide) as queue:
        queue.feed(request("a"))
        queue.feed(request("b"))
        await eventually(lambda: decider.asked == ["a"])
        decider.answer.set()
        await eventually(lambda: decider.asked == ["a", "b"])
        queue.feed(resolution("a"))
        assert decider.cancelled == []
    assert decider.cancelled == ["b"]


async def test_queue_cancels_requests_that_are_decided_elsewhere() -> None:
    decider = Decider()
    async with ApprovalQueue(decider.decide) as queue:
        for one in ("a", "b", "c"):
            queue.feed(request(one))
        await eventually(lambda: decider.asked == ["a"])
        queue.feed(resolution("b"))
        queue.feed(resolution("a"))
        await eventually(lambda: decider.asked == ["a", "c"])
        assert decider.cancelled == ["a"]
        queue.feed(record(RunFinished()))
        await eventually(lambda: decider.cancelled == ["a", "c"])


async def test_queue_skips_a_request_that_is_decided_before_its_turn() -> None:
    decider = Decider()
    async with ApprovalQueue(decider.decide) as queue:
        queue.feed(request("a"))
        queue.feed(resolution("a"))
        queue.feed(request("b"))
        await eventually(lambda: decider.asked == ["b"])


async def test_queue_decides_only_open_requests_of_old_records() -> None:
    decider = Decider()
    async with ApprovalQueue(decider.decide) as queue:
        queue.feed(request("a"), decide=False)
        queue.feed(resolution("a"), decide=False)
        queue.feed(request("b"), decide=False)
        queue.feed(request("c"))
        await eventually(lambda: decider.asked == ["b"])


def test_approve_command_names_run_approval_and_server() -> None:
    approval = OpenApproval("run_1", ApprovalRequested(approval_id="apr_1", name="rm\x1b", args={}))
    assert approve_command("http://127.0.0.1:8000", approval) == (
        "rm␛ waits for a decision: limelight approve run_1 apr_1"
    )
    assert approve_command("http://x:1", approval).endswith(" apr_1 --url http://x:1")


ALL: tuple[Decision, ...] = ("approve", "edit", "reject")


@pytest.mark.parametrize(
    ("word", "decisions", "expected"),
    [
        ("a", ALL, "approve"),
        (" APPROVE ", ALL, "approve"),
        ("app", ALL, "approve"),
        ("e", ALL, "edit"),
        ("r", ALL, "reject"),
        ("s", ALL, "show"),
        ("", ALL, None),
        ("ls -la", ALL, None),
        ("approved", ALL, None),
        ("e", ("approve", "reject"), None),
    ],
)
def test_choice_is_a_word_or_its_first_letters(
    word: str, decisions: tuple[Decision, ...], expected: str | None
) -> None:
    assert parse_choice(word, decisions) == expected


def test_arguments_are_parsed_as_a_parse_arguments() -> None:
    assert parse_arguments(' {"a": [1, {"b": null}]} ') == {"a": [1, {"b": None}]}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "Expecting value in line 1, column 1"),
        ('{\n  "a": oops\n}', "in line 2, column 8"),
        ("[1]", "Expected `object`, got `array`"),
        ('{"a": NaN}', "malformed"),
        ('{"a": "\ud800"}', "surrogates"),
    ],
)
def test_invalid_arguments_are_refused_with_line_and_column(text: str, why: str) -> None:
    with pytest.raises(ValueError, match="That is not a JSON object: ") as raised:
        parse_arguments(text)
    assert why in str(raised.value)


@pytest.mark.parametrize("args", [{}, {"a": 'ä\n"', "b": {"c": [1.5, None]}}])
def test_formatted_arguments_can_be_parsed_again(args: dict[str, Any]) -> None:
    for indent in (False, True):
        assert parse_arguments(format_arguments(args, indent=indent)) == args
    assert "\n" not in format_arguments(args)


def test_arguments_that_are_not_json_are_formatted_unchanged() -> None:
    assert format_arguments('{"a": ') == '{"a": '
