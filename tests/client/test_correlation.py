"""Which answer belongs to which command: by the pong behind it, or by the name of the question."""

import pytest

from limelight.client import Busy, ClientError, ConnectionLost
from limelight.client.correlation import Command, Exchange
from limelight.client.replies import Accepted, Decided, Pong, Refused

BUSY = Refused(message="busy", error_code="session_busy", run_id="r")


def said(exchange: Exchange, *commands: Command) -> None:
    for command in commands:
        exchange.add(command)
        assert exchange.next() == command.frames
    assert exchange.next() == []


def question(name: str) -> Command:
    return Command("query", {"query": "x", "request_id": name}, name)


async def test_what_comes_before_a_pong_is_about_its_command() -> None:
    exchange, first, second, third = Exchange(), Command("cancel", {}), Command("approve", {}), Command("approve", {})
    said(exchange, first, second, third)
    for reply in (Pong(), BUSY, Pong(), Decided("edit"), Pong()):
        exchange.take(reply)
    assert await first.answer == ""
    with pytest.raises(Busy) as raised:
        await second.answer
    assert (raised.value.run_id, raised.value.status) == ("r", 409)
    assert await third.answer == "edit"
    assert not exchange.busy


async def test_questions_are_answered_by_name_whenever_that_is() -> None:
    exchange, one, two, cancel = Exchange(), question("one"), question("two"), Command("cancel", {})
    said(exchange, one, two, cancel)
    exchange.take(Pong())
    exchange.take(Pong())
    exchange.take(Refused("stopped", "session_busy", "two"))
    exchange.take(Pong())
    with pytest.raises(Busy, match="stopped"):
        await two.answer
    assert await cancel.answer == ""
    assert exchange.busy
    exchange.take(Accepted("one", "r1"))
    assert await one.answer == "r1"


async def test_after_a_cut_questions_and_pings_are_said_again_in_order() -> None:
    exchange, one, ping, cancel, two = (
        Exchange(),
        question("one"),
        Command("ping", {}),
        Command("cancel", {}),
        question("two"),
    )
    said(exchange, one, ping, cancel, two)
    left, late = question("left"), Command("approve", {})
    exchange.add(left)
    exchange.add(late)
    left.answer.cancel()
    exchange.cut()
    with pytest.raises(ConnectionLost, match="not known"):
        await cancel.answer
    assert [exchange.next() for _ in range(5)] == [one.frames, two.frames, ping.frames, late.frames, []]


async def test_a_server_that_shuts_down_is_asked_again_when_it_is_back() -> None:
    exchange, one = Exchange(), question("one")
    said(exchange, one)
    exchange.take(Refused("bye", "shutting_down", "one"))
    exchange.take(Pong())
    assert not one.answer.done()
    exchange.cut()
    assert exchange.next() == one.frames


async def test_a_decision_without_an_answer_and_the_end() -> None:
    exchange, decision, waiting = Exchange(), Command("approve", {}), question("one")
    said(exchange, decision, waiting)
    exchange.take(Pong())
    with pytest.raises(ClientError, match="did not answer"):
        await decision.answer
    exchange.end(ConnectionLost("over"))
    with pytest.raises(ConnectionLost, match="over"):
        await waiting.answer
    for reply in (Pong(), Decided("edit"), BUSY, Accepted("one", "r")):
        exchange.take(reply)
