"""Formats the figures of the frameworks as a table and as a section of `docs/benchmarks.md`."""

from benchmarks.frameworks.measurement import REPLY, Baseline, FrameworkFigures, FrameworksPlan
from benchmarks.report import aligned, number, versions

PACKAGES = ("langgraph", "langchain", "deepagents", "agno", "smolagents", "openai")
GOAL = 20
"""Maximum number of microseconds per token that Limelight should add."""
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
    lines = [HEAD, ["---"] * len(HEAD)]
    for baseline, samples in figures.samples.items():
        added = samples.added(plan)
        parts = samples.added_by_parts(plan)
        kinds = (samples.alone, samples.source, samples.limelight)
        costs = [number(kind.cost(plan).token) for kind in kinds]
        total = f"{number(added.total)} [{number(min(parts))} - {number(max(parts))}]"
        source = samples.added_by_source(plan)
        lines.append([baseline.name, *costs, number(added.token), f"{added.run:,.0f}", total, number(source.total)])
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
    """Return whether the goal was met, as text; unknown if the parts of the rounds differ by more than the goal."""
    unclear = [name for name, samples in figures.samples.items() if _spread(samples.added_by_parts(plan)) > GOAL]
    clear = {name: samples for name, samples in figures.samples.items() if name not in unclear}
    above = [name for name, samples in clear.items() if samples.added(plan).token > GOAL]
    known = f"it was missed for: {_names(above)}." if above else "it was met."
    if not unclear:
        return f"In this run {known}"
    unknown = f"The machine was too busy for a result for: {_names(unclear)}."
    return f"{unknown} For the others {known}" if clear else unknown


def _spread(values: list[float]) -> float:
    return max(values) - min(values)


def _names(baselines: list[Baseline]) -> str:
    return "; ".join(baseline.name for baseline in baselines)
