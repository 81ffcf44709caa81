"""The soak test: it counts lost and doubled numbers and the growth of memory, and a small one finds no fault."""

import pytest

from benchmarks.report import with_section
from benchmarks.soak import measurement
from benchmarks.soak.measurement import MAX_GROWTH_MB, MAX_P95_MS, Sample, SoakFigures, SoakPlan, measure_soak
from benchmarks.soak.report import soak_section, soak_table
from benchmarks.soak.server import LoadReport
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
def test_sequence_counts_lost_and_doubled_numbers(pieces: list[tuple[int, ...]], lost: int, doubled: int) -> None:
    sequence, report = Sequence(), LoadReport()
    for numbers in pieces:
        sequence.feed(frames(*numbers), 0, report)
    assert (report.lost, report.doubled) == (lost, doubled)
    assert sequence.last_id == str(pieces[-1][-1] + 10)


def test_numbers_due_before_the_connection_do_not_count_for_the_latency() -> None:
    report = LoadReport()
    Sequence().feed(b"~0:5~ ~1:7~", 6, report)
    assert (report.numbers, len(report.latencies)) == (2, 1)


def figures_with_growth(mb_a_minute: float) -> SoakFigures:
    samples = [Sample(float(at), 100 + mb_a_minute * at / 60, 20) for at in range(0, 600, 10)]
    return SoakFigures(samples=samples, reports=[LoadReport(numbers=10, latencies=[1.0, 2.0, 3.0])])


def test_growth_of_memory_and_lost_doubled_and_broken_streams_are_faults() -> None:
    assert figures_with_growth(0.1).faults() == []
    (fault,) = figures_with_growth(MAX_GROWTH_MB).faults()
    assert "memory grew" in fault
    lossy = SoakFigures(samples=figures_with_growth(0).samples, lost=1, doubled=2, broken=3)
    assert [fault.split()[0] for fault in lossy.faults()] == ["1", "2", "3"]


def test_too_few_open_streams_and_high_latency_are_faults() -> None:
    figures = figures_with_growth(0)
    figures.wanted = 1000
    figures.reports = [LoadReport(streams=streams, latencies=[MAX_P95_MS * 2] * 9) for streams in (1040, 990, 1100)]
    assert figures.open_streams() == (1040, 990)
    few, late = figures.faults()
    assert few.startswith("only 990 streams were open") and late.startswith("95 % took 1000 ms")


def test_small_soak_test_finds_no_fault_and_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurement, "MAX_P95_MS", float("inf"))  # the machine may be busy
    logged: list[str] = []
    figures = measure_soak(PLAN, logged.append)
    assert (figures.lost, figures.doubled, figures.broken) == (0, 0, 0)
    assert len(logged) == 2  # one step of the ramp, and one trial
    median, least = figures.open_streams()
    assert 0 < least <= median <= PLAN.sessions * (1 + PLAN.viewers)
    assert figures.rate < figures.highest
    assert figures.delivered() > 0 and sum(report.resumes for report in figures.reports) >= 1
    section = soak_section(figures, PLAN)
    assert soak_table(figures, PLAN) in section
    assert with_section("# Soak\n\n## Result\n\nold\n", section) == f"# Soak\n\n{section}"
