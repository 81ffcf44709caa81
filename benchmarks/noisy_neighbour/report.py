"""The figures of the neighbours as a table, and as a section of `docs/benchmarks.md`."""

import os

from benchmarks.noisy_neighbour.agents import MAKE_SECONDS, TALK_SECONDS
from benchmarks.noisy_neighbour.load import ALONE as OTHER_RUNS
from benchmarks.noisy_neighbour.measure import ALONE, AT, BEYOND, CONDITIONS, PAUSE, NeighboursFigures, NeighboursPlan
from benchmarks.report import aligned, cell

SECTION = """## Neighbours

What ben notices while ann, another user with the usual limits, is at all of hers at once. Ben asks for {requests} short
runs and {runs} of the workload above, one after another, and pings {pings} times on a socket, one every
{pause:.0f} ms.

- **alone**: ben has the server for himself.
- **at her limits**: ann has {runs_per_user} runs and {streams_per_user} streams, of which she never reads every second
  one. {talkers} of the runs talk {talk:.0f} tokens a second each and do not end, one makes a result of {result:.0f} MB
  every {make:.0f} s, and one is that of her requests: bodies of {body:.0f} MB without pause. She also reads results of
  {result:.0f} MB, one after another, and lists her sessions ten times a second.
- **beyond them**: the same runs and streams, and requests as fast as four connections can send them.

Each way has a server of its own; they take turns, {repeats} times. A cell is the median of the repeats
[lowest - highest]; the ratio is the median of the ratios within each repeat. Everything shares the machine's
{cores} cores:
the server has one of them, ben's client and ann's processes have another one. So what ben notices is also that ann's
work is done on the same core as his, and that one thread writes the commits of both. Ann's processes give way to
ben's. The load of the machine was {load:.1f} before, which is other work that it was shared with: trust the ratios more
than the figures.

{table}

Ann was answered, by status: {answers}.
"""


def neighbours_table(figures: NeighboursFigures) -> str:
    others = [name for name in CONDITIONS if name != ALONE]
    head = ["ben's", *CONDITIONS, *(f"{name} ÷ {ALONE}" for name in others)]
    lines = [head, ["---"] * len(head)]
    for row, by_condition in figures.rows.items():
        cells = [cell(by_condition[name]) for name in CONDITIONS]
        ratios = [f"{figures.ratio(row, name):.1f}" if row.unit == "ms" else "–" for name in others]
        lines.append([f"{row.what} ({row.unit})", *cells, *ratios])
    return aligned(lines)


def neighbours_section(figures: NeighboursFigures, plan: NeighboursPlan) -> str:
    limits = plan.limits
    return SECTION.format(
        requests=plan.requests,
        runs=plan.runs,
        pings=plan.pings,
        pause=PAUSE * 1000,
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
    counted = ", ".join(f"{count:,} × {what}" for what, count in figures.answers.get(condition, {}).items())
    return f"{condition} {counted or 'nothing'}"
