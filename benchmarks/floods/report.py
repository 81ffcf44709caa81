"""Formats the list of floods and their figures as tables and as sections of `docs/attacks.md`."""

import datetime
import os
import subprocess
from collections.abc import Sequence

from benchmarks.floods.catalog import FLOODS
from benchmarks.floods.measured_user import CLIENT, FIRST_EVENT, HEALTH, PING, STOP
from benchmarks.floods.measurement import FloodFigures, FloodPlan, FloodResults
from benchmarks.report import aligned, machine
from benchmarks.server_process import ROOT

DOCUMENT = "attacks.md"
KEYS = {"both": "with and without", "with": "with", "without": "without"}
CATALOG = """## Floods

{table}
"""
RESULT = """## Result

{date}, commit {commit}, {machine} Each flood lasted {seconds:g} seconds. The load of the machine was {load:.1f} on
average.

Times are in milliseconds, as median / 95th percentile / maximum. **CPU** is the CPU time of the server, and **memory**
its memory before, at most, and afterwards, in MB. **Machine** shows what did not come from the server: the longest
delay of a timer in the user's process (ms), the part of the time for which the server was ready to run but had no core,
and the load average. **Answers** are the responses to the client by status.

{table}

{verdict}
"""


def catalog_table() -> str:
    head = ["flood", "wire", "connections", "key", "what each connection does"]
    rows = [[f"`{f.name}`", f.wire, f"{f.connections:,}", KEYS[f.keys], f.what] for f in FLOODS.values()]
    return aligned([head, [""] * len(head), *rows])


def catalog_section() -> str:
    return CATALOG.format(table=catalog_table())


def floods_table(figures: Sequence[FloodFigures]) -> str:
    what = (FIRST_EVENT, STOP, PING, HEALTH)
    head = ["flood", "key", *what, "CPU", "memory", "over a limit", "machine", "answers"]
    rows = [
        [
            found.flood,
            "yes" if found.has_key else "no",
            *(" / ".join(f"{value:.0f}" for value in found.percentiles(name)) for name in what),
            f"{found.cpu:.0%}",
            f"{found.memory.before:.0f} / {found.memory.peak:.0f} / {found.memory.after:.0f}",
            ", ".join(found.breaches()) or "–",
            f"{found.percentiles(CLIENT)[2]:.0f}, {found.waited:.0%}, {found.load:.1f}",
            _answers(found),
        ]
        for found in figures
    ]
    return aligned([head, [""] * len(head), *rows])


def _answers(figures: FloodFigures) -> str:
    answers = [f"{count:,} × {status}" for status, count in sorted(figures.client.answers.items())]
    return ", ".join([*answers, f"{figures.client.opened:,} opened, {figures.client.closed:,} closed by the server"])


def floods_section(results: FloodResults, plan: FloodPlan) -> str:
    figures, faults = results.figures, results.faults()
    return RESULT.format(
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
        commit=commit(),
        machine=machine(),
        seconds=plan.seconds,
        load=sum(found.load for found in figures) / len(figures) if figures else os.getloadavg()[0],
        table=floods_table(figures),
        verdict="Over a limit:\n\n" + "\n".join(f"- {fault}" for fault in faults) if faults else "All limits held.",
    )


def commit() -> str:
    """Return the short hash of the current commit; "unknown" outside of a repository."""
    git = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    return git.stdout.strip() or "unknown"
