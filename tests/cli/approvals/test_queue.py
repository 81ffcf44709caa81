"""The desk, without a server: which questions are handed on, when, and which go away."""

import asyncio

from limelight.cli.approvals.queue import Desk, Waiting, how_to_decide
from limelight.events import AnyEvent, ApprovalRequested, ApprovalResolved, Record, RunFinished
from tests.support.wait import eventually


class Person:
    """Somebody who decides when told to."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.given_up: list[str] = []
        self.answer = asyncio.Event()

    async def decide(self, waiting: Waiting) -> None:
        self.asked.append(waiting.asked.approval_id)
        try:
            await self.answer.wait()
            self.answer.clear()
        except asyncio.CancelledError:
            self.given_up.append(waiting.asked.approval_id)
            raise


def asks(approval_id: str) -> Record:
    return record(ApprovalRequested(approval_id=approval_id, name="delete", args={}))


def decided(approval_id: str) -> Record:
    return record(ApprovalResolved(approval_id=approval_id, decision="approve"))


def record(event: AnyEvent) -> Record:
    return Record(1, "run_1", 0, event)


async def test_one_after_the_other() -> None:
    person = Person()
    async with Desk(person.decide) as desk:
        desk.take(asks("a"))
        desk.take(asks("b"))
        await eventually(lambda: person.asked == ["a"])
        person.answer.set()
        await eventually(lambda: person.asked == ["a", "b"])
        desk.take(decided("a"))
        assert person.given_up == []
    assert person.given_up == ["b"]


async def test_what_is_decided_elsewhere_goes_away() -> None:
    person = Person()
    async with Desk(person.decide) as desk:
        for one in ("a", "b", "c"):
            desk.take(asks(one))
        await eventually(lambda: person.asked == ["a"])
        desk.take(decided("b"))
        desk.take(decided("a"))
        await eventually(lambda: person.asked == ["a", "c"])
        assert person.given_up == ["a"]
        desk.take(record(RunFinished()))
        await eventually(lambda: person.given_up == ["a", "c"])


async def test_one_that_is_decided_before_it_was_asked_holds_up_nobody() -> None:
    person = Person()
    async with Desk(person.decide) as desk:
        desk.take(asks("a"))
        desk.take(decided("a"))
        desk.take(asks("b"))
        await eventually(lambda: person.asked == ["b"])


async def test_of_what_is_old_only_the_open_ones_are_asked() -> None:
    person = Person()
    async with Desk(person.decide) as desk:
        desk.take(asks("a"), decide=False)
        desk.take(decided("a"), decide=False)
        desk.take(asks("b"), decide=False)
        desk.take(asks("c"))
        await eventually(lambda: person.asked == ["b"])


def test_the_command_can_be_copied() -> None:
    waiting = Waiting("run_1", ApprovalRequested(approval_id="apr_1", name="rm\x1b", args={}))
    assert how_to_decide("http://127.0.0.1:8000", waiting) == (
        "rm␛ waits for a decision: limelight approve run_1 apr_1"
    )
    assert how_to_decide("http://x:1", waiting).endswith(" apr_1 --url http://x:1")
