"""Formats the figures of the soak test as a table and as a section of `docs/soak.md`."""

import datetime
import os
import statistics

from benchmarks.report import aligned, machine
from benchmarks.soak.measurement import HELD_PART, MAX_GROWTH_MB, MAX_P95_MS, WARM_UP_PART, SoakFigures, SoakPlan

TITLE = "## Result"

SECTION = """{title}

{date}, {machine} The load of the machine was {load:.1f} before.

{table}

{verdict}
"""


def soak_table(figures: SoakFigures, plan: SoakPlan) -> str:
    memory = [sample.rss_mb for sample in figures.samples]
    files = [sample.files for sample in figures.samples]
    resumes = sum(report.resumes for report in figures.reports)
    median, least = figures.open_streams()
    latencies = ", ".join(f"{figures.percentile(percent):.0f}" for percent in (50, 95, 99))
    rows = {
        "open streams, median, lowest": f"{median:,.0f}, {least:,}",
        "concurrent runs": f"{plan.sessions:,}",
        "duration": f"{plan.minutes:g} minutes",
        "emitted by agents, highest rate found (numbers a second)": f"{figures.highest * plan.sessions:,.0f}",
        "emitted by agents, rate held (numbers a second)": f"{figures.rate * plan.sessions:,.0f}",
        "delivered to streams (numbers a second)": f"{figures.delivered():,.0f}",
        "delivered in total": f"{sum(report.numbers for report in figures.reports):,}",
        "reconnects of viewers": f"{resumes:,}",
        "numbers lost, doubled": f"{figures.lost:,}, {figures.doubled:,}",
        "streams that ended by themselves": f"{figures.broken:,}",
        "latency from due time to client, median, p95, p99 (ms)": latencies,
        "memory of the server, median, highest (MB)": f"{statistics.median(memory):.0f}, {max(memory):.0f}",
        "memory, growth by a linear fit of the samples (MB a minute)": f"{figures.mb_per_minute():+.2f}",
        "open files, highest, afterwards": f"{max(files):,}, {figures.files_after:,}",
    }
    return aligned([["", "figure"], ["---", "---"], *([what, figure] for what, figure in rows.items())])


def soak_section(figures: SoakFigures, plan: SoakPlan) -> str:
    faults = figures.faults()
    return SECTION.format(
        title=TITLE,
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
        machine=machine(),
        load=figures.load,
        table=soak_table(figures, plan),
        verdict=f"**Failed**: {'; '.join(faults)}." if faults else "Nothing was lost or doubled; memory did not grow.",
    )


def limits_text() -> str:
    """Return the limits of the test in one line, shown at its start."""
    return (
        f"delivery within {MAX_P95_MS:.0f} ms for 95 %, {HELD_PART:.0%} of the highest such rate held,"
        f" at most {MAX_GROWTH_MB:.0f} MB of growth after the first {WARM_UP_PART:.0%}, on {os.cpu_count()} cores"
    )
