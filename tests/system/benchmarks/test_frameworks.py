"""The frameworks are measured doing the same work, alone and through Limelight. No timings here."""

from collections.abc import Iterator

import pytest

from benchmarks.client import Client, Job
from benchmarks.frameworks.measure import (
    BASES,
    Base,
    Cell,
    Costs,
    FrameworkFigures,
    Frameworks,
    FrameworksPlan,
    Model,
    Stage,
)
from benchmarks.frameworks.report import HEAD, frameworks_section, frameworks_table

PLAN = FrameworksPlan(rounds=2, short=10, long=20)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with Client() as client:
        yield client


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    with Model(None) as model:
        yield model


@pytest.fixture(scope="module")
def stage(model: Model) -> Iterator[Stage]:
    with Stage(None, model) as stage:
        yield stage


@pytest.mark.parametrize("base", BASES, ids=lambda base: base.name)
def test_each_framework_gives_every_token_in_every_way(base: Base, client: Client, model: Model, stage: Stage) -> None:
    costs = Costs()
    frameworks = Frameworks(PLAN, client, model, stage)
    for number in range(PLAN.rounds):
        frameworks.round(number, base, costs)
    for cell in (costs.alone, costs.source, costs.limelight):
        assert len(cell.short) == len(cell.long) == PLAN.rounds
        assert min(*cell.short, *cell.long) > 0


def test_a_token_that_is_missing_is_noticed(client: Client, model: Model, stage: Stage) -> None:
    model.replies_with(20)
    job = Job(kind="reply", port=stage.port, path="/alone/agno", mode="agno", tokens=21)
    with pytest.raises(RuntimeError, match="20 tokens instead of 21"):
        client.do(job)


def test_the_lowest_figures_count_and_tokens_are_told_from_runs() -> None:
    """10 µs for a token and 1,000 for a run, 12 and 1,500 through Limelight, and what disturbs comes on top."""
    alone = Cell(short=[1100.0, 9000.0], long=[7000.0, 1200.0])
    limelight = Cell(short=[9000.0, 1620.0], long=[1740.0, 9000.0])
    costs = Costs(alone=alone, source=Cell(short=[1200.0, 1200.0], long=[1310.0, 1310.0]), limelight=limelight)
    assert costs.alone.spent(PLAN) == (10.0, 1000.0)
    assert costs.added(PLAN) == (2.0, 500.0)
    assert costs.added(PLAN).in_all == 2.25
    assert costs.added_by_source(PLAN) == (1.0, 90.0)


def test_the_report_says_what_is_added_and_whether_that_is_little_enough() -> None:
    alone = Cell(short=[1100.0, 1110.0], long=[1200.0, 1230.0])
    limelight = Cell(short=[1620.0, 1630.0], long=[1740.0, 1750.0])
    costs = Costs(alone=alone, source=Cell(short=[1200.0, 1200.0], long=[1310.0, 1310.0]), limelight=limelight)
    figures = FrameworkFigures({Base("agno"): costs}, load=0.5)
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
    costs.limelight.long = [1940.0, 1950.0]
    assert "missed for: agno." in frameworks_section(figures, PLAN)
    costs.limelight.long = [1740.0, 2750.0]
    page = frameworks_section(figures, PLAN)
    assert "too busy to tell for: agno." in page and "it was met" not in page and "it was missed" not in page
    figures.costs[Base("langgraph")] = Costs(alone=alone, source=alone, limelight=alone)
    assert "to tell for: agno. For the others it was met." in frameworks_section(figures, PLAN)
