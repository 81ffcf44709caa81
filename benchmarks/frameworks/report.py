"""The figures of the frameworks as a table, and as a section of `docs/benchmarks.md`."""

import statistics

from benchmarks.frameworks.measure import FrameworkFigures, FrameworksPlan
from benchmarks.report import aligned, cell, versions

PACKAGES = ("langgraph", "langchain", "deepagents", "agno", "smolagents", "openai")
GOAL = 20
"""Microseconds per token that Limelight may add."""
HEAD = ["CPU per token (µs)", "alone", "its source", "through Limelight", "Limelight adds", "of this the source"]

SECTION = """## Frameworks

What a token costs in the process that runs the agent: with the framework alone, and through Limelight, which is
source, engine, a commit to SQLite, hub, typed stream and HTTP. Both in one process that does them in turns, {rounds}
rounds there and back; the model (a reply of {tokens:,} tokens, written at once, encoded beforehand) and the client are
processes of their own. The goal is that Limelight adds at most {goal} µs. {verdict}

- **alone** is the framework handing every token to its caller: LangGraph's `create_agent` and `create_deep_agent` with
  `stream_mode="messages"`, Agno's agent with `stream_events`, the `ToolCallingAgent` of smolagents with
  `stream_outputs=True`; nothing is printed, and nothing is kept. Limelight also keeps the state of the conversation.
- **its source** is Limelight's source for that framework alone, its events read and thrown away.
- **against its model alone** compares with no more than smolagents' `generate_stream`. Limelight listens there, because
  the agent's own streaming goes over the whole reply again with each token; this row counts the agent as added.

{packages}. The load of the machine was {load:.1f} before the first round.

{table}

"Limelight adds" is the median of the differences within each round [lowest - highest]. About 5 µs of it are the run's
own, whatever its length: the request, the run's row, what the framework keeps of the conversation.
"""


def frameworks_table(figures: FrameworkFigures) -> str:
    """Markdown that is readable as it is."""
    lines = [HEAD, ["---"] * len(HEAD)]
    for base, costs in figures.costs.items():
        spent = (costs.alone, costs.source, costs.limelight, costs.added, costs.added_by_source)
        lines.append([base.name, *(cell(values) for values in spent)])
    return aligned(lines)


def frameworks_section(figures: FrameworkFigures, plan: FrameworksPlan) -> str:
    return SECTION.format(
        rounds=plan.rounds,
        tokens=plan.tokens,
        goal=GOAL,
        verdict=_verdict(figures),
        packages=versions(PACKAGES),
        load=figures.load,
        table=frameworks_table(figures),
    )


def _verdict(figures: FrameworkFigures) -> str:
    above = [base.name for base, costs in figures.costs.items() if statistics.median(costs.added) > GOAL]
    return f"In this run it was missed for: {'; '.join(above)}." if above else "In this run it was met."
