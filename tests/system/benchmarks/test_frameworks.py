"""The framework benchmark: all tokens arrive in each way, and costs are computed from the lowest samples."""

from collections.abc import Iterator

import pytest

from benchmarks.frameworks.measurement import (
    BASELINES,
    AgentsServer,
    Baseline,
    FrameworkBenchmark,
    FrameworkFigures,
    FrameworkSamples,
    FrameworksPlan,
    ModelServer,
    Samples,
)
from benchmarks.frameworks.report import HEAD, frameworks_section, frameworks_table
from benchmarks.load_process import Client, Job

PLAN = FrameworksPlan(rounds=2, short=10, long=20)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with Client() as client:
        yield client


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer() as model:
        yield model


@pytest.fixture(scope="module")
def agents(model: ModelServer) -> Iterator[AgentsServer]:
    with AgentsServer(model) as agents:
        yield agents


@pytest.mark.parametrize("baseline", BASELINES, ids=lambda baseline: baseline.name)
def test_all_tokens_of_a_framework_arrive_alone_by_its_source_and_through_limelight(
    baseline: Baseline, client: Client, model: ModelServer, agents: AgentsServer
) -> None:
    samples = FrameworkSamples()
    benchmark = FrameworkBenchmark(PLAN, client, model, agents)
    for number in range(PLAN.rounds):
        benchmark.measure_round(number, baseline, samples)
    for kind in (samples.alone, samples.source, samples.limelight):
        assert len(kind.short) == len(kind.long) == PLAN.rounds
        assert min(*kind.short, *kind.long) > 0


def test_missing_token_is_an_error(client: Client, model: ModelServer, agents: AgentsServer) -> None:
    model.set_length(20)
    job = Job(kind="reply", port=agents.port, path="/alone/agno", mode="agno", tokens=21)
    with pytest.raises(RuntimeError, match="20 tokens instead of 21"):
        client.run(job)


SOURCE = Samples(short=[1200.0, 1200.0], long=[1310.0, 1310.0])


def test_cost_of_tokens_and_runs_follows_from_the_lowest_samples() -> None:
    """10 µs per token and 1,000 per run alone, 12 and 1,500 through Limelight; higher samples are disturbed."""
    alone = Samples(short=[1100.0, 9000.0], long=[7000.0, 1200.0])
    limelight = Samples(short=[9000.0, 1620.0], long=[1740.0, 9000.0])
    samples = FrameworkSamples(alone=alone, source=SOURCE, limelight=limelight)
    assert samples.alone.cost(PLAN) == (10.0, 1000.0)
    assert samples.added(PLAN) == (2.0, 500.0)
    assert samples.added(PLAN).total == 2.25
    assert samples.added_by_source(PLAN) == (1.0, 90.0)


def test_report_shows_the_added_cost_and_whether_the_goal_was_met() -> None:
    alone = Samples(short=[1100.0, 1110.0], long=[1200.0, 1230.0])
    limelight = Samples(short=[1620.0, 1630.0], long=[1740.0, 1750.0])
    samples = FrameworkSamples(alone=alone, source=SOURCE, limelight=limelight)
    figures = FrameworkFigures({Baseline("agno"): samples}, load=0.5)
    head, _, row = frameworks_table(figures, PLAN).splitlines()
    assert [cell.strip() for cell in head.split("|")[1:-1]] == HEAD
    assert [cell.strip() for cell in row.split("|")[1:-1]] == [
        "agno",
        "10.0",
        "11.0",
        "12.0",
        "2.00",
        "500",
        "2.25 [0.26 - 2.25]",
        "1.04",
    ]
    page = frameworks_section(figures, PLAN)
    assert row in page and "it was met" in page
    samples.limelight.long = [1940.0, 1950.0]
    assert "missed for: agno." in frameworks_section(figures, PLAN)
    samples.limelight.long = [1740.0, 2750.0]
    page = frameworks_section(figures, PLAN)
    assert "too busy for a result for: agno." in page and "it was met" not in page and "it was missed" not in page
    figures.samples[Baseline("langgraph")] = FrameworkSamples(alone=alone, source=alone, limelight=alone)
    assert "a result for: agno. For the others it was met." in frameworks_section(figures, PLAN)
