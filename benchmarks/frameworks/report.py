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

What a token costs in the process that runs the agent: with the framework alone, and through Limelight, which is
source, engine, a commit to SQLite, hub, typed stream and HTTP. Both in one process that does them in turns, {rounds}
rounds, each with a reply of {short} tokens and one of {long}; the model (which writes its reply at once, encoded
beforehand) and the client are processes of their own. The goal is that Limelight adds at most {goal} µs to each token.
{verdict}

- **alone** is the framework handing every token to its caller: LangGraph's `create_agent` and `create_deep_agent` with
  `stream_mode="messages"`, Agno's agent with `stream_events`, the `ToolCallingAgent` of smolagents with
  `stream_outputs=True`; nothing is printed, and nothing is kept. Limelight also keeps the state of the conversation.
- **its source** is Limelight's source for that framework alone, its events read and thrown away.
- **against its model alone** compares with no more than smolagents' `generate_stream`. Limelight listens there, because
  the agent's own streaming goes over the whole reply again with each token; this row counts the agent as added.
- **Limelight adds** is for each token; **to a run** once, whatever its length: the request, the run's row, what the
  framework keeps of the conversation. **in all** is both for each token of a reply of {reply:,} [what each quarter of
  the rounds alone would have said].

Figures are the lowest of all rounds: whatever else a machine does adds to the time that a run takes, and nothing makes
it shorter, so the lowest are the nearest to what the work costs, of each contender alike. They are those of a machine
that is not busy. On a busy one everything costs more, and Limelight adds more, as it commits and shows at intervals of
time: fewer tokens share the cost of each.

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
