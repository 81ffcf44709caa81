"""The socket protocol without I/O: answers of commands, positions in the log."""

import pytest

from limelight.client import Busy, ClientError, ConnectionLost, Gap, State
from limelight.client.socket_protocol import (
    Accepted,
    Command,
    Decided,
    ErrorFrame,
    LogItem,
    PendingCommands,
    Pong,
    Position,
    cursor_key,
)

BUSY = ErrorFrame(message="busy", error_code="session_busy", run_id="r")


def send(pending: PendingCommands, *commands: Command) -> None:
    for command in commands:
        pending.add(command)
        assert pending.next_frames() == command.frames
    assert pending.next_frames() == []


def query(request_id: str) -> Command:
    return Command("query", {"query": "x", "request_id": request_id})


async def test_pending_commands_assign_replies_before_a_pong_to_its_command() -> None:
    pending, first, second, third = (
        PendingCommands(),
        Command("cancel", {}),
        Command("approve", {}),
        Command("approve", {}),
    )
    send(pending, first, second, third)
    for reply in (Pong(), BUSY, Pong(), Decided("edit"), Pong()):
        pending.handle(reply)
    assert await first.answer == ""
    with pytest.raises(Busy) as raised:
        await second.answer
    assert (raised.value.run_id, raised.value.status) == ("r", 409)
    assert await third.answer == "edit"
    assert not pending.waiting


async def test_pending_commands_assign_late_answers_to_queries_by_request_id() -> None:
    pending, one, two, cancel = PendingCommands(), query("one"), query("two"), Command("cancel", {})
    send(pending, one, two, cancel)
    pending.handle(Pong())
    pending.handle(Pong())
    pending.handle(ErrorFrame("stopped", "session_busy", "two"))
    pending.handle(Pong())
    with pytest.raises(Busy, match="stopped"):
        await two.answer
    assert await cancel.answer == ""
    assert pending.waiting
    pending.handle(Accepted("one", "r1"))
    assert await one.answer == "r1"


async def test_pending_commands_repeat_queries_and_pings_in_order_after_a_cut() -> None:
    pending, one, ping, cancel, two = (
        PendingCommands(),
        query("one"),
        Command("ping", {}),
        Command("cancel", {}),
        query("two"),
    )
    send(pending, one, ping, cancel, two)
    abandoned, unsent = query("abandoned"), Command("approve", {})
    pending.add(abandoned)
    pending.add(unsent)
    abandoned.answer.cancel()
    pending.connection_lost()
    with pytest.raises(ConnectionLost, match="not known"):
        await cancel.answer
    assert [pending.next_frames() for _ in range(5)] == [one.frames, two.frames, ping.frames, unsent.frames, []]


async def test_pending_commands_repeat_a_query_that_a_closing_server_refused() -> None:
    pending, one = PendingCommands(), query("one")
    send(pending, one)
    pending.handle(ErrorFrame("bye", "shutting_down", "one"))
    pending.handle(Pong())
    assert not one.answer.done()
    pending.connection_lost()
    assert pending.next_frames() == one.frames


async def test_pending_commands_fail_decisions_without_an_answer_and_all_at_the_end() -> None:
    pending, decision, waiting = PendingCommands(), Command("approve", {}), query("one")
    send(pending, decision, waiting)
    pending.handle(Pong())
    with pytest.raises(ClientError, match="did not answer"):
        await decision.answer
    pending.fail_all(ConnectionLost("over"))
    with pytest.raises(ConnectionLost, match="over"):
        await waiting.answer
    for reply in (Pong(), Decided("edit"), BUSY, Accepted("one", "r")):
        pending.handle(reply)


def state(name: str, run_id: str | None = "r") -> State:
    return State(session_id="s", state=name, run_id=run_id)


def item(cursor: str) -> LogItem:
    return LogItem(cursor, Gap(int(float(cursor)), 0))


def test_cursor_key_sorts_frames_of_a_record_before_its_end() -> None:
    assert sorted(["10", "2", "2.2", "2.10", "strange"], key=cursor_key) == ["strange", "2.2", "2.10", "2", "10"]


def test_position_drops_items_that_arrive_twice() -> None:
    position = Position("1")
    kept = [cursor for cursor in ("1", "1.1", "2.1", "2.1", "2", "2.1", "3") if [*position.add_item(item(cursor))]]
    assert (kept, position.after) == (["2.1", "2", "3"], "3")
    assert [*Position(None).add_item(item("7"))]


def test_position_reports_only_new_states() -> None:
    position = Position(None)
    position.set_state(state("idle", None))
    states = [
        state("idle", None),
        state("processing"),
        state("processing"),
        state("completed"),
        state("completed", "q"),
    ]
    assert [s for one in states for s in position.add_state(one)] == [states[1], states[3], states[4]]


def test_position_defers_a_state_until_missed_items_have_arrived() -> None:
    position, completed = Position("1"), state("completed")
    assert [*position.defer_state(completed, "3")] == []
    assert [*position.add_item(item("2"))] == [Gap(2, 0)]
    assert [*position.add_item(item("3"))] == [Gap(3, 0), completed]
    assert not position.is_new(completed)


def test_position_reports_a_deferred_state_at_once_without_missed_items_and_before_the_next_state() -> None:
    assert [*Position("3").defer_state(state("completed"), "3")] == [state("completed")]
    position = Position("1")
    assert [*position.defer_state(state("completed"), "9")] == []
    assert [*position.add_state(state("processing", "q"))] == [state("completed"), state("processing", "q")]
