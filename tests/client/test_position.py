"""How far a socket has come: nothing twice, states at their places."""

from limelight.client import Gap, State
from limelight.client.position import Progress, place
from limelight.client.replies import Shown


def state(name: str, run_id: str | None = "r") -> State:
    return State(session_id="s", state=name, run_id=run_id)


def at(cursor: str) -> Shown:
    return Shown(cursor, Gap(int(float(cursor)), 0))


def test_a_part_of_a_record_comes_before_the_whole_of_it() -> None:
    assert sorted(["10", "2", "2.2", "2.10", "strange"], key=place) == ["strange", "2.2", "2.10", "2", "10"]


def test_what_comes_twice_is_dropped() -> None:
    progress = Progress("1")
    kept = [cursor for cursor in ("1", "1.1", "2.1", "2.1", "2", "2.1", "3") if [*progress.show(at(cursor))]]
    assert (kept, progress.after) == (["2.1", "2", "3"], "3")
    assert [*Progress(None).show(at("7"))]


def test_a_state_is_told_when_it_is_new() -> None:
    progress = Progress(None)
    progress.begin(state("idle", None))
    told = [state("idle", None), state("processing"), state("processing"), state("completed"), state("completed", "q")]
    assert [s for one in told for s in progress.tell(one)] == [told[1], told[3], told[4]]


def test_a_state_waits_for_what_was_missed() -> None:
    progress, done = Progress("1"), state("completed")
    assert [*progress.hold(done, "3")] == []
    assert [*progress.show(at("2"))] == [Gap(2, 0)]
    assert [*progress.show(at("3"))] == [Gap(3, 0), done]
    assert not progress.is_news(done)


def test_a_state_that_nothing_was_missed_of_is_told_at_once_and_before_the_next() -> None:
    assert [*Progress("3").hold(state("completed"), "3")] == [state("completed")]
    progress = Progress("1")
    assert [*progress.hold(state("completed"), "9")] == []
    assert [*progress.tell(state("processing", "q"))] == [state("completed"), state("processing", "q")]
