"""The ping benchmark: pings are measured on an idle server and while a CodeAgent runs a loop."""

from benchmarks.pings.measurement import Pings, PingsPlan, measure_pings
from benchmarks.pings.report import pings_section, pings_table


def test_pings_are_measured_idle_and_while_a_code_agent_loops() -> None:
    logged: list[str] = []
    pings = measure_pings(PingsPlan(seconds=0.5), logged.append)
    assert logged == ["pings: 1 s"]
    assert len(pings.idle) >= 2 and len(pings.busy) >= 2
    assert min(pings.idle + pings.busy) > 0


def test_report_shows_whether_the_aim_was_met() -> None:
    quick, slow = [1.0] * 100, [1.0] * 90 + [500.0] * 10
    assert "in this run it was met" in pings_section(Pings(quick, quick), PingsPlan())
    assert "in this run it was missed" in pings_section(Pings(quick, slow), PingsPlan())
    head, _, alone, busy = pings_table(Pings(quick, slow)).splitlines()
    assert head.split("|")[3].strip() == "p99"
    assert [line.split("|")[3].strip() for line in (alone, busy)] == ["1.00", "500"]
