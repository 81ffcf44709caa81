"""The figures of the frameworks as a table, and as a section of `docs/benchmarks.md`."""

from benchmarks.frameworks.measure import REPLY, Base, FrameworkFigures, FrameworksPlan
from benchmarks.report import aligned, number, versions

PACKAGES = ("langgraph", "langchain", "deepagents", "agno", "smolagents", "openai")
GOAL = 20
"""Microseconds per token that Limelight may add."""
HEAD = [
    "CPU (µs)",
    "alone",
    "its source",
    "through Limelight",
    "Limelight adds",
    "to a run",
    "in all",
    "of this the source",
]

SECTION = """## Frameworks

This section measures the cost of a token in the process that runs the agent: with the framework alone, and through
Limelight, which includes source, engine, a commit to SQLite, hub, typed stream and HTTP. One process runs both in
turns, for {rounds} rounds, each with a reply of {short} tokens and one of {long}. The model (which writes its reply
at once, encoded in advance) and the client are separate processes. The goal is that Limelight adds at most {goal} µs
to each token.
{verdict}

- **alone**: the framework passes every token to its caller: LangGraph's `create_agent` and `create_deep_agent` with
  `stream_mode="messages"`, Agno's agent with `stream_events`, the `ToolCallingAgent` of smolagents with
  `stream_outputs=True`. Nothing is printed or stored. Limelight also stores the state of the conversation.
- **its source**: Limelight's source for that framework alone; its events are read and discarded.
- **against its model alone**: the comparison is smolagents' `generate_stream` only. Limelight reads the tokens there,
  because the agent's own streaming processes the complete reply again with each token; this row counts the agent as
  added.
- **Limelight adds** is the added cost of each token. **to a run** is the added cost of a run, independent of its
  length: the request, the run's row, the framework's state of the conversation. **in all** is both together for each
  token of a reply of {reply:,} [the values from each quarter of the rounds].
- **of this the source** is the part of Limelight's source.

Figures are the lowest of all rounds: other work on the machine can only make a run longer, so the lowest figures are
closest to the real cost, for all contenders alike. They hold for an idle machine. On a busy machine everything costs
more, and Limelight adds more: it commits and sends at time intervals, so fewer tokens share the cost of each commit.

{packages}. The load of the machine was {load:.1f} before the first round.

{table}
"""


def frameworks_table(figures: FrameworkFigures, plan: FrameworksPlan) -> str:
    """Markdown that is readable as it is."""
    lines = [HEAD, ["---"] * len(HEAD)]
    for base, costs in figures.costs.items():
        added = costs.added(plan)
        parts = costs.added_by_parts(plan)
        cells = (costs.alone, costs.source, costs.limelight)
        each = [number(cell.spent(plan).token) for cell in cells]
        in_all = f"{number(added.in_all)} [{number(min(parts))} - {number(max(parts))}]"
        source = costs.added_by_source(plan)
        lines.append([base.name, *each, number(added.token), f"{added.run:,.0f}", in_all, number(source.in_all)])
    return aligned(lines)


def frameworks_section(figures: FrameworkFigures, plan: FrameworksPlan) -> str:
    return SECTION.format(
        rounds=plan.rounds,
        short=plan.short,
        long=plan.long,
        reply=REPLY,
        goal=GOAL,
        verdict=_verdict(figures, plan),
        packages=versions(PACKAGES),
        load=figures.load,
        table=frameworks_table(figures, plan),
    )


def _verdict(figures: FrameworkFigures, plan: FrameworksPlan) -> str:
    """Figures that differ by more than the goal among the parts of the rounds say nothing about it."""
    unclear = [base for base, costs in figures.costs.items() if _spread(costs.added_by_parts(plan)) > GOAL]
    clear = {base: costs for base, costs in figures.costs.items() if base not in unclear}
    above = [base for base, costs in clear.items() if costs.added(plan).token > GOAL]
    told = f"it was missed for: {_names(above)}." if above else "it was met."
    if not unclear:
        return f"In this run {told}"
    untold = f"The machine was too busy to tell for: {_names(unclear)}."
    return f"{untold} For the others {told}" if clear else untold


def _spread(values: list[float]) -> float:
    return max(values) - min(values)


def _names(bases: list[Base]) -> str:
    return "; ".join(base.name for base in bases)
