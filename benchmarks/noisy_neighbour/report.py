"""Formats the effect of a noisy neighbour as a table and as a section of `docs/benchmarks.md`."""

import os

from benchmarks.noisy_neighbour.agents import MAKE_SECONDS, TALK_SECONDS
from benchmarks.noisy_neighbour.load_generator import OTHER_RUNS
from benchmarks.noisy_neighbour.measurement import ALONE, AT, BEYOND, CONDITIONS, NeighboursFigures, NeighboursPlan
from benchmarks.pings.measurement import PING_INTERVAL_SECONDS
from benchmarks.report import figure_table

SECTION = """## Neighbours

This section measures what ben notices while ann, another user with the default limits, reaches all of her limits at
once. Ben starts {requests} short runs and {runs} of the workload above, one after another, and pings {pings} times on
a socket, one every {pause:.0f} ms.

- **alone**: ben is the only user of the server.
- **at her limits**: ann has {runs_per_user} runs and {streams_per_user} streams, and does not read every second
  stream. {talkers} of the runs stream {talk:.0f} tokens a second each and do not end, one produces a result of
  {result:.0f} MB every {make:.0f} s, and one is the run of her requests: bodies of {body:.0f} MB without pause. She
  also reads results of {result:.0f} MB, one after another, and lists her sessions ten times a second.
- **beyond them**: the same runs and streams, and requests as fast as four connections can send them.

Each condition has a separate server; they take turns, {repeats} times. A cell is the median of the repeats [lowest -
highest]; the ratio is the median of the ratios within each repeat. All processes share the machine's {cores} cores:
the server has one of them, ben's client and ann's processes have another one. So ben also notices that ann's work is
done on the same core as his, and that one thread writes the commits of both. Ann's processes have a lower priority
than ben's. The load of the machine was {load:.1f} before, from other work: ratios are more reliable than figures.

{table}

Responses to ann, by status: {answers}.
"""


def neighbours_table(figures: NeighboursFigures) -> str:
    return figure_table(figures, "ben's", list(CONDITIONS), ALONE, digits=1)


def neighbours_section(figures: NeighboursFigures, plan: NeighboursPlan) -> str:
    limits = plan.limits
    return SECTION.format(
        requests=plan.requests,
        runs=plan.runs,
        pings=plan.pings,
        pause=PING_INTERVAL_SECONDS * 1000,
        runs_per_user=limits.runs_per_user,
        talkers=limits.runs_per_user - OTHER_RUNS,
        talk=1 / TALK_SECONDS,
        make=MAKE_SECONDS,
        streams_per_user=limits.streams_per_user,
        result=limits.result_bytes / 2**20,
        body=limits.body_bytes / 2**20,
        repeats=plan.repeats,
        load=figures.load,
        cores=os.cpu_count(),
        table=neighbours_table(figures),
        answers="; ".join(_answers(figures, condition) for condition in (AT, BEYOND)),
    )


def _answers(figures: NeighboursFigures, condition: str) -> str:
    counts = ", ".join(f"{count:,} × {what}" for what, count in figures.answers.get(condition, {}).items())
    return f"{condition} {counts or 'nothing'}"
