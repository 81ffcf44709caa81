"""The soak: that it would see what is lost, doubled or grown, and that a small one loses nothing. No timings here."""

import pytest

from benchmarks.report import with_section
from benchmarks.soak import measure
from benchmarks.soak.measure import BOUND_MS, MAX_GROWN, Sample, SoakFigures, SoakPlan, measure_soak
from benchmarks.soak.protocol import Second
from benchmarks.soak.report import soak_section, soak_table
from benchmarks.soak.viewer import Sequence

PLAN = SoakPlan(
    minutes=0.05, sessions=3, viewers=2, open=3, stay_seconds=2, steps=1, step_seconds=2, trial_seconds=2, trials=1
)


def frames(*numbers: int) -> bytes:
    return b"\n\n".join(b'id: %d\ndata: {"content":"~%d:5~"}' % (number + 10, number) for number in numbers)


@pytest.mark.parametrize(
    ("pieces", "lost", "doubled"),
    [([(0, 1), (2, 3)], 0, 0), ([(0, 1), (3,)], 1, 0), ([(0, 1), (1, 2)], 0, 1), ([(0,), (5, 4)], 4, 1)],
)
def test_a_viewer_sees_what_is_missing_and_what_comes_again(
    pieces: list[tuple[int, ...]], lost: int, doubled: int
) -> None:
    sequence, second = Sequence(), Second(latencies=[])
    for numbers in pieces:
        sequence.take(frames(*numbers), 0, second)
    assert (second.lost, second.doubled) == (lost, doubled)
    assert sequence.last_id == str(pieces[-1][-1] + 10)


def test_what_was_missed_while_away_says_nothing_about_latency() -> None:
    second = Second(latencies=[])
    Sequence().take(b"~0:5~ ~1:7~", 6, second)
    assert (second.numbers, len(second.latencies)) == (2, 1)


def grown(mb_a_minute: float) -> SoakFigures:
    samples = [Sample(float(at), 100 + mb_a_minute * at / 60, 20) for at in range(0, 600, 10)]
    return SoakFigures(samples=samples, seconds=[Second(numbers=10, latencies=[1.0, 2.0, 3.0])])


def test_memory_that_grows_is_a_fault_and_memory_that_does_not_is_none() -> None:
    assert grown(0.1).faults() == []
    (fault,) = grown(MAX_GROWN).faults()
    assert "memory grew" in fault
    lossy = SoakFigures(samples=grown(0).samples, lost=1, doubled=2, broken=3)
    assert [fault.split()[0] for fault in lossy.faults()] == ["1", "2", "3"]


def test_too_few_streams_or_too_late_a_delivery_is_a_fault() -> None:
    figures = grown(0)
    figures.wanted = 1000
    figures.seconds = [Second(streams=streams, latencies=[BOUND_MS * 2] * 9) for streams in (1040, 990, 1100)]
    assert figures.open() == (1040, 990)
    few, late = figures.faults()
    assert few.startswith("only 990 streams were open") and late.startswith("95 % took 1000 ms")


def test_a_small_one_loses_nothing_and_can_be_written_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "BOUND_MS", float("inf"))  # whatever else this machine has to do
    said: list[str] = []
    figures = measure_soak(PLAN, said.append)
    assert (figures.lost, figures.doubled, figures.broken) == (0, 0, 0)
    assert len(said) == 2  # one step of the ramp, and one trial
    median, least = figures.open()
    assert 0 < least <= median <= PLAN.sessions * (1 + PLAN.viewers)
    assert figures.rate < figures.highest
    assert figures.delivered() > 0 and sum(second.resumes for second in figures.seconds) >= 1
    section = soak_section(figures, PLAN)
    assert soak_table(figures, PLAN) in section
    assert with_section("# Soak\n\n## Result\n\nold\n", section) == f"# Soak\n\n{section}"
