"""Formats the latencies of pings as a table and as a section of `docs/benchmarks.md`."""

from benchmarks.measurement import quantile
from benchmarks.pings.measurement import PING_INTERVAL_SECONDS, Pings, PingsPlan
from benchmarks.report import aligned, number

GOAL = 100
"""Milliseconds within which 99 of 100 pings should be answered while other agents work."""

SECTION = """## Sockets

This section measures how soon a session's socket answers a `ping` (one every {pause:.0f} ms for {seconds:.0f} s, over
loopback): on an idle server, and while a smolagents CodeAgent runs a Python loop that never yields its thread and a
third session streams a hundred tokens a second. The aim is a p99 of {goal} ms; in this run it was {verdict}.

{table}
"""


def pings_table(pings: Pings) -> str:
    lines = [["ping (ms)", "median", "p99", "highest", "pings"], ["---"] * 5]
    for name, values in (("alone", pings.idle), ("while a CodeAgent loops", pings.busy)):
        figures = (quantile(values, 50), quantile(values, 99), max(values))
        lines.append([name, *map(number, figures), str(len(values))])
    return aligned(lines)


def pings_section(pings: Pings, plan: PingsPlan) -> str:
    verdict = "met" if quantile(pings.busy, 99) <= GOAL else "missed"
    return SECTION.format(
        pause=PING_INTERVAL_SECONDS * 1000, seconds=plan.seconds, goal=GOAL, verdict=verdict, table=pings_table(pings)
    )
