"""The noisy neighbour benchmark: the neighbour reaches her limits, and the report shows ratios and responses."""

from benchmarks.measurement import Row
from benchmarks.noisy_neighbour.measurement import (
    ALONE,
    AT,
    BEYOND,
    NeighboursFigures,
    NeighboursPlan,
    measure_neighbours,
)
from benchmarks.noisy_neighbour.report import neighbours_section, neighbours_table
from limelight.config.schema import LimitSettings

LIMITS = LimitSettings(runs_per_user=4, streams_per_user=7, body_bytes=300_000, result_bytes=2_000_000)
PLAN = NeighboursPlan(repeats=1, requests=3, runs=2, pings=10, tokens=20, limits=LIMITS)


def test_ben_is_measured_in_each_condition_while_ann_reaches_each_limit() -> None:
    logged: list[str] = []
    figures = measure_neighbours(PLAN, logged.append)
    assert len(logged) == 1
    assert {row.what for row in figures.rows if row.unit == "ms"} == {
        *(f"{what}, {which}" for what in ("first event", "ping") for which in ("median", "p99")),
        "whole run, median",
        "whole run, longest",
    }
    for row, by_condition in figures.rows.items():
        assert list(by_condition) == [ALONE, AT, BEYOND]
        assert row.unit != "ms" or min(by_condition[ALONE] + by_condition[AT] + by_condition[BEYOND]) > 0
    for condition in (AT, BEYOND):
        answers = figures.answers[condition]
        assert answers["run 200"] == LIMITS.runs_per_user - 1
        assert answers["run 200"] + answers["stream 200"] == LIMITS.streams_per_user
        assert answers["stream 429"] == 1
    assert figures.answers[AT]["body 200"] >= 1
    assert set(figures.answers[BEYOND]) >= {"flood 200"}


def test_report_shows_ratios_of_times_and_responses_to_ann() -> None:
    figures = NeighboursFigures(load=0.5)
    for condition, ms, mb in ((ALONE, 2.0, 0.0), (AT, 6.0, 50.0), (BEYOND, 4.0, -1.0)):
        figures.add("first event, median", "ms", condition, ms)
        figures.add("server's memory, grown by", "MB", condition, mb)
    figures.answers[BEYOND] = {"flood 429": 12_345}
    assert figures.ratio(Row("first event, median", "ms"), AT, ALONE) == 3
    _, _, first, memory = neighbours_table(figures).splitlines()
    assert [cell.strip() for cell in first.split("|")][5:7] == ["3.0", "2.0"]
    assert [cell.strip() for cell in memory.split("|")][5:7] == ["–", "–"]
    section = neighbours_section(figures, NeighboursPlan())
    assert "ann has 20 runs and 100 streams" in section
    assert "18 of the runs stream 200 tokens a second" in section
    assert "beyond them 12,345 × flood 429" in section
